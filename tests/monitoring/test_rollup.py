"""The roll-up of metrics: equal to a recount, after repeats and late news, and by command."""

import io
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from analytics import metrics, rollup_state
from analytics.metrics import MetricValue
from analytics.models import Interval
from background import tasks
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from monitoring import rollup
from notifications import store
from notifications.store import AttemptReference, DeliveryReceipt
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.mongo.metrics_recount import recounted, stored

pytestmark = pytest.mark.usefixtures("db")


S = DeliveryStatus

MINUTE = Interval.MINUTE

HOUR = Interval.HOUR

DAY = Interval.DAY

NOON = factories.NOON

MIDNIGHT = NOON.replace(hour=0)

DAY_LATER = MIDNIGHT + timedelta(days=1)

A_MINUTE = timedelta(minutes=1)


def report(document: Any, status: DeliveryStatus, *, at: datetime, now: datetime) -> None:
    """Have the provider report on the first attempt of a mail."""
    one = DeliveryReceipt(
        reference=AttemptReference(document["_id"], Channel.EMAIL, 1),
        status=status,
        at=at,
        provider="sendgrid",
        code=FailureCode.BOUNCED if status is S.FAILED else None,
    )
    assert store.apply_receipt(one, now=now)


def broken(*_: Any, **__: Any) -> None:
    raise ConnectionError


def traffic(at: datetime = NOON) -> dict[str, Any]:
    """Store a bit of everything, within ten minutes."""
    made: dict[str, Any] = {}
    made["sent"] = factories.settled(S.SENT, at=at, created_at=at)
    made["read"] = factories.settled(S.SENT, at=at, created_at=at, type="system_alert")
    report(made["read"], S.READ, at=at + A_MINUTE, now=at + A_MINUTE)
    made["failed"] = factories.settled(S.FAILED, at=at + A_MINUTE, created_at=at + A_MINUTE)
    made["unknown"] = factories.settled(S.UNKNOWN, at=at + A_MINUTE, created_at=at + A_MINUTE)
    made["waiting"] = factories.settled(S.PENDING, at=at + A_MINUTE, created_at=at)
    made["twice"] = factories.settled(S.PENDING, at=at, created_at=at)
    later = at + timedelta(minutes=6)
    again = factories.start(factories.claim(made["twice"]["_id"], at=later), at=later)
    store.settle([factories.settlement(again, S.SENT, at=later)], now=later)
    made["test"] = factories.settled(S.SENT, at=at, created_at=at, is_test=True)
    factories.accepted(created_at=at, channels=(Channel.IN_APP, Channel.EMAIL))
    cancelled = factories.accepted(created_at=at)
    store.cancel(
        notification_id=cancelled["_id"], channels=[Channel.EMAIL], reason="No.", now=at + A_MINUTE
    )
    return made


def roll(now: datetime) -> None:
    """Have everything that is due counted."""
    assert rollup.run(now=now) is not None


def assert_right() -> None:
    """The minutes, the hours and the day are what a recount says."""
    wanted = +recounted(MIDNIGHT, DAY_LATER)
    for interval in Interval:
        assert stored(interval, MIDNIGHT, DAY_LATER) == wanted, interval
    for minutes in range(8):
        start = NOON + minutes * A_MINUTE
        assert stored(MINUTE, start, start + A_MINUTE) == +recounted(start, start + A_MINUTE)


def everything() -> list[dict[str, Any]]:
    return list(collection("metrics_aggregates").find({}, {"purge_at": 0}).sort("_id", 1))


def test_the_figures_are_what_a_recount_says() -> None:
    traffic()
    roll(NOON + timedelta(minutes=7))
    assert_right()
    counts = stored(DAY, MIDNIGHT, DAY_LATER)
    assert counts[("sent", "email", "payment_confirmed", "sendgrid")] == 2
    assert counts[("read", "email", "system_alert", "sendgrid")] == 1
    assert counts[("failed", "email", "payment_confirmed", "sendgrid provider_error")] == 1
    assert counts[("retried", "email", "payment_confirmed", "sendgrid")] == 2
    assert counts[("unknown", "email", "payment_confirmed", "sendgrid")] == 1
    assert counts[("withheld", "email", "payment_confirmed", "cancelled")] == 1
    assert counts[("accepted", "in_app", "payment_confirmed", "")] == 1


def test_twice_is_as_good_as_once() -> None:
    traffic()
    now = NOON + timedelta(minutes=7)
    roll(now)
    once = everything()
    roll(now + timedelta(seconds=30))
    rollup.rebuild(since=NOON, until=now, now=now)
    rollup.rebuild(since=NOON, until=now, now=now)
    assert everything() == once
    assert_right()


