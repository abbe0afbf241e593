"""Quiet hours on dispatch: the recipient's current time zone applies."""

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
    one = ScriptedProvider()
    monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: (one,))
    return one


def move_to(zone: str) -> None:
    """Register Ada, with quiet hours from 22:00 to 07:00, in a time zone."""
    ada = {"is_active": True, "preferences": {}, "quiet_hours": NIGHT, "timezone": zone}
    collection("recipients").update_one({"_id": "ada"}, {"$set": ada}, upsert=True)


def seven_in(zone: str, *, after: datetime) -> datetime:
    """Return the next 07:00 of a time zone."""
    there = after.astimezone(ZoneInfo(zone))
    seven = datetime.combine(there.date(), time(7), there.tzinfo)
    later = datetime.combine(there.date() + timedelta(days=1), time(7), there.tzinfo)
    return min(one for one in (seven, later) if one > there).astimezone(UTC)


def dispatch_at(
    notification_id: ObjectId, *, at: datetime
) -> tuple[str, str | None, datetime | None]:
    """Dispatch and return status, failure code, and next attempt time."""
    dispatcher.dispatch([notification_id], channel=Channel.EMAIL, clock=lambda: at)
    one = factories.delivery(factories.read(notification_id))
    return one["status"], one.get("failure_code"), one.get("next_attempt_at")


def test_delivery_waits_for_the_morning_in_the_new_time_zone(provider: ScriptedProvider) -> None:
    move_to(LISBON)
    notification_id = accepted()["_id"]
    move_to(AUCKLAND)
    morning = seven_in(AUCKLAND, after=NOON)
    assert dispatch_at(notification_id, at=NOON) == ("pending", "quiet_hours", morning)
    assert provider.seen == []


def test_deferred_delivery_is_deferred_again_in_a_new_time_zone(provider: ScriptedProvider) -> None:
    move_to(LISBON)
    night = datetime.combine(NOON.date(), time(23), ZoneInfo(LISBON)).astimezone(UTC)
    notification_id = accepted(created_at=night)["_id"]
    morning = seven_in(LISBON, after=night)
    assert dispatch_at(notification_id, at=night) == ("pending", "quiet_hours", morning)
    move_to(NEW_YORK)
    later = seven_in(NEW_YORK, after=morning)
    assert dispatch_at(notification_id, at=morning) == ("pending", "quiet_hours", later)
    assert provider.seen == []
    assert dispatch_at(notification_id, at=later)[0] == "sent"


def test_delivery_that_expires_in_the_new_quiet_hours_expires(provider: ScriptedProvider) -> None:
    move_to(LISBON)
    notification_id = accepted(expires_at=NOON + timedelta(hours=1))["_id"]
    move_to(AUCKLAND)
    assert dispatch_at(notification_id, at=NOON)[:2] == ("expired", "quiet_hours")
    assert provider.seen == []


def test_critical_delivery_ignores_the_new_time_zone(provider: ScriptedProvider) -> None:
    move_to(AUCKLAND)
    assert dispatch_at(accepted(priority=Priority.CRITICAL)["_id"], at=NOON)[0] == "sent"
