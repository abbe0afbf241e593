"""Reading notifications: one, its attempts, and lists."""

from datetime import timedelta
from typing import Any

from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from tests.support.clients.api import App, pages
from tests.support.factories import notifications as factories


def many(app: App, count: int, **fields: Any) -> list[str]:
    """Store notifications, one a minute, and return their ids, newest first."""
    start = utc_now() - timedelta(days=1)
    times = [start + timedelta(minutes=n) for n in range(count)]
    accepted = [factories.accepted(client_id=app.id, created_at=at, **fields) for at in times]
    return [str(document["_id"]) for document in accepted][::-1]


def ids(answer: Any) -> list[str]:
    return [one["id"] for one in answer.json()["results"]]


def test_notification_is_read_as_accepted(app: App) -> None:
    accepted = app.notify(user_id="ada", external_id="e-1").json()
    assert app.get(f"/notifications/{accepted['id']}").json() == accepted


def test_attempts_have_the_provider_response(app: App) -> None:
    document = factories.settled(DeliveryStatus.FAILED, client_id=app.id)
    (attempt,) = app.get(f"/notifications/{document['_id']}/attempts").json()["results"]
    assert attempt["attempt_number"] == 1
    assert attempt["status"] == "failed"
    assert attempt["error_code"] == "provider_error"
    assert attempt["platform_response"] == {"status": 503}
    assert attempt["duration_ms"] == 12


def test_attempts_refuse_unknown_parameters(app: App) -> None:
    accepted = app.notify(user_id="ada").json()
    answer = app.get(f"/notifications/{accepted['id']}/attempts?channel=email")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter")


def test_list_is_newest_first_and_paginated(app: App) -> None:
    expected = many(app, 7)
    found = [[one["id"] for one in page] for page in pages(app.get, "/notifications", limit=3)]
    assert found == [expected[:3], expected[3:6], expected[6:]]


def test_recipient_history_has_only_theirs(app: App) -> None:
    mine = many(app, 2)
    many(app, 1, user_id="eve")
    assert ids(app.get("/recipients/ada/notifications")) == mine
    assert app.get("/recipients/ada/notifications", user_id="eve").status_code == 400


def test_read_all_marks_delivered_in_app_notifications(app: App, other_app: App) -> None:
    factories.accepted(client_id=app.id, channels=(Channel.IN_APP, Channel.EMAIL))
    factories.accepted(client_id=app.id, channels=(Channel.IN_APP,))
    factories.accepted(client_id=other_app.id, channels=(Channel.IN_APP,))
    assert app.post("/recipients/ada/notifications/read-all").json() == {"updated": 2}
    assert app.post("/recipients/ada/notifications/read-all").json() == {"updated": 0}
    one = app.get("/recipients/ada/notifications").json()["results"][0]
    assert one["is_read"] is True
    assert one["read_at"] is not None
    assert app.get("/recipients/ada/notifications", unread="true").json()["results"] == []


def test_large_numbers_are_returned_unchanged(app: App) -> None:
    data = {"order_id": 2**63 - 1, "video_title": "S", "amount": -(2**63), "list": [2**40, 1.5]}
    accepted = app.notify(data=data).json()
    assert accepted["data"] == data
    assert app.get(f"/notifications/{accepted['id']}").json()["data"] == data
