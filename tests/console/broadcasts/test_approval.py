"""Approval of a broadcast in the console: what an approver sees and does, and who may."""

from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from access import actors
from access.documents import OIDC_IDENTITIES
from access.models import StaffUser
from access.staff import reauthentication
from access.staff.permissions import roles
from domain.time import utc_now
from notifications.broadcasts import approvals, creation
from notifications.broadcasts.requests import BroadcastRequest
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories.broadcasts import (
    CALLER,
    EVERYBODY,
    NEWS,
    begun,
    notified_users,
    read,
    recipients,
    run_page,
    run_to_completion,
)

pytestmark = pytest.mark.usefixtures("db", "broker", "backlog_anew")
LIST = "/admin/notifications/broadcast/"
VIEW, APPROVE, OVERRIDE, SUBMIT = (
    f"notifications.{name}_broadcast" for name in ("view", "approve", "override", "submit")
)
WHY = "The site is down."


@pytest.fixture(autouse=True)
def _policy(db: None) -> None:
    types.define_type("marketing", {"approval": {"above": 0, "by": "approvers"}}, now=utc_now())


def awaiting(author: StaffUser | None = None, **fields: Any) -> ObjectId:
    given = {"type": "marketing", "content": NEWS, "audience": EVERYBODY, **fields}
    made = creation.create(
        BroadcastRequest(**given),
        caller=CALLER,
        author=actors.staff_actor(author.pk) if author is not None else None,
        now=utc_now(),
    )
    return ObjectId(made.document["_id"])


def page(client: Client, broadcast_id: ObjectId) -> str:
    response = client.get(f"{LIST}{broadcast_id}/change/")
    assert response.status_code == 200
    return str(response.content.decode())


def do(client: Client, broadcast_id: ObjectId, what: str, **fields: str) -> Any:
    seen = read(broadcast_id)["approval"].get("fingerprint", "")
    given = {"fingerprint": seen, **fields}
    return client.post(f"{LIST}{broadcast_id}/{what}/", given, follow=True)


def audit(broadcast_id: ObjectId) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(broadcast_id)).order_by("id")
    return [entry.change_message for entry in entries]


def test_approver_sees_what_would_go_and_approves_it() -> None:
    names = recipients(3)
    writer = make_staff("writer", VIEW)
    broadcast_id = awaiting(writer)
    approver = signed_in(make_staff("approver", VIEW, APPROVE))
    text = page(approver, broadcast_id)
    for words in ("Awaits approval", "writer", "It is spring.", "Audience, about", "Approve"):
        assert words in text
    frame = approver.get(f"{LIST}{broadcast_id}/email/")
    assert frame.status_code == 200
    assert "It is spring." in frame.content.decode()
    assert "Approved." in do(approver, broadcast_id, "approve").content.decode()
    assert audit(broadcast_id) == ["Approved."]
    run_to_completion(broadcast_id, at=utc_now())
    assert notified_users(broadcast_id) == names
    assert "Decided by" in page(approver, broadcast_id)
    assert approver.get(f"{LIST}{broadcast_id}/email/").status_code == 404


def test_author_sees_why_another_person_must() -> None:
    writer = make_staff("writer", VIEW, APPROVE)
    broadcast_id = awaiting(writer)
    client = signed_in(writer)
    text = page(client, broadcast_id)
    assert "another person must decide" in text
    assert f"{broadcast_id}/approve/" not in text
    assert "Another person must decide" in do(client, broadcast_id, "approve").content.decode()
    assert (read(broadcast_id)["status"], audit(broadcast_id)) == ("awaiting_approval", [])


def test_second_account_of_the_same_person_is_the_author() -> None:
    first, second = make_staff("ada", VIEW), make_staff("ada.l", VIEW, APPROVE)
    subject = "https://id.example.com 4711"
    OIDC_IDENTITIES().insert_one({"_id": subject, "user_id": first.pk, "created_at": utc_now()})
    broadcast_id = awaiting(first)
    OIDC_IDENTITIES().update_one({"_id": subject}, {"$set": {"user_id": second.pk}})
    do(signed_in(second), broadcast_id, "approve")
    assert read(broadcast_id)["status"] == "awaiting_approval"


def test_superuser_does_not_approve_his_own() -> None:
    root = make_staff("root", superuser=True)
    broadcast_id = awaiting(root)
    do(signed_in(root), broadcast_id, "approve")
    assert read(broadcast_id)["status"] == "awaiting_approval"


