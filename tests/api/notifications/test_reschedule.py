"""Sending at another time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from access.models import Scope
from domain import time
from domain.states import Channel, DeliveryStatus
from tests.support.clients.api import App, new_app, pointers
from tests.support.factories import notifications as factories

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def at(delta: timedelta) -> str:
    """Return an instant so far from now, as it is sent."""
    return (time.utc_now() + delta).isoformat().replace("+00:00", "Z")


def reschedule(app: App, notification_id: Any, scheduled_at: Any = None) -> Any:
    body = {"scheduled_at": scheduled_at or at(DAY)}
    return app.post(f"/notifications/{notification_id}/reschedule", body)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_it_is_sent_at_the_new_time(app: App) -> None:
    accepted = app.notify().json()
    new_time = at(DAY)
    answer = reschedule(app, accepted["id"], new_time)
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "created"
    assert moment(body["scheduled_at"]) == moment(new_time)
    assert moment(body["delivery"][0]["next_attempt_at"]) == moment(new_time)
    assert (
        app.get(f"/notifications/{accepted['id']}").json()["scheduled_at"] == (body["scheduled_at"])
    )


def test_it_may_be_sent_now_after_all(app: App) -> None:
    accepted = app.notify(scheduled_at=at(DAY)).json()
    body = reschedule(app, accepted["id"], at(timedelta(0))).json()
    assert body["status"] == "queued"


def test_workers_are_told_of_what_is_due_within_a_minute(app: App, broker: Any) -> None:
    accepted = app.notify(scheduled_at=at(DAY)).json()
    assert broker.keys("email.*") == []
    reschedule(app, accepted["id"], at(timedelta(0)))
    assert broker.llen("email.high") == 1


def test_workers_are_not_told_of_what_is_not(app: App, broker: Any) -> None:
    accepted = app.notify(scheduled_at=at(DAY)).json()
    reschedule(app, accepted["id"], at(2 * DAY))
    assert broker.keys("email.*") == []


def test_a_ttl_counts_from_the_new_time(app: App) -> None:
    accepted = app.notify(ttl=600).json()
    body = reschedule(app, accepted["id"]).json()
    assert moment(body["expires_at"]) - moment(body["scheduled_at"]) == timedelta(minutes=10)


def test_so_does_the_ttl_of_its_type(app: App) -> None:
    accepted = app.notify(type="mfa_code", data={"code": "123456", "expires_in": 5}).json()
    before = moment(accepted["expires_at"]) - moment(accepted["created_at"])
    body = reschedule(app, accepted["id"]).json()
    assert moment(body["expires_at"]) - moment(body["scheduled_at"]) == before


def test_an_expiry_at_an_instant_stays(app: App) -> None:
    accepted = app.notify(expires_at=at(2 * DAY)).json()
    assert reschedule(app, accepted["id"]).json()["expires_at"] == accepted["expires_at"]
    answer = reschedule(app, accepted["id"], at(2 * DAY))
    assert answer.status_code == 422
    assert pointers(answer) == {"/scheduled_at": "expires_before_sending"}


@pytest.mark.parametrize("status", [DeliveryStatus.SENT, DeliveryStatus.FAILED])
def test_after_a_try_it_is_too_late(app: App, status: DeliveryStatus) -> None:
    document = factories.settled(status, client_id=app.id)
    answer = reschedule(app, document["_id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "not_possible")


def test_what_is_in_the_inbox_is_too_late(app: App) -> None:
    document = factories.accepted(client_id=app.id, channels=(Channel.EMAIL, Channel.IN_APP))
    assert reschedule(app, document["_id"]).status_code == 409


@pytest.mark.parametrize(
    ("scheduled_at", "code"),
    [
        ("2026-12-01T09:00", "naive_datetime"),
        ("tomorrow", "invalid_datetime"),
        ("2026-02-30T09:00:00Z", "invalid_datetime"),
        (at(-HOUR), "in_the_past"),
        (at(366 * DAY), "too_far_ahead"),
        (5, "wrong_type"),
        ({"$gt": ""}, "wrong_type"),
        ("9" * 41, "out_of_range"),
    ],
    ids=["no zone", "a word", "no such day", "past", "far", "a number", "an operator", "digits"],
)
def test_a_time_that_cannot_be_is_refused(app: App, scheduled_at: Any, code: str) -> None:
    accepted = app.notify().json()
    answer = reschedule(app, accepted["id"], scheduled_at)
    assert answer.status_code == 422
    assert pointers(answer) == {"/scheduled_at": code}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({}, "/scheduled_at"), ({"scheduled_at": None}, "/scheduled_at"), ({"at": "x"}, "/at")],
    ids=str,
)
def test_it_takes_a_time_and_nothing_else(app: App, body: Any, pointer: str) -> None:
    accepted = app.notify().json()
    answer = app.post(f"/notifications/{accepted['id']}/reschedule", body)
    assert answer.status_code == 422
    assert pointer in pointers(answer)


def test_without_a_body_it_is_refused(app: App) -> None:
    accepted = app.notify().json()
    answer = app.post(f"/notifications/{accepted['id']}/reschedule")
    assert (answer.status_code, answer.json()["code"]) == (400, "empty_body")


def test_another_clients_is_not_there(app: App, other_app: App) -> None:
    theirs = other_app.notify().json()
    assert reschedule(app, theirs["id"]).status_code == 404
    assert "scheduled_at" not in factories.read(ObjectId(theirs["id"]))
    for unknown in (ObjectId(), "x", "null"):
        assert reschedule(app, unknown).status_code == 404


def test_it_takes_the_scope_to_write(db: None) -> None:
    assert reschedule(new_app("reader", Scope.NOTIFICATIONS_READ), "a" * 24).status_code == 403
    assert reschedule(new_app("writer", Scope.NOTIFICATIONS_WRITE), "a" * 24).status_code == 404