def test_a_late_receipt_changes_the_figures_of_the_minute_of_its_attempt() -> None:
    made = traffic()
    roll(NOON + timedelta(minutes=7))
    late = NOON + timedelta(hours=6)
    report(made["sent"], S.FAILED, at=late, now=late)
    report(made["unknown"], S.DELIVERED, at=NOON + 2 * A_MINUTE, now=late)
    roll(late + A_MINUTE)
    due = collection("metrics_due").find_one({"minute": NOON})
    assert due is not None, "an old minute waits until more of its news has come"
    assert due["due_at"] < late + timedelta(hours=1)
    roll(late + timedelta(hours=1))
    assert_right()
    counts = stored(DAY, MIDNIGHT, DAY_LATER)
    assert counts[("failed", "email", "payment_confirmed", "sendgrid bounced")] == 1
    assert collection("metrics_due").count_documents({}) == 0


def test_what_an_operator_opens_again_is_no_failure_any_more() -> None:
    made = traffic()
    roll(NOON + timedelta(minutes=7))
    now = NOON + timedelta(minutes=8)
    store.reopen(
        notification_id=made["failed"]["_id"], channels=[Channel.EMAIL], extra_attempts=1, now=now
    )
    roll(now + A_MINUTE)
    assert_right()
    failed = [key for key in stored(DAY, MIDNIGHT, DAY_LATER) if key[0] == "failed"]
    assert failed == []


def test_an_attempt_at_several_devices_is_one() -> None:
    for token in ("one", "two"):
        factories.device(token)
    one = factories.claimed(channel=Channel.PUSH)
    ids = tuple(d["_id"] for d in collection("devices").find())
    begun = factories.start(replace(one, device_ids=ids), provider="fcm")
    assert collection("delivery_attempts").count_documents({}) == 2
    store.settle([factories.settlement(begun, S.SENT)], now=NOON)
    roll(NOON + A_MINUTE)
    tried = metrics.read(MINUTE, since=NOON, until=NOON + A_MINUTE, metrics=["tried"])
    assert [figure.value for figure in tried] == [1]


def test_waits_are_kept_so_that_an_hour_knows_its_percentiles() -> None:
    for seconds in (0, 0, 1, 40):
        at = NOON + timedelta(seconds=seconds)
        one = factories.started(at=NOON, created_at=NOON)
        store.settle([factories.settlement(one, S.SENT, at=at)], now=at)
    roll(NOON + 2 * A_MINUTE)
    (figure,) = metrics.read(HOUR, since=NOON, until=NOON + A_MINUTE, metrics=["latency"])
    assert figure.histogram is not None
    assert (figure.value, figure.seconds, sum(figure.histogram)) == (4, 41, 4)
    p95 = metrics.quantile(figure.histogram, 0.95)
    assert p95 is not None
    assert 30 < p95 <= 60


def test_one_rolls_up_at_a_time_and_one_that_died_is_made_good() -> None:
    assert rollup_state.acquire_lease(now=NOON)
    assert rollup.run(now=NOON + A_MINUTE) is None
    assert rollup.rebuild(since=NOON, until=NOON + A_MINUTE, now=NOON + A_MINUTE) is None
    assert rollup.run(now=NOON + rollup_state.LEASE) is not None


def test_a_roll_up_that_breaks_off_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic()
    now = NOON + timedelta(minutes=7)

    with monkeypatch.context() as patch:
        patch.setattr(metrics, "sum_up", broken)
        with pytest.raises(ConnectionError):
            rollup.run(now=now)
    roll(now)
    assert_right()


def test_what_its_time_does_not_allow_is_left_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic()
    traffic(NOON - timedelta(hours=2))
    monkeypatch.setattr(rollup, "MINUTES_PER_READ", 1)
    monkeypatch.setattr(rollup, "CHANGES_PER_READ", timedelta(days=2))
    now = NOON + timedelta(minutes=7)
    first = rollup.run(now=now, budget=0)
    assert first is not None
    assert (first.counted, first.remaining > 0) == (1, True)
    for _ in range(4):
        roll(now + timedelta(hours=1))
    assert_right()


def test_changes_of_a_standstill_are_found_bit_by_bit() -> None:
    traffic()
    now = NOON + timedelta(minutes=7)
    roll(NOON - timedelta(minutes=1))
    for _ in range(3):
        rollup.run(now=now + timedelta(hours=1), budget=0)
    assert rollup_state.changes_until() == NOON + timedelta(minutes=29)
    roll(now + timedelta(hours=2))
    roll(now + timedelta(hours=4))
    assert_right()


