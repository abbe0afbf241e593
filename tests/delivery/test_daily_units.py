"""Daily caps in the pipeline: no client sends more parts than its caps, and no text is lost."""

from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any

import pytest
from bson import ObjectId

from delivery import pipeline
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from domain.channels import Channel
from domain.content import Content, Recipient
from domain.states import Category, Priority
from domain.wait_reasons import WaitReason, wait_reason
from notifications.catalog import limits
from notifications.store import acceptance, actions, country_units, daily_units
from notifications.store.new_notifications import NewDelivery
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.fakes.provider import (
    ScriptedProvider,
    accepted,
    by_recipient,
    channel_unavailable,
    refused,
    timeout,
)
from tests.support.tables import each_case
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "broker")

HOME, ABROAD = "+447700900123", "+351912345678"
OTHER_CLIENT = ObjectId("d" * 24)
MIDNIGHT = datetime.combine(NOON.date() + timedelta(days=1), time.min, UTC)
TWO_PARTS = Content(subject="Paid", body="a" * 161)


@pytest.fixture(autouse=True)
def caps(settings: Any) -> None:
    settings.SMS_COUNTRIES = ("GB", "PT")
    settings.SMS_DAILY_UNITS, settings.SMS_DAILY_UNITS_ABROAD = 4, 2


def text(number: str = HOME, *, channel: Channel = Channel.SMS, **fields: Any) -> ObjectId:
    recipient = Recipient(phone=number, email="ada@example.com")
    own = {"recipient": recipient, "deliveries": (NewDelivery(channel=channel),)}
    notification = factories.new(**{**own, **fields})
    acceptance.accept([notification], now=NOON)
    return notification.id


def deliver(*ids: ObjectId, at: datetime = NOON, channel: Channel = Channel.SMS) -> BatchReport:
    return pipeline.dispatch(SendingRuntime(), ids, channel=channel, clock=lambda: at)


def state(notification_id: ObjectId) -> dict[str, Any]:
    (delivery,) = factories.read(notification_id)["delivery"]
    return delivery


def statuses(*ids: ObjectId) -> list[str]:
    return [state(notification_id)["status"] for notification_id in ids]


def used(client: ObjectId = CLIENT, at: datetime = NOON) -> tuple[int, int]:
    name = daily_units.counter_id(client, at.date())
    found = collection("daily_units").find_one({"_id": name}) or {}
    return found.get("units", 0), found.get("abroad", 0)


def test_text_beyond_the_cap_is_held_until_midnight_and_then_sent(fcm: ScriptedProvider) -> None:
    ids = [text(content=TWO_PARTS) for _ in range(3)]
    report = deliver(*ids)
    assert statuses(*ids) == ["sent", "sent", "pending"]
    held = state(ids[2])
    assert (held["next_attempt_at"], held["attempt_count"]) == (MIDNIGHT, 0)
    assert (held["failure_code"], held["failure_reason"]) == (
        "over_daily_units",
        "4 of 4 parts are used today, and the text has 2.",
    )
    assert wait_reason(held, now=NOON) is WaitReason.DAILY_UNITS
    assert [wakeup.at for wakeup in report.wakeups] == [MIDNIGHT]
    deliver(ids[2], at=MIDNIGHT)
    assert statuses(ids[2]) == ["sent"]
    assert len(fcm.seen) == 3
    assert (used(), used(at=MIDNIGHT)) == ((4, 0), (2, 0))


def test_outage_does_not_end_a_text_that_a_cap_has_held_for_days(fcm: ScriptedProvider) -> None:
    held, at = text(content=TWO_PARTS), NOON
    for _ in range(4):
        deliver(*[text() for _ in range(4)], at=at)
        deliver(held, at=at)
        assert state(held)["failure_code"] == "over_daily_units"
        at = state(held)["next_attempt_at"]
    fcm.always(channel_unavailable)
    deliver(held, at=at)
    assert (state(held)["status"], state(held)["failure_code"]) == (
        "pending",
        "channel_unavailable",
    )
    fcm.always(accepted)
    deliver(held, at=at + timedelta(hours=1))
    assert statuses(held) == ["sent"]


