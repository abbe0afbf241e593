"""Digests in the console: the list, the page, the actions, and the pages that link to them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from delivery import digests, pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.support.clients.console import listed, make_staff, register_ada, signed_in
from tests.support.factories import notifications as factories
from tests.support.factories.digests import opened

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/digest/"
MESSAGES = "/admin/notifications/notification/"
KIND = "payment_confirmed"
DATA = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}


@pytest.fixture
def joined() -> Iterator[list[ObjectId]]:
    """Two messages that wait for a digest."""
    now = utc_now()
    digest = {
        "channels": ["email"],
        "key": None,
        "window": {"minutes": 30},
        "leading": False,
        "sliding": False,
        "max_items": 20,
        "min_items": 2,
        "only_over_limit": False,
    }
    collection("notification_types").update_one({"_id": KIND}, {"$set": {"digest": digest}})
    types.invalidate_types()
    ids = [
        ObjectId(factories.accepted(type=KIND, user_id="ada", data=DATA, created_at=now)["_id"])
        for _ in range(2)
    ]
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: now)
    yield ids
    collection("notification_types").update_one({"_id": KIND}, {"$unset": {"digest": ""}})
    types.invalidate_types()


def the_digest() -> dict[str, Any]:
    [found] = collection("digests").find()
    return dict(found)


def close_all() -> None:
    assert digests.close_due(clock=lambda: utc_now() + timedelta(minutes=1)) == 1


def page(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def act(client: Client, digest_id: ObjectId, action: str) -> str:
    url = f"{LIST}{digest_id}/{action}/"
    question = client.post(url).content.decode()
    assert "2 messages waiting" in question
    return client.post(url, {"confirmed": "yes"}, follow=True).content.decode()


def test_list_is_filtered_and_searched(console: Client) -> None:
    now = utc_now()
    ids = [opened(at=now, user_id=user_id)["_id"] for user_id in ("ada", "bob")]
    assert listed(console, LIST) == ids[::-1]
    assert listed(console, f"{LIST}?q=ada") == ids[:1]
    assert listed(console, f"{LIST}?q={ids[1]}") == ids[1:]
    assert listed(console, f"{LIST}?status=closing") == []
    assert listed(console, f"{LIST}?status=open&type={KIND}&channel=email") == ids[::-1]
    assert listed(console, f"{LIST}?channel=push") == []


def test_message_that_waits_links_its_digest(console: Client, joined: list[ObjectId]) -> None:
    register_ada()
    digest_id = the_digest()["_id"]
    message = page(console, f"{MESSAGES}{joined[0]}/change/")
    assert "Held: digest at" in message
    # The time is the end of the window, not that of the check after it.
    assert f"{the_digest()['closes_at']:%Y-%m-%dT%H:%M}" in message
    assert f'href="{LIST}{digest_id}/change/"' in message
    shown = page(console, f"{LIST}{digest_id}/change/")
    for text in ("2 messages waiting", *(str(member_id) for member_id in joined), "Send now"):
        assert text in shown
    person = page(console, "/admin/recipients/recipient/ada/change/")
    assert "Open digests" in person
    assert "2 waiting" in person


def test_digest_is_sent_now(console: Client, joined: list[ObjectId]) -> None:
    digest_id = the_digest()["_id"]
    assert "It is sent in a few seconds." in act(console, digest_id, "close")
    close_all()
    carrier_id = the_digest()["carrier_id"]
    shown = page(console, f"{LIST}{digest_id}/change/")
    for text in ("2 messages sent as one", str(carrier_id), "Closed."):
        assert text in shown
    assert str(carrier_id) in page(console, LIST)
    message = page(console, f"{MESSAGES}{joined[0]}/change/")
    for text in ("sent in a digest", f"{MESSAGES}{carrier_id}/change/", "It was part of a digest"):
        assert text in message
    carrier = page(console, f"{MESSAGES}{carrier_id}/change/")
    for text in (f"{LIST}{digest_id}/change/", *(str(member_id) for member_id in joined)):
        assert text in carrier
    again = console.post(f"{LIST}{digest_id}/close/", {"confirmed": "yes"}, follow=True)
    assert "isn&#x27;t open any more" in again.content.decode()
    assert audited(digest_id) == ["Closed."]


def test_digest_is_cancelled(console: Client, joined: list[ObjectId]) -> None:
    digest_id = the_digest()["_id"]
    act(console, digest_id, "cancel")
    close_all()
    assert "2 messages cancelled" in page(console, f"{LIST}{digest_id}/change/")
    assert [factories.read(member_id)["status"] for member_id in joined] == ["cancelled"] * 2
    assert audited(digest_id) == ["Cancelled."]


def test_message_that_is_sent_now_leaves_its_digest(
    console: Client, joined: list[ObjectId]
) -> None:
    url = f"{MESSAGES}{joined[0]}/run/"
    assert "leave their digests" in console.post(url).content.decode()
    assert console.post(url, {"confirmed": "yes"}).status_code == 302
    delivery = factories.delivery(factories.read(joined[0]), Channel.EMAIL)
    assert (delivery["digest_id"], delivery["skips_digest"]) == (None, True)


def test_action_needs_the_permission(joined: list[ObjectId]) -> None:
    digest_id = the_digest()["_id"]
    viewer = signed_in(make_staff("rui", "notifications.view_digest"))
    shown = page(viewer, f"{LIST}{digest_id}/change/")
    assert "Send now" not in shown
    assert str(joined[0]) not in shown
    assert viewer.post(f"{LIST}{digest_id}/close/", {"confirmed": "yes"}).status_code == 403
    assert the_digest()["status"] == "open"


def audited(digest_id: ObjectId) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(digest_id)).order_by("id")
    return [entry.get_change_message() for entry in entries]