def test_a_roll_up_that_failed_does_not_say_that_it_has_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollup, "changed_minutes", broken)
    with pytest.raises(ConnectionError):
        rollup.run(now=NOON)
    assert rollup_state.counted_at() is None
    assert rollup_state.acquire_lease(now=NOON), "it gave the lease back"


def test_a_change_during_the_count_is_not_forgotten() -> None:
    rollup_state.mark_changed([NOON], now=NOON)
    (mark,) = rollup_state.due_minutes(now=NOON)
    rollup_state.mark_changed([NOON], now=NOON + A_MINUTE)
    rollup_state.remove_counted([mark])
    assert len(rollup_state.due_minutes(now=NOON)) == 1


def test_figures_that_are_no_more_are_removed() -> None:
    old = MetricValue(metric="sent", dimensions={"channel": "push"}, value=1, timestamp=NOON)
    metrics.replace(MINUTE, [NOON], [old], now=NOON)
    metrics.replace(MINUTE, [NOON], [], now=NOON)
    assert everything() == []


def test_minutes_go_and_days_stay() -> None:
    figure = MetricValue(metric="sent", dimensions={"channel": "push"}, value=1, timestamp=NOON)
    for interval in Interval:
        metrics.replace(interval, [NOON], [figure], now=NOON)
    found = collection("metrics_aggregates").find({}, {"interval": 1, "purge_at": 1})
    kept = {one["interval"]: one.get("purge_at") for one in found}
    assert kept == {
        "minute": NOON + timedelta(days=4),
        "hour": NOON + timedelta(days=100),
        "day": None,
    }


def test_events_tell_what_happened_once_each() -> None:
    made = traffic()
    now = NOON + timedelta(minutes=7)
    roll(now)
    roll(now)
    found = list(collection("analytics_events").find())
    assert Counter(one["event_type"] for one in found) == {
        "delivery.sent": 4,
        "delivery.delivered": 2,
        "delivery.read": 1,
        "delivery.failed": 1,
    }
    failed = next(one for one in found if one["event_type"] == "delivery.failed")
    assert failed["entity_id"] == str(made["failed"]["_id"])
    assert (failed["user_id"], failed["data"]["code"]) == ("ada", "provider_error")
    assert "ada@example.com" not in str(found)
    assert str(made["test"]["_id"]) not in {one["entity_id"] for one in found}


def test_no_events_are_written_if_nobody_wants_any(settings: Any) -> None:
    settings.ANALYTICS_EVENTS_DAYS = 0
    traffic()
    roll(NOON + timedelta(minutes=7))
    assert collection("analytics_events").count_documents({}) == 0


ONE_HOUR = timedelta(hours=1)

ONE_MINUTE = timedelta(minutes=1)


def command(*words: str) -> str:
    output = io.StringIO()
    call_command("rollup", *words, stdout=output, stderr=io.StringIO())
    return output.getvalue()


def test_the_command_counts_a_time_again() -> None:
    for status in (DeliveryStatus.SENT, DeliveryStatus.FAILED):
        factories.settled(status, at=NOON, created_at=NOON)
    start = NOON - ONE_HOUR
    factories.accepted(created_at=start - ONE_HOUR)
    since, until = f"{start:%Y-%m-%dT%H:%M}", f"{NOON + timedelta(minutes=8):%Y-%m-%dT%H:%M}Z"
    assert command("--since", since, "--until", until) == "minutes counted: 120\n"
    assert stored(Interval.HOUR, NOON, NOON + ONE_HOUR) == +recounted(NOON, NOON + ONE_HOUR)


@pytest.mark.parametrize(
    "words",
    [
        ["--until", "2026-01-01"],
        ["--since", "2999-01-01"],
        ["--since", "2020-01-02", "--until", "2020-01-01"],
        ["--since", "2020-01-01", "--until", "2020-01-02"],
    ],
)
def test_the_command_refuses_what_cannot_be_counted(words: list[str]) -> None:
    factories.accepted(created_at=utc_now())
    with pytest.raises(CommandError):
        command(*words)


def test_without_a_time_it_brings_the_figures_up_to_date() -> None:
    now = utc_now()
    factories.settled(DeliveryStatus.SENT, at=now - ONE_MINUTE, created_at=now - ONE_MINUTE)
    assert command() == "minutes counted: 1\n"
    assert collection("metrics_aggregates").count_documents({"interval": "day"}) > 0


def test_beat_starts_it_every_minute() -> None:
    tasks.roll_up()
    assert rollup_state.counted_at() is not None


def test_it_says_that_somebody_else_is_at_it() -> None:
    assert rollup_state.acquire_lease(now=utc_now())
    with pytest.raises(CommandError, match="retry in a minute"):
        command()
