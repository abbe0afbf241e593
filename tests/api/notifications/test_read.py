"""Reading notifications: one, its attempts, and lists."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

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
    assert accepted.pop("warnings") == []  # Only an acceptance has them
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


def test_pages_are_complete_for_equal_times(app: App) -> None:
    now = utc_now()
    expected = [str(factories.accepted(client_id=app.id, created_at=now)["_id"]) for _ in range(5)]
    found = [one["id"] for page in pages(app.get, "/notifications", limit=2) for one in page]
    assert sorted(found) == sorted(expected)


def test_new_notifications_do_not_shift_pages(app: App) -> None:
    expected = many(app, 4)
    first = app.get("/notifications", limit=2)
    factories.accepted(client_id=app.id, created_at=utc_now())
    second = app.get("/notifications", limit=2, cursor=first.json()["next"])
    assert ids(first) + ids(second) == expected


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"user_id": "ada"}, 2),
        ({"user_id": "eve"}, 1),
        ({"type": "payment_confirmed"}, 2),
        ({"type": "mfa_code"}, 1),
        ({"category": "transactional"}, 3),
        ({"category": "marketing"}, 0),
        ({"channel": "email"}, 2),
        ({"channel": "in_app"}, 1),
        ({"status": "delivered"}, 1),
        ({"status": "failed"}, 1),
        ({"delivery_status": "failed"}, 1),
        ({"channel": "email", "delivery_status": "delivered"}, 0),
        ({"entity_id": "order-1"}, 1),
        ({"external_id": "e-1"}, 1),
        ({"source": "shop"}, 1),
        ({"source": "sho"}, 0),
        ({"user_id": "ada", "unread": "true"}, 1),
        ({"created_after": "2020-01-01T00:00:00Z"}, 3),
        ({"created_before": "2020-01-01T00:00:00Z"}, 0),
        ({"created_after": "2020-01-01T00:00:00+02:00"}, 3),
    ],
)
def test_filters_narrow_the_list(app: App, filters: dict[str, str], count: int) -> None:
    factories.settled(DeliveryStatus.FAILED, client_id=app.id, entity_id="order-1")
    factories.accepted(
        client_id=app.id, channels=(Channel.IN_APP,), external_id="e-1", source="shop"
    )
    factories.accepted(client_id=app.id, user_id="eve", type="mfa_code")
    assert len(ids(app.get("/notifications", **filters))) == count


def test_recipient_history_has_only_theirs(app: App) -> None:
    mine = many(app, 2)
    many(app, 1, user_id="eve")
    assert ids(app.get("/recipients/ada/notifications")) == mine
    assert app.get("/recipients/ada/notifications", user_id="eve").status_code == 400


def sent(app: App, *channels: Channel, **fields: Any) -> str:
    """Store a notification that was sent, and return its id."""
    document = factories.accepted(client_id=app.id, channels=channels, **fields)
    for channel in channels:
        if channel is not Channel.IN_APP:
            begun = factories.start(factories.claim(document["_id"], channel=channel))
            factories.store.settle(
                [factories.settlement(begun, DeliveryStatus.SENT)], now=utc_now()
            )
    return str(document["_id"])


@pytest.mark.parametrize("channel", list(Channel))
def test_client_marks_notifications_of_every_channel_read_and_unread(
    app: App, channel: Channel
) -> None:
    one = sent(app, channel)
    assert ids(app.get("/notifications", unread="true")) == [one]
    marked = app.post(f"/notifications/{one}/read")
    assert (marked.status_code, marked.json()["is_read"]) == (200, True)
    assert marked.json()["read_at"] is not None
    assert app.post(f"/notifications/{one}/read").json() == marked.json()
    assert app.get(f"/notifications/{one}").json() == marked.json()
    assert ids(app.get("/notifications", unread="true")) == []
    unread = app.post(f"/notifications/{one}/unread").json()
    assert (unread["is_read"], unread["read_at"]) == (False, None)
    assert app.post(f"/notifications/{one}/unread").json() == unread
    assert ids(app.get("/recipients/ada/notifications", unread="true")) == [one]


def test_client_reading_raises_the_in_app_delivery_alone(app: App) -> None:
    one = sent(app, Channel.EMAIL, Channel.IN_APP)
    shown = app.post(f"/notifications/{one}/read").json()
    assert [d["status"] for d in shown["delivery"]] == ["sent", "read"]


def test_unread_combines_with_the_other_filters(app: App) -> None:
    mail, push = sent(app, Channel.EMAIL), sent(app, Channel.PUSH)
    factories.accepted(client_id=app.id)
    assert ids(app.get("/notifications", unread="true")) == [push, mail]
    assert ids(app.get("/notifications", unread="true", channel="push")) == [push]
    assert ids(app.get("/notifications", unread="true", delivery_status="failed")) == []


@pytest.mark.parametrize("action", ["read", "unread"])
def test_unknown_notification_is_not_marked(app: App, other_app: App, action: str) -> None:
    theirs = sent(other_app, Channel.EMAIL)
    for name in (theirs, str(ObjectId()), "x", "%24ne", "a" * 25):
        assert app.post(f"/notifications/{name}/{action}").status_code == 404
    one = sent(app, Channel.EMAIL)
    answer = app.post(f"/notifications/{one}/{action}?user_id=ada")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter")
    assert app.get(f"/notifications/{one}").json()["is_read"] is False


def test_read_all_marks_what_was_sent_on_any_channel(app: App, other_app: App) -> None:
    for channels in ([Channel.IN_APP, Channel.EMAIL], [Channel.EMAIL], [Channel.PUSH]):
        sent(app, *channels)
    factories.accepted(client_id=app.id)
    sent(other_app, Channel.IN_APP)
    assert app.post("/recipients/ada/notifications/read-all").json() == {"updated": 3}
    assert app.post("/recipients/ada/notifications/read-all").json() == {"updated": 0}
    unsent, *others = app.get("/recipients/ada/notifications").json()["results"]
    assert unsent["is_read"] is False
    assert all(one["is_read"] and one["read_at"] for one in others)
    assert app.get("/recipients/ada/notifications", unread="true").json()["results"] == []


def test_large_numbers_are_returned_unchanged(app: App) -> None:
    data = {"order_id": 2**63 - 1, "video_title": "S", "amount": -(2**63), "list": [2**40, 1.5]}
    accepted = app.notify(data=data).json()
    assert accepted["data"] == data
    assert app.get(f"/notifications/{accepted['id']}").json()["data"] == data