@pytest.mark.usefixtures("fcm")
def test_fewer_parts_go_abroad() -> None:
    abroad = [text(ABROAD) for _ in range(3)]
    deliver(*abroad)
    home = text()
    deliver(home)
    assert statuses(*abroad, home) == ["sent", "sent", "pending", "sent"]
    assert "of 2 parts abroad" in state(abroad[2])["failure_reason"]
    assert used() == (3, 2)


@pytest.mark.usefixtures("fcm")
def test_cap_of_one_client_holds_no_other_client_of_the_batch() -> None:
    first = [text() for _ in range(6)]
    second = [text(client_id=OTHER_CLIENT) for _ in range(2)]
    deliver(*first, *second)
    assert statuses(*first).count("sent") == 4
    assert statuses(*second) == ["sent", "sent"]
    assert (used(), used(OTHER_CLIENT)) == ((4, 0), (2, 0))


def test_parts_are_counted_by_country_whatever_the_answer_was(fcm: ScriptedProvider) -> None:
    """What a provider may have accepted counts, and what it refused doesn't."""
    fcm.behave = by_recipient({ABROAD: timeout, "+447700900124": refused})
    marketing = {"category": Category.MARKETING}
    deliver(
        text(content=TWO_PARTS),
        text(**marketing),
        text(ABROAD),
        text("+447700900124"),
        text(is_test=True),
    )
    slots = country_units.slots_since(NOON, now=NOON)
    found = {slot["country"]: (slot["units"], slot["asked"]) for slot in slots}
    assert found == {"GB": (3, 2), "PT": (1, 1)}


@pytest.mark.usefixtures("fcm")
def test_days_have_the_parts_of_each_country(settings: Any) -> None:
    settings.SMS_DAILY_UNITS = 0
    for at in (NOON, NOON + timedelta(minutes=20), MIDNIGHT):
        deliver(text(content=TWO_PARTS), text(ABROAD), at=at)
    today, tomorrow = NOON.date(), MIDNIGHT.date()
    days = {today: {"GB": 4, "PT": 2}, tomorrow: {"GB": 2, "PT": 1}}
    assert country_units.days_since(today, provider="fcm") == days
    assert country_units.days_since(tomorrow, provider="fcm") == {tomorrow: {"GB": 2, "PT": 1}}
    assert country_units.days_since(today, provider="fc") == {}


@pytest.mark.usefixtures("fcm")
def test_days_are_no_ten_minutes() -> None:
    """Not even when both are removed at once."""
    deliver(text())
    later = NOON + country_units.KEPT_DAY - country_units.KEPT_SLOT
    assert country_units.slots_since(later - timedelta(hours=1), now=later) == []
    assert country_units.asked_units("GB", since=later - timedelta(1), until=later) == []


@pytest.mark.usefixtures("fcm")
def test_uncounted_country_holds_no_text() -> None:
    one = text()
    with fail_commands("update", "country_units", {"errorCode": 121}, times=9):
        deliver(one)
    assert statuses(one) == ["sent"]


def test_mail_writes_no_counter_of_countries(fcm: ScriptedProvider) -> None:
    deliver(text(channel=Channel.EMAIL), channel=Channel.EMAIL)
    assert collection("country_units").count_documents({}) == 0
    assert len(fcm.seen) == 1


@pytest.mark.usefixtures("fcm")
def test_codes_and_what_ignores_limits_count() -> None:
    """Inflated traffic asks for codes."""
    fields = {"category": Category.ALERT, "priority": Priority.CRITICAL, "ignores_limits": True}
    ids = [text(**fields) for _ in range(5)]
    deliver(*ids)
    assert sorted(statuses(*ids)) == ["pending", "sent", "sent", "sent", "sent"]


