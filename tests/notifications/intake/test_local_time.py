"""Local send times follow the recipient's time zone."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from domain.channels import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App
from tests.support.factories import notifications as factories
from tests.support.factories.requests import next_clock_change
from tests.support.mongo.query_plans import plans

DAY = (utc_now() + timedelta(days=3)).strftime("%Y-%m-%d")
NINE = f"{DAY}T09:00"
LISBON, TOKYO, NEW_YORK = "Europe/Lisbon", "Asia/Tokyo", "America/New_York"


def nine_oclock_in(zone: str) -> datetime:
    """Return 09:00 of the tested day in a time zone."""
    return datetime.fromisoformat(NINE).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def set_zone(app: App, zone: str | None, user_id: str = "ada") -> None:
    body = {"email": "ada@example.com"} | ({"timezone": zone} if zone else {})
    assert app.put(f"/recipients/{user_id}", body).status_code in (200, 201)


@pytest.fixture
def ada(app: App) -> App:
    """Register Ada with the time zone of Lisbon."""
    set_zone(app, LISBON)
    return app


def schedule(app: App, at: str = NINE, **fields: Any) -> str:
    local = {"at": at, **fields.pop("local", {})}
    answer = app.notify(**{"user_id": "ada", "recipient": ..., "scheduled_local": local, **fields})
    assert answer.status_code == 202
    found: str = answer.json()["id"]
    return found


def sent_at(app: App, notification_id: str) -> datetime:
    """Return a notification's send time, which must be the same in all fields."""
    body = app.get(f"/notifications/{notification_id}").json()
    moments = {body["scheduled_at"], body["delivery"][0]["next_attempt_at"]}
    assert len(moments) == 1
    return datetime.fromisoformat(moments.pop())


@pytest.mark.parametrize("zone", [TOKYO, NEW_YORK], ids=["earlier", "later"])
def test_local_time_follows_the_zone(ada: App, stored: Callable[[Answer], Any], zone: str) -> None:
    notification_id = schedule(ada, ttl=60)
    assert sent_at(ada, notification_id) == nine_oclock_in(LISBON)
    set_zone(ada, zone)
    assert sent_at(ada, notification_id) == nine_oclock_in(zone)
    document = stored(ada.get(f"/notifications/{notification_id}"))
    assert (document["status"], document["due_at"]) == ("created", nine_oclock_in(zone))
    assert document["expires_at"] == nine_oclock_in(zone) + timedelta(seconds=60)


def test_skipped_local_time_is_the_first_instant_after(app: App) -> None:
    set_zone(app, "UTC")
    day = next_clock_change("Europe/London")
    notification_id = schedule(app, f"{day}T01:30")
    assert sent_at(app, notification_id) == datetime.fromisoformat(f"{day}T01:30:00Z")
    set_zone(app, "Europe/London")
    assert sent_at(app, notification_id) == datetime.fromisoformat(f"{day}T01:00:00Z")


def test_past_local_time_is_due_now(app: App, broker: Any) -> None:
    set_zone(app, "UTC")
    notification_id = schedule(app, (utc_now() + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M"))
    assert broker.llen("email.high") == 0
    set_zone(app, "Pacific/Kiritimati")
    assert app.get(f"/notifications/{notification_id}").json()["status"] == "queued"
    assert broker.llen("email.high") == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"local": {"timezone": LISBON}},
        {"recipient": {"email": "ada@example.com", "timezone": LISBON}},
        {"scheduled_local": ..., "scheduled_at": nine_oclock_in(LISBON).isoformat()},
    ],
    ids=["a zone of its own", "a zone for the recipient", "an instant"],
)
def test_explicit_zone_or_instant_is_kept(ada: App, fields: dict[str, Any]) -> None:
    notification_id = schedule(ada, **fields)
    set_zone(ada, TOKYO)
    assert sent_at(ada, notification_id) == nine_oclock_in(LISBON)


def test_rescheduled_instant_is_kept(ada: App) -> None:
    notification_id = schedule(ada)
    ada.post(
        f"/notifications/{notification_id}/reschedule",
        {"scheduled_at": nine_oclock_in(NEW_YORK).isoformat()},
    )
    set_zone(ada, TOKYO)
    assert sent_at(ada, notification_id) == nine_oclock_in(NEW_YORK)


def test_ended_or_attempted_notifications_are_kept(ada: App) -> None:
    cancelled = schedule(ada)
    ada.post(f"/notifications/{cancelled}/cancel")
    now = utc_now()
    scheduled = {"scheduled_local": NINE, "scheduled_at": now, "created_at": now}
    tried = factories.started(at=now, client_id=ada.id, **scheduled).notification_id
    before = [factories.read(tried), ada.get(f"/notifications/{cancelled}").json()]
    set_zone(ada, TOKYO)
    assert [factories.read(tried), ada.get(f"/notifications/{cancelled}").json()] == before


def test_unchanged_time_zone_writes_nothing(ada: App) -> None:
    notification_id = schedule(ada)
    before = collection("notifications").find_one({})
    set_zone(ada, LISBON)
    set_zone(ada, None)
    assert collection("notifications").find_one({}) == before
    assert sent_at(ada, notification_id) == nine_oclock_in(LISBON)


def test_time_zone_moves_notifications_of_all_clients(ada: App, other_app: App) -> None:
    set_zone(ada, LISBON, user_id="bob")
    others, bobs = schedule(other_app), schedule(ada, user_id="bob")
    set_zone(ada, TOKYO)
    assert sent_at(other_app, others) == nine_oclock_in(TOKYO), "recipients are shared by clients"
    assert sent_at(ada, bobs) == nine_oclock_in(LISBON)


def test_time_zone_change_reads_only_notifications_of_the_person(ada: App) -> None:
    for _ in range(50):
        factories.accepted(client_id=ada.id, channels=(Channel.EMAIL,), user_id="grace")
    schedule(ada)
    with plans("notifications") as found:
        set_zone(ada, TOKYO)
    read = found[0]
    assert (read.is_indexed, read.examined, read.returned) == (True, 1, 1)
