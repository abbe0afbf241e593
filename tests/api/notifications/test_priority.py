"""The priority of a notification: its type's limit, and the scope for critical ones."""

from typing import Any

import pytest
from django.core.management import call_command

from access.models import Scope
from domain.states import Priority
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, pointers, request
from tests.support.tables import each_case

PROMOTION = {"type": "marketing", "content": {"subject": "New", "body": "Look."}, "data": {}}
CODE = {"type": "mfa_code", "data": {"code": "123456", "expires_in": 5}}
KIND = {"name": "Parcel lost", "category": "transactional", "channels": ["email"]}
URGENCY = list(Priority)


@pytest.fixture
def sender(app: App) -> App:
    """Return a client without the scope for critical notifications."""
    return new_app("sender", Scope.NOTIFICATIONS_WRITE, Scope.NOTIFICATIONS_READ)


def test_marketing_is_never_critical(app: App) -> None:
    for path in ("/notifications", "/notifications/preview"):
        answer = app.post(path, request(**PROMOTION, priority="critical"))
        assert (answer.status_code, pointers(answer)) == (422, {"/priority": "priority_too_high"})
    everyone = {**PROMOTION, "audience": {"all": True}, "priority": "critical"}
    assert pointers(app.post("/broadcasts", everyone))["/priority"] == "priority_too_high"
    assert app.notify(**PROMOTION, priority="high").status_code == 202


@each_case("limit", Priority)
def test_priority_above_the_types_limit_is_refused(app: App, limit: Priority) -> None:
    kind = {**KIND, "priority": "low", "max_priority": limit}
    assert app.put("/types/parcel_lost", kind).json()["max_priority"] == limit
    for priority in Priority:
        fields: dict[str, Any] = {**PROMOTION, "type": "parcel_lost", "priority": priority}
        answer = app.notify(**fields)
        is_allowed = URGENCY.index(priority) >= URGENCY.index(limit)
        assert (answer.status_code == 202) is is_allowed, priority
        if not is_allowed:
            assert limit in answer.json()["errors"][0]["detail"]


def test_limit_below_the_types_own_priority_is_refused(app: App) -> None:
    kind = {**KIND, "priority": "high", "max_priority": "normal"}
    assert pointers(app.put("/types/parcel_lost", kind)) == {"/max_priority": "below_priority"}
    unknown = {**KIND, "max_priority": "urgent"}
    assert pointers(app.put("/types/parcel_lost", unknown)) == {"/max_priority": "unknown_value"}


def test_type_of_an_older_release_limits_marketing_only(app: App) -> None:
    collection("notification_types").update_many({}, {"$unset": {"max_priority": ""}})
    shown = {slug: app.get(f"/types/{slug}").json() for slug in ("marketing", "alert", "mfa_code")}
    limits = {slug: kind["max_priority"] for slug, kind in shown.items()}
    assert limits == {"marketing": "high", "alert": "critical", "mfa_code": "critical"}


@pytest.mark.parametrize("fields", [CODE, {"priority": "critical"}], ids=["by type", "by request"])
def test_critical_notification_needs_its_scope(sender: App, fields: dict[str, Any]) -> None:
    for path in ("/notifications", "/notifications/preview"):
        answer = sender.post(path, request(**fields))
        assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
        assert "notifications:critical" in answer.json()["detail"]
    assert collection("notifications").count_documents({}) == 0
    trusted = new_app("trusted", Scope.NOTIFICATIONS_WRITE, Scope.NOTIFICATIONS_CRITICAL)
    assert trusted.notify(**fields).status_code == 202


def test_bulk_refuses_only_the_critical_items_of_a_client_without_the_scope(sender: App) -> None:
    body = {"notifications": [request(), request(priority="critical"), request(**CODE)]}
    headers = {"Idempotency-Key": "k"}
    first, again = (sender.post("/notifications/bulk", body, headers=headers) for _ in range(2))
    errors = [result.get("error", {}) for result in first.json()["results"]]
    assert [error.get("status") for error in errors] == [None, 403, 403]
    assert {error["code"] for error in errors[1:]} == {"insufficient_scope"}
    assert [result.get("id") for result in again.json()["results"]] == [
        result.get("id") for result in first.json()["results"]
    ]
    assert [result.get("error", {}).get("code") for result in again.json()["results"]] == [
        error.get("code") for error in errors
    ]


def test_command_may_send_critical_notifications(app: App) -> None:
    variables = ["code=123456", "expires_in=5"]
    call_command("notify", type="mfa_code", email="ada@example.com", data=variables)
    stored = collection("notifications").find_one({})
    assert stored is not None
    assert stored["priority"] == "critical"
