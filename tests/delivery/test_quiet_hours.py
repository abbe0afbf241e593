"""Quiet hours are those of the zone a person is in when something is to be sent to them.

Whatever zone they were in when it was accepted, or put off.
"""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from bson import ObjectId

from delivery import dispatcher
from domain.states import Channel, Priority
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted
from tests.support.fakes.provider import ScriptedProvider

pytestmark = pytest.mark.usefixtures("db")

LISBON, NEW_YORK, AUCKLAND = "Europe/Lisbon", "America/New_York", "Pacific/Auckland"
NIGHT = {"enabled": True, "start": "22:00", "end": "07:00"}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """Have one provider serve every channel."""
    one = ScriptedProvider()
    monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: (one,))
    return one


def is_in(zone: str) -> None:
    """Let Ada, who sleeps from 22:00 to 07:00, be in a zone from now on."""
    ada = {"is_active": True, "preferences": {}, "quiet_hours": NIGHT, "timezone": zone}
    collection("recipients").update_one({"_id": "ada"}, {"$set": ada}, upsert=True)


def seven_in(zone: str, *, after: datetime) -> datetime:
    """Return when it is next seven o'clock in a zone."""
    there = after.astimezone(ZoneInfo(zone))
    seven = datetime.combine(there.date(), time(7), there.tzinfo)
    later = datetime.combine(there.date() + timedelta(days=1), time(7), there.tzinfo)
    return min(one for one in (seven, later) if one > there).astimezone(UTC)


def delivered(
    notification_id: ObjectId, *, at: datetime
) -> tuple[str, str | None, datetime | None]:
    """Let a worker deliver, and return where it stands, why, and until when."""
    dispatcher.dispatch([notification_id], channel=Channel.EMAIL, clock=lambda: at)
    one = factories.delivery(factories.read(notification_id))
    return one["status"], one.get("failure_code"), one.get("next_attempt_at")


def test_who_has_gone_to_bed_elsewhere_since_is_not_woken(provider: ScriptedProvider) -> None:
    is_in(LISBON)
    notification_id = accepted()["_id"]
    is_in(AUCKLAND)
    morning = seven_in(AUCKLAND, after=NOON)
    assert delivered(notification_id, at=NOON) == ("pending", "quiet_hours", morning)
    assert provider.seen == []


def test_what_was_put_off_is_put_off_again_if_it_is_night_where_they_are_by_then(
    provider: ScriptedProvider,
) -> None:
    is_in(LISBON)
    night = datetime.combine(NOON.date(), time(23), ZoneInfo(LISBON)).astimezone(UTC)
    notification_id = accepted(created_at=night)["_id"]
    morning = seven_in(LISBON, after=night)
    assert delivered(notification_id, at=night) == ("pending", "quiet_hours", morning)
    is_in(NEW_YORK)
    later = seven_in(NEW_YORK, after=morning)
    assert delivered(notification_id, at=morning) == ("pending", "quiet_hours", later)
    assert provider.seen == []
    assert delivered(notification_id, at=later)[0] == "sent"


def test_what_would_expire_in_the_night_they_are_in_now_expires(provider: ScriptedProvider) -> None:
    is_in(LISBON)
    notification_id = accepted(expires_at=NOON + timedelta(hours=1))["_id"]
    is_in(AUCKLAND)
    assert delivered(notification_id, at=NOON)[:2] == ("expired", "quiet_hours")
    assert provider.seen == []


def test_what_is_critical_is_sent_wherever_they_are(provider: ScriptedProvider) -> None:
    is_in(AUCKLAND)
    notification_id = accepted(priority=Priority.CRITICAL)["_id"]
    assert delivered(notification_id, at=NOON)[0] == "sent"
