"""Broadcasts in the console: list, page, and operations."""

from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from domain.time import utc_now
from notifications.broadcasts.requests import AudienceRequest
from notifyproject.db.collections import collection
from tests.support.clients.console import listed, make_staff, signed_in
from tests.support.factories.broadcasts import begun, read, recipients, run_to_completion, topic
from tests.support.mongo.explained_reads import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker", "backlog_anew")

LIST = "/admin/notifications/broadcast/"
OPERATIONS = ("pause", "resume", "cancel")
RECORDED = {"pause": "Paused.", "resume": "Resumed.", "cancel": "Cancelled."}
AFTERWARDS = {"pause": "paused", "resume": "running", "cancel": "cancelling"}


def new(**fields: Any) -> ObjectId:
    return begun(at=utc_now(), **fields)


def ready_for(operation: str) -> ObjectId:
    broadcast_id = new()
    if operation == "resume":
        collection("broadcasts").update_one({"_id": broadcast_id}, {"$set": {"status": "paused"}})
    return broadcast_id


def url(broadcast_id: ObjectId, operation: str) -> str:
    return f"{LIST}{broadcast_id}/{operation}/"


def page(client: Client, broadcast_id: ObjectId) -> str:
    response = client.get(f"{LIST}{broadcast_id}/change/")
    assert response.status_code == 200
    return response.content.decode()


def do(client: Client, broadcast_id: ObjectId, operation: str) -> str:
    response = client.post(url(broadcast_id, operation), {"confirmed": "yes"}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def audit(broadcast_id: ObjectId) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(broadcast_id)).order_by("id")
    return [entry.change_message for entry in entries]


def test_list_is_newest_first(console: Client) -> None:
    made = [new() for _ in range(3)]
    assert listed(console, LIST) == made[::-1]


def test_list_shows_audience_and_progress(console: Client) -> None:
    names = recipients(4)
    run_to_completion(new(audience=topic("news", *names[:3])), at=utc_now())
    text = console.get(LIST).content.decode()
    for words in ("Marketing", "Topic news", "Completed", "3 / ~3"):
        assert words in text


def test_list_is_filtered_by_status(console: Client) -> None:
    first, done = new(), new()
    run_to_completion(done, at=utc_now())
    assert listed(console, f"{LIST}?status=running") == [first]
    assert listed(console, f"{LIST}?status=completed") == [done]


def test_list_uses_an_index_and_leaves_the_audience_out(console: Client) -> None:
    for _ in range(60):
        new(audience=AudienceRequest(user_ids=["ada"]))
    found = plans(console, LIST, of="broadcasts")
    (listing,) = [plan for plan in found if "IXSCAN" in plan.stages]
    assert "SORT" not in listing.stages
    assert listing.documents_examined <= 50
    assert all("PROJECTION_SIMPLE" in plan.stages for plan in found if "COLLSCAN" in plan.stages)


def test_page_shows_skipped_recipients_with_reasons(console: Client) -> None:
    recipients(1)
    broadcast_id = new(audience=AudienceRequest(user_ids=["user-00000", "stranger"]))
    run_to_completion(broadcast_id, at=utc_now())
    text = page(console, broadcast_id)
    for words in ("No address", "stranger", "It is spring.", "2 of ~2 processed"):
        assert words in text
    assert "Audience processed" in text


def test_page_links_the_notifications(console: Client) -> None:
    recipients(2)
    first, other = new(), new()
    for broadcast_id in (first, other):
        run_to_completion(broadcast_id, at=utc_now())
    where = f"/admin/notifications/notification/?q={first}"
    assert where in page(console, first)
    ids = collection("notifications").distinct("_id", {"broadcast_id": first})
    assert sorted(listed(console, where)) == sorted(ids)
    viewer = signed_in(make_staff("rui", "notifications.view_broadcast"))
    assert where not in page(viewer, first)


def test_client_data_is_escaped(console: Client) -> None:
    broadcast_id = new(data={"x": "<script>alert(1)</script>"})
    assert "<script>alert(1)" not in page(console, broadcast_id)


def test_unknown_broadcast_redirects_to_the_list(console: Client) -> None:
    for unknown in ("x", str(ObjectId())):
        response = console.get(f"{LIST}{unknown}/change/", follow=True)
        assert "Broadcast not found" in response.content.decode()
        assert console.post(f"{LIST}{unknown}/pause/").status_code == 302


def test_broadcasts_require_the_view_permission(support: Client) -> None:
    broadcast_id = new()
    assert support.get(LIST).status_code == 403
    assert support.get(f"{LIST}{broadcast_id}/change/").status_code == 403


@each_case("operation", OPERATIONS)
def test_operation_takes_effect_and_is_audited(console: Client, operation: str) -> None:
    broadcast_id = ready_for(operation)
    do(console, broadcast_id, operation)
    assert read(broadcast_id)["status"] == AFTERWARDS[operation]
    assert audit(broadcast_id) == [RECORDED[operation]]
    assert f"<br>{RECORDED[operation]}" in page(console, broadcast_id)


def test_cancelling_requires_confirmation(console: Client) -> None:
    broadcast_id = new()
    text = console.post(url(broadcast_id, "cancel")).content.decode()
    assert "Cancel notifications" in text
    assert (read(broadcast_id)["status"], audit(broadcast_id)) == ("running", [])


@each_case("operation", OPERATIONS)
def test_operation_requires_its_own_permission(operation: str) -> None:
    broadcast_id = ready_for(operation)
    others = [f"notifications.{other}_broadcast" for other in OPERATIONS if other != operation]
    client = signed_in(make_staff(operation, "notifications.view_broadcast", *others))
    before = read(broadcast_id)
    assert client.post(url(broadcast_id, operation), {"confirmed": "yes"}).status_code == 403
    assert url(broadcast_id, operation) not in page(client, broadcast_id)
    assert read(broadcast_id) == before


def test_operation_on_a_completed_broadcast_is_refused_and_not_audited(console: Client) -> None:
    broadcast_id = new()
    run_to_completion(broadcast_id, at=utc_now())
    assert "No change" in do(console, broadcast_id, "pause")
    assert audit(broadcast_id) == []
    text = page(console, broadcast_id)
    for operation in ("pause", "resume"):
        assert url(broadcast_id, operation) not in text


def test_throttled_broadcast_says_so(console: Client) -> None:
    broadcast_id = new()
    collection("broadcasts").update_one({"_id": broadcast_id}, {"$set": {"is_waiting": True}})
    assert "throttled, because the backlog is full" in page(console, broadcast_id)
    assert "Throttled" in console.get(LIST).content.decode()