def test_rejection_and_override_need_a_reason() -> None:
    client = signed_in(make_staff("approver", VIEW, APPROVE, OVERRIDE))
    for what, status, line in (
        ("reject", "rejected", f"Rejected: {WHY}"),
        ("override", "scheduled", f"Sent without an approval: {WHY}"),
    ):
        broadcast_id = awaiting()
        assert "enter a reason" in do(client, broadcast_id, what, reason=" ").content.decode()
        do(client, broadcast_id, what, reason=WHY)
        assert (read(broadcast_id)["status"], audit(broadcast_id)) == (status, [line])
        assert WHY in page(client, broadcast_id)


def test_each_decision_needs_its_permission() -> None:
    broadcast_id = awaiting()
    for held, refused in ((APPROVE, ("override",)), (OVERRIDE, ("approve", "reject"))):
        client = signed_in(make_staff(held[-12:], VIEW, held))
        text = page(client, broadcast_id)
        for what in refused:
            assert do(client, broadcast_id, what, reason=WHY).status_code == 403
            assert f"{broadcast_id}/{what}/" not in text
    viewer = signed_in(make_staff("viewer", VIEW))
    assert "It is spring." in page(viewer, broadcast_id)
    assert read(broadcast_id)["status"] == "awaiting_approval"


def test_override_asks_for_the_password_again() -> None:
    client = signed_in(make_staff("approver", VIEW, OVERRIDE))
    session = client.session
    del session[reauthentication.SESSION_KEY]
    session.save()
    broadcast_id = awaiting()
    answer = do(client, broadcast_id, "override", reason=WHY)
    assert "Password" in answer.content.decode()
    assert read(broadcast_id)["status"] == "awaiting_approval"


def test_no_role_overrides_and_only_two_approve() -> None:
    known = [VIEW, APPROVE, OVERRIDE, SUBMIT]
    allowed = {role.name: role.permissions for role in roles(known)}
    assert [name for name, own in allowed.items() if OVERRIDE in own] == []
    assert [name for name, own in allowed.items() if APPROVE in own] == ["approver", "admin"]
    assert SUBMIT in allowed["operator"]


def test_whoever_submits_a_draft_is_an_author() -> None:
    broadcast_id = awaiting()
    run_page(broadcast_id, at=utc_now() + approvals.DECIDE_WITHIN)
    operator = make_staff("operator", VIEW, SUBMIT, APPROVE)
    client = signed_in(operator)
    assert "Nobody approved it in time" in page(client, broadcast_id)
    client.post(f"{LIST}{broadcast_id}/submit/")
    assert read(broadcast_id)["status"] == "awaiting_approval"
    do(client, broadcast_id, "approve")
    assert read(broadcast_id)["status"] == "awaiting_approval"


def test_broadcast_of_a_disabled_type_says_so() -> None:
    broadcast_id = awaiting()
    types.define_type("marketing", {"is_active": False}, now=utc_now())
    text = page(signed_in(make_staff("approver", VIEW, APPROVE)), broadcast_id)
    assert "can&#x27;t be shown as it would be sent" in text
    assert f"{broadcast_id}/approve/" not in text


def test_approvers_are_told_once_and_authors_are_not() -> None:
    writer = make_staff("writer", APPROVE)
    make_staff("approver", APPROVE)
    make_staff("viewer", VIEW)
    make_staff("gone", APPROVE)
    StaffUser.objects.filter(username="gone").update(is_active=False)
    recipients(2)
    broadcast_id = awaiting(writer)
    for _ in range(2):
        approvals.tell_approvers(read(broadcast_id), now=utc_now())
    run_page(broadcast_id, at=utc_now())
    (message,) = collection("notifications").find({"type": "system_alert"})
    assert message["user_id"] == "staff:approver"
    assert message["content"]["subject"] == "Approve: marketing to about 2 recipients"
    assert f"/admin/notifications/broadcast/{broadcast_id}/change/" in message["content"]["body"]
    approvals.submit(_expired(broadcast_id), by=actors.staff_actor(writer.pk), now=utc_now())
    run_page(broadcast_id, at=utc_now())
    told = collection("notifications").find({"type": "system_alert"}).sort("_id", 1)
    assert [(one["user_id"], one["content"]["subject"].partition(":")[0]) for one in told] == [
        ("staff:approver", "Approve"),
        ("staff:writer", "Not sent"),
        ("staff:approver", "Approve"),
    ]


def _expired(broadcast_id: ObjectId) -> ObjectId:
    run_page(broadcast_id, at=utc_now() + approvals.DECIDE_WITHIN)
    return broadcast_id


def test_broadcast_that_needs_none_has_no_panel(console: Client) -> None:
    types.define_type("marketing", {"approval": None}, now=utc_now())
    text = page(console, begun(at=utc_now()))
    assert 'aria-labelledby="approval"' not in text
