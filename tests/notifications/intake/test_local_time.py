"""What waits for a time on a person's own clock goes with them when their zone changes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from domain.states import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.api.http.test_fields import next_clock_change
from tests.support.clients.api import Answer, App
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans

DAY = (utc_now() + timedelta(days=3)).strftime("%Y-%m-%d")
NINE = f"{DAY}T09:00"
LISBON, TOKYO, NEW_YORK = "Europe/Lisbon", "Asia/Tokyo", "America/New_York"


def nine_in(zone: str) -> datetime:
    """Return when it is nine o'clock on that day in a zone."""
    return datetime.fromisoformat(NINE).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def lives_in(app: App, zone: str | None, user_id: str = "ada") -> None:
    body = {"email": "ada@example.com"} | ({"timezone": zone} if zone else {})
    assert app.put(f"/recipients/{user_id}", body).status_code in (200, 201)


@pytest.fixture
def ada(app: App) -> App:
    """Register Ada, who lives in Lisbon, with the app."""
    lives_in(app, LISBON)
    return app


def planned(app: App, at: str = NINE, **fields: Any) -> str:
    """Plan a notification for a time on Ada's clock, and return its id."""
    local = {"at": at, **fields.pop("local", {})}
    answer = app.notify(**{"user_id": "ada", "recipient": ..., "scheduled_local": local, **fields})
    assert answer.status_code == 202
    found: str = answer.json()["id"]
    return found


def sent_at(app: App, notification_id: str) -> datetime:
    """Return when a notification is to be sent, by everything that says so."""
    body = app.get(f"/notifications/{notification_id}").json()
    moments = {body["scheduled_at"], body["delivery"][0]["next_attempt_at"]}
    assert len(moments) == 1
    return datetime.fromisoformat(moments.pop())


@pytest.mark.parametrize("zone", [TOKYO, NEW_YORK], ids=["earlier", "later"])
def test_it_is_sent_at_the_same_time_on_the_new_clock(
    ada: App, stored: Callable[[Answer], Any], zone: str
) -> None:
    one = planned(ada, ttl=60)
    assert sent_at(ada, one) == nine_in(LISBON)
    lives_in(ada, zone)
    assert sent_at(ada, one) == nine_in(zone)
    document = stored(ada.get(f"/notifications/{one}"))
    assert (document["status"], document["due_at"]) == ("created", nine_in(zone))
    assert document["expires_at"] == nine_in(zone) + timedelta(seconds=60)


def test_it_follows_every_change_and_back_again(ada: App) -> None:
    one = planned(ada)
    for zone in (TOKYO, NEW_YORK, LISBON):
        lives_in(ada, zone)
        assert sent_at(ada, one) == nine_in(zone)


def test_a_time_the_new_clock_skips_is_the_first_instant_after(app: App) -> None:
    lives_in(app, "UTC")
    day = next_clock_change("Europe/London", forward=True)
    one = planned(app, f"{day}T01:30")
    assert sent_at(app, one) == datetime.fromisoformat(f"{day}T01:30:00Z")
    lives_in(app, "Europe/London")
    assert sent_at(app, one) == datetime.fromisoformat(f"{day}T01:00:00Z")


def test_what_is_over_on_the_new_clock_is_sent_now(app: App, broker: Any) -> None:
    lives_in(app, "UTC")
    one = planned(app, (utc_now() + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M"))
    assert broker.llen("email.high") == 0
    lives_in(app, "Pacific/Kiritimati")
    assert app.get(f"/notifications/{one}").json()["status"] == "queued"
    assert broker.llen("email.high") == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"local": {"timezone": LISBON}},
        {"recipient": {"email": "ada@example.com", "timezone": LISBON}},
        {"scheduled_local": ..., "scheduled_at": nine_in(LISBON).isoformat()},
    ],
    ids=["a zone of its own", "a zone for the recipient", "an instant"],
)
def test_what_names_a_zone_or_an_instant_stays(ada: App, fields: dict[str, Any]) -> None:
    one = planned(ada, **fields)
    lives_in(ada, TOKYO)
    assert sent_at(ada, one) == nine_in(LISBON)


def test_what_was_rescheduled_to_an_instant_stays_there(ada: App) -> None:
    one = planned(ada)
    ada.post(f"/notifications/{one}/reschedule", {"scheduled_at": nine_in(NEW_YORK).isoformat()})
    lives_in(ada, TOKYO)
    assert sent_at(ada, one) == nine_in(NEW_YORK)


def test_what_has_ended_or_been_tried_stays(ada: App) -> None:
    cancelled = planned(ada)
    ada.post(f"/notifications/{cancelled}/cancel")
    now = utc_now()
    planned_too = {"scheduled_local": NINE, "scheduled_at": now, "created_at": now}
    tried = factories.started(at=now, client_id=ada.id, **planned_too).notification_id
    before = [factories.read(tried), ada.get(f"/notifications/{cancelled}").json()]
    lives_in(ada, TOKYO)
    after = [factories.read(tried), ada.get(f"/notifications/{cancelled}").json()]
    assert after == before


def test_nothing_is_written_without_a_change(ada: App) -> None:
    one = planned(ada)
    before = collection("notifications").find_one({})
    lives_in(ada, LISBON)
    lives_in(ada, None)
    assert collection("notifications").find_one({}) == before
    assert sent_at(ada, one) == nine_in(LISBON)


def test_everybody_elses_stays_and_every_apps_goes(ada: App, other_app: App) -> None:
    lives_in(ada, LISBON, user_id="bob")
    theirs, bobs = planned(other_app), planned(ada, user_id="bob")
    lives_in(ada, TOKYO)
    assert sent_at(other_app, theirs) == nine_in(TOKYO), "people are the company's"
    assert sent_at(ada, bobs) == nine_in(LISBON)


def test_it_reads_only_what_it_moves(ada: App) -> None:
    for _ in range(50):
        factories.accepted(client_id=ada.id, channels=(Channel.EMAIL,))
    planned(ada)
    with plans("notifications") as found:
        lives_in(ada, TOKYO)
    read = found[0]
    assert (read.is_indexed, read.examined, read.returned) == (True, 1, 1)
