"""The routes of approvals: who may decide, about what, and what is recorded."""

from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry

from access.clients import registry
from access.models import Scope
from domain.time import utc_now
from notifications.catalog import types
from tests.support.clients.api import Answer, App, new_app
from tests.support.factories.broadcasts import notified_users, recipients, run_to_completion

pytestmark = pytest.mark.usefixtures("broker")
PATH = "/broadcasts"
BODY = {
    "type": "marketing",
    "audience": {"all": True},
    "content": {"subject": "Spring", "body": "It is spring."},
}
APPROVER = (Scope.BROADCASTS_APPROVE,)
WHY = "The site is down."


@pytest.fixture(autouse=True)
def _policy(db: None) -> None:
    types.define_type("marketing", {"approval": {"above": 0, "by": "approvers"}}, now=utc_now())


@pytest.fixture
def approver() -> App:
    return new_app("approver", *APPROVER)


def created(app: App, **fields: Any) -> str:
    answer = app.post(PATH, {**BODY, **fields})
    assert answer.status_code == 202
    assert answer.json()["status"] == "awaiting_approval"
    return str(answer.json()["id"])


def reviewed(app: App, key: str) -> dict[str, Any]:
    answer = app.get(f"{PATH}/{key}/review")
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


def decide(app: App, key: str, what: str, **fields: Any) -> Answer:
    found = app.get(f"{PATH}/{key}/review").json() if "fingerprint" not in fields else {}
    seen = found.get("broadcast", {}).get("approval", {}).get("fingerprint", "0" * 64)
    return app.post(f"{PATH}/{key}/{what}", {"fingerprint": seen, **fields})


def run(key: str) -> None:
    run_to_completion(ObjectId(key), at=utc_now())


def test_another_client_sees_and_approves_it(app: App, approver: App) -> None:
    names = recipients(2)
    key = created(app)
    run(key)
    assert notified_users(ObjectId(key)) == []
    (listed,) = approver.get(f"{PATH}/awaiting").json()["results"]
    assert listed["id"] == key
    review = reviewed(approver, key)
    assert review["broadcast"]["content"]["body"] == "It is spring."
    assert (review["preview"]["audience_size"], review["preview"]["accepted"]) == (2, 2)
    (message,) = review["messages"]
    assert (message["channel"], message["subject"]) == ("email", "Spring")
    answer = decide(approver, key, "approve")
    assert (answer.status_code, answer.json()["status"]) == (200, "scheduled")
    run(key)
    assert notified_users(ObjectId(key)) == names
    assert approver.get(f"{PATH}/awaiting").json()["results"] == []
    (entry,) = LogEntry.objects.filter(object_id=key)
    assert entry.change_message == "By client approver: Approved."


def test_repeated_approval_is_the_same_answer(app: App, approver: App) -> None:
    key = created(app)
    seen = reviewed(approver, key)["broadcast"]["approval"]["fingerprint"]
    first, again = (decide(approver, key, "approve", fingerprint=seen) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()


def test_nobody_approves_his_own_with_whatever_scopes(db: None) -> None:
    own = new_app("all")
    key = created(own)
    for what, extra in (("approve", {}), ("reject", {"reason": WHY})):
        answer = decide(own, key, what, **extra)
        assert answer.status_code == 409
        assert "Another person" in answer.json()["detail"]
    answer = decide(own, key, "override", reason=WHY)
    assert answer.json()["status"] == "scheduled"
    assert answer.json()["approval"]["reason"] == WHY
    (entry,) = LogEntry.objects.filter(object_id=key)
    assert entry.change_message == f"By client all: Sent without an approval: {WHY}"


def test_scopes_of_decisions_are_not_part_of_admin(app: App) -> None:
    admin = new_app("admin", Scope.ADMIN)
    key = created(app)
    answer = decide(admin, key, "override", reason=WHY)
    assert answer.status_code == 403
    assert decide(admin, key, "approve").status_code == 403


def test_change_makes_a_draft_and_is_submitted_again(app: App, approver: App) -> None:
    recipients(1)
    key = created(app)
    seen = reviewed(approver, key)["broadcast"]["approval"]["fingerprint"]
    other = {**BODY, "content": {"subject": "Summer", "body": "It is summer."}}
    changed = app.put(f"{PATH}/{key}", other)
    assert (changed.status_code, changed.json()["status"]) == (200, "draft")
    assert changed.json()["content"]["body"] == "It is summer."
    assert decide(approver, key, "approve", fingerprint=seen).status_code == 404
    submitted = app.post(f"{PATH}/{key}/submit")
    assert (submitted.status_code, submitted.json()["status"]) == (202, "awaiting_approval")
    assert decide(approver, key, "approve", fingerprint=seen).status_code == 409
    assert decide(approver, key, "approve").status_code == 200


def test_rejection_says_why(app: App, approver: App) -> None:
    key = created(app)
    for wrong in ({}, {"reason": " "}, {"reason": "Wrong\ndate."}):
        assert decide(approver, key, "reject", **wrong).status_code == 422
    assert decide(approver, key, "reject", reason="Wrong date.").json()["status"] == "rejected"
    own = app.get(f"{PATH}/{key}").json()
    assert (own["status"], own["approval"]["reason"]) == ("rejected", "Wrong date.")


def test_approver_sees_only_what_awaits_an_approval(app: App, approver: App) -> None:
    types.define_type("marketing", {"approval": None}, now=utc_now())
    key = app.post(PATH, BODY).json()["id"]
    assert approver.get(f"{PATH}/{key}/review").status_code == 404
    for what in ("approve", "reject", "override"):
        assert decide(new_app(what), key, what, reason=WHY).status_code in (404, 422)
    assert approver.get(f"{PATH}/{key}").status_code == 403


def test_broadcast_without_an_approval_is_not_changed(app: App) -> None:
    types.define_type("marketing", {"approval": None}, now=utc_now())
    key = app.post(PATH, BODY).json()["id"]
    assert app.put(f"{PATH}/{key}", BODY).status_code == 409
    assert app.post(f"{PATH}/{key}/submit").status_code == 409


def test_key_that_requires_an_approval(db: None) -> None:
    types.define_type("marketing", {"approval": None}, now=utc_now())
    recipients(1)
    now = utc_now()
    client_id = registry.create_client(
        name="shop", scopes=[Scope.NOTIFICATIONS_WRITE, Scope.NOTIFICATIONS_READ], now=now
    )
    free, bound = (
        App(
            id=client_id,
            key=registry.issue_key(
                client_id=client_id, now=now, requires_approval=requires_approval
            ).text,
        )
        for requires_approval in (False, True)
    )
    assert free.post(PATH, BODY).json()["status"] == "running"
    assert bound.post(PATH, BODY).json()["status"] == "awaiting_approval"
    assert bound.post(f"{PATH}/preview", BODY).json()["needs_approval"] is True
    assert free.post(f"{PATH}/preview", BODY).json()["needs_approval"] is False