@pytest.mark.usefixtures("fcm")
def test_text_that_expires_before_midnight_ends_so_that_the_next_step_begins() -> None:
    steps = (
        NewDelivery(channel=Channel.SMS),
        NewDelivery(channel=Channel.EMAIL, step=2, delay=timedelta(hours=1)),
    )
    deliver(*[text() for _ in range(4)])
    late = text(deliveries=steps, expires_at=MIDNIGHT - timedelta(hours=1))
    report = deliver(late)
    sms, email = factories.read(late)["delivery"]
    assert (sms["status"], sms["failure_code"]) == ("expired", "over_daily_units")
    assert email["next_attempt_at"] == NOON
    assert [(wakeup.channel, wakeup.at) for wakeup in report.wakeups] == [(Channel.EMAIL, NOON)]


def test_refused_text_gives_its_parts_back_and_an_unknown_outcome_keeps_them(
    fcm: ScriptedProvider,
) -> None:
    fcm.behave = by_recipient({HOME: refused, ABROAD: timeout})
    ids = [text(HOME), text(ABROAD)]
    deliver(*ids)
    assert statuses(*ids) == ["failed", "unknown"]
    assert used() == (1, 1)


def test_text_that_is_cancelled_before_its_send_gives_its_parts_back(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [text(content=TWO_PARTS), text()]

    def reach(boundary: Boundary) -> None:
        if boundary is Boundary.RENDERED:
            actions.cancel_pending(ids=ids[:1], reason="Not needed.", now=NOON)

    monkeypatch.setattr(crash_points, "reach", reach)
    deliver(*ids)
    assert statuses(*ids) == ["cancelled", "sent"]
    assert (len(fcm.seen), used()) == (1, (1, 0))


@pytest.mark.usefixtures("fcm")
def test_held_text_gives_back_its_use_of_a_limit() -> None:
    limits.define_limit(
        "daily",
        {
            "types": [],
            "categories": [],
            "channels": ["sms", "email"],
            "max": 5,
            "period_seconds": 86_400,
            "min_gap_seconds": 0,
            "overflow": "later",
        },
        now=NOON,
    )
    try:
        ids = [text() for _ in range(5)]
        deliver(*ids)
        # The held text keeps no slot from the mail that is due after it.
        mail = text(channel=Channel.EMAIL)
        deliver(mail, channel=Channel.EMAIL)
        (counter,) = collection("limit_uses").find()
        assert len(counter["uses"]) == 5
        assert statuses(mail) == ["sent"]
    finally:
        collection("limits").delete_many({})
        limits.invalidate_limits()


@pytest.mark.usefixtures("fcm")
def test_concurrent_workers_stay_below_the_cap(settings: Any) -> None:
    settings.SMS_DAILY_UNITS = 20
    batches = [[text() for _ in range(8)] for _ in range(4)]
    at_once(*[partial(deliver, *batch) for batch in batches])
    ids = [one for batch in batches for one in batch]
    assert statuses(*ids).count("sent") == used()[0] == 20


@pytest.mark.usefixtures("fcm")
def test_uncounted_text_waits_and_is_not_sent() -> None:
    one = text()
    with fail_commands("update", "daily_units", {"errorCode": 121}, times=9):
        deliver(one)
    held = state(one)
    assert (held["status"], held["failure_code"]) == ("pending", "over_daily_units")
    assert held["next_attempt_at"] == NOON + timedelta(seconds=30)
    deliver(one, at=held["next_attempt_at"])
    assert statuses(one) == ["sent"]


@pytest.mark.usefixtures("fcm")
@each_case("caps", [(0, 0), (0, 2)])
def test_without_caps_nothing_is_held(settings: Any, caps: tuple[int, int]) -> None:
    settings.SMS_DAILY_UNITS, settings.SMS_DAILY_UNITS_ABROAD = caps
    ids = [text() for _ in range(6)]
    deliver(*ids)
    assert statuses(*ids) == ["sent"] * 6


@pytest.mark.usefixtures("fcm")
def test_mail_and_test_messages_count_nothing() -> None:
    deliver(text(channel=Channel.EMAIL), channel=Channel.EMAIL)
    deliver(*[text(is_test=True) for _ in range(6)])
    assert collection("daily_units").count_documents({}) == 0
