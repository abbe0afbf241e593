"""The roll-up of metrics: equality with a recount, repetition, and the command."""

import io
import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import metrics, rollup, rollup_state
from monitoring.metrics import MetricValue
from monitoring.models import Interval
from notifications.documents.notification import NotificationDocument
from notifications.store import actions, leases, receipts
from notifications.store.claims import NotSent
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from notifyproject.db.collections import collection
from tasks import tasks
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

Counts = Counter[tuple[str, str, str, str]]
"""Deliveries by metric, channel, type, and provider, code, or status."""
SUCCEEDED = {"sent", "delivered", "read"}


def recounted(since: datetime, until: datetime) -> Counts:
    """Count the metrics document by document, independently of the roll-up."""
    counts: Counts = Counter()
    documents = {
        notification["_id"]: notification
        for notification in collection("notifications").find()
        if not notification.get("is_test")
    }
    for document in documents.values():
        if since <= document["created_at"] < until:
            for delivery in document["delivery"]:
                own = (delivery["channel"], document["type"])
                counts[("accepted", *own, "")] += 1
                if delivery["attempt_count"] == 0:
                    _outcome(counts, own, delivery, delivery.get("provider") or "none")
    tries: dict[Any, list[dict[str, Any]]] = {}
    for attempt in collection("delivery_attempts").find():
        if attempt["notification_id"] in documents:
            key = attempt["notification_id"], attempt["channel"], attempt["attempt_number"]
            tries.setdefault(key, []).append(attempt)
    for (notification_id, channel, number), some in tries.items():
        document = documents[notification_id]
        if since <= some[0]["attempted_at"] < until:
            delivery = next(d for d in document["delivery"] if d["channel"] == channel)
            _attempt(counts, (channel, document["type"]), delivery, number, some)
    return counts


def _attempt(
    counts: Counts,
    own: tuple[str, str],
    delivery: dict[str, Any],
    number: int,
    some: list[dict[str, Any]],
) -> None:
    provider, statuses = some[0]["provider"], {item["status"] for item in some}
    ended = next(s for s in ("unknown", "sent", "failed", "started", "expired") if s in statuses)
    was_made = ended != "expired"
    counts[("tried", *own, f"{provider} {ended}")] += was_made
    if was_made and any(item.get("duration_ms") is not None for item in some):
        counts[("request", *own, provider)] += 1
    if ended == "unknown":
        counts[("unknown", *own, provider)] += 1
    is_last = number == delivery["attempt_count"]
    if is_last:
        _outcome(counts, own, delivery, provider)
        if delivery["status"] in SUCCEEDED:
            counts[("latency", *own, provider)] += 1
    if was_made and (not is_last or (delivery["status"] == "pending" and ended != "started")):
        counts[("retried", *own, provider)] += 1


def _outcome(counts: Counts, own: tuple[str, str], delivery: dict[str, Any], provider: str) -> None:
    status = delivery["status"]
    reached = {"sent": SUCCEEDED, "delivered": {"delivered", "read"}, "read": {"read"}}
    for metric, statuses in reached.items():
        counts[(metric, *own, provider)] += status in statuses
    if status == "failed":
        counts[("failed", *own, f"{provider} {delivery['failure_code']}")] += 1
    if status in ("expired", "cancelled", "suppressed"):
        counts[("withheld", *own, status)] += 1
    if status == "merged":
        counts[("merged", *own, "")] += 1


def stored(interval: Interval, since: datetime, until: datetime) -> Counts:
    counts: Counts = Counter()
    for figure in metrics.read(interval, since=since, until=until):
        names = ("provider", "code", "status")
        more = [figure.dimensions[name] for name in names if name in figure.dimensions]
        own = figure.dimensions["channel"], figure.dimensions["type"]
        counts[(figure.metric, *own, " ".join(more))] += int(figure.value)
    return counts


pytestmark = pytest.mark.usefixtures("db")

S = DeliveryStatus
MINUTE, HOUR, DAY = Interval
NOON = factories.NOON
MIDNIGHT = NOON.replace(hour=0)
DAY_LATER = MIDNIGHT + timedelta(days=1)
A_MINUTE, ONE_HOUR, ONE_DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
STEPS = 120


def receipt(document: Any, status: S, *, at: datetime, number: int = 1) -> DeliveryReceipt:
    return DeliveryReceipt(
        reference=AttemptReference(document["_id"], Channel.EMAIL, number),
        status=status,
        at=at,
        provider="sendgrid",
        code=FailureCode.BOUNCED if status is S.FAILED else None,
    )


def report(document: Any, status: S, *, at: datetime, now: datetime) -> None:
    assert receipts.apply_receipt(receipt(document, status, at=at), now=now)


def broken(*_: Any, **__: Any) -> None:
    raise ConnectionError


def traffic(at: datetime = NOON) -> dict[str, Any]:
    """Store notifications in every state, within ten minutes."""
    soon, later = at + A_MINUTE, at + timedelta(minutes=6)
    made: dict[str, Any] = {
        "sent": factories.settled(S.SENT, at=at, created_at=at),
        "read": factories.settled(S.SENT, at=at, created_at=at, type="system_alert"),
        "failed": factories.settled(S.FAILED, at=soon, created_at=soon),
        "unknown": factories.settled(S.UNKNOWN, at=soon, created_at=soon),
        "pending": factories.settled(S.PENDING, at=soon, created_at=at),
        "retried": factories.settled(S.PENDING, at=at, created_at=at),
        "test": factories.settled(S.SENT, at=at, created_at=at, is_test=True),
    }
    report(made["read"], S.READ, at=soon, now=soon)
    retry = factories.start(factories.claim(made["retried"]["_id"], at=later), at=later)
    leases.settle([factories.settlement(retry, S.SENT, at=later)], now=later)
    factories.accepted(created_at=at, channels=(Channel.IN_APP, Channel.EMAIL))
    cancelled = factories.accepted(created_at=at)["_id"]
    actions.cancel(notification_id=cancelled, channels=[Channel.EMAIL], reason="No.", now=soon)
    return made


def roll_up(now: datetime) -> None:
    assert rollup.run(now=now) is not None


def assert_recount_matches() -> None:
    """Check minutes, hours, and the day against a recount."""
    wanted = +recounted(MIDNIGHT, DAY_LATER)
    for interval in Interval:
        assert stored(interval, MIDNIGHT, DAY_LATER) == wanted, interval
    for minutes in range(8):
        start = NOON + minutes * A_MINUTE
        assert stored(MINUTE, start, start + A_MINUTE) == +recounted(start, start + A_MINUTE)


def all_metrics() -> list[dict[str, Any]]:
    return list(collection("metrics_aggregates").find({}, {"purge_at": 0}).sort("_id", 1))


def test_metrics_match_a_recount() -> None:
    traffic()
    roll_up(NOON + timedelta(minutes=7))
    assert_recount_matches()
    counts = stored(DAY, MIDNIGHT, DAY_LATER)
    assert counts[("read", "email", "system_alert", "sendgrid")] == 1
    assert counts[("accepted", "in_app", "payment_confirmed", "")] == 1
    for metric, label, count in (
        ("sent", "sendgrid", 2),
        ("retried", "sendgrid", 2),
        ("unknown", "sendgrid", 1),
        ("failed", "sendgrid provider_error", 1),
        ("withheld", "cancelled", 1),
    ):
        assert counts[(metric, "email", "payment_confirmed", label)] == count, metric


def test_members_of_digests_are_counted() -> None:
    ids = [factories.accepted()["_id"] for _ in range(3)]
    merged = {"delivery.0.status": "merged", "updated_at": NOON}
    collection("notifications").update_many({"_id": {"$in": ids[:2]}}, {"$set": merged})
    roll_up(NOON + A_MINUTE)
    assert_recount_matches()
    assert stored(DAY, MIDNIGHT, DAY_LATER)["merged", "email", "payment_confirmed", ""] == 2


def test_repeated_roll_up_changes_nothing() -> None:
    traffic()
    now = NOON + timedelta(minutes=7)
    roll_up(now)
    once = all_metrics()
    roll_up(now + timedelta(seconds=30))
    rollup.rebuild(since=NOON, until=now, now=now)
    rollup.rebuild(since=NOON, until=now, now=now)
    assert all_metrics() == once
    assert_recount_matches()


def test_late_receipt_changes_the_minute_of_its_attempt() -> None:
    made = traffic()
    roll_up(NOON + timedelta(minutes=7))
    late = NOON + timedelta(hours=6)
    report(made["sent"], S.FAILED, at=late, now=late)
    report(made["unknown"], S.DELIVERED, at=NOON + 2 * A_MINUTE, now=late)
    roll_up(late + A_MINUTE)
    due = collection("metrics_due").find_one({"minute": NOON})
    assert due is not None, "an old minute waits for more changes"
    assert due["due_at"] < late + timedelta(hours=1)
    roll_up(late + ONE_HOUR)
    assert_recount_matches()
    counts = stored(DAY, MIDNIGHT, DAY_LATER)
    assert counts[("failed", "email", "payment_confirmed", "sendgrid bounced")] == 1
    assert collection("metrics_due").count_documents({}) == 0


def test_reopened_delivery_is_no_failure() -> None:
    made = traffic()
    roll_up(NOON + timedelta(minutes=7))
    now = NOON + timedelta(minutes=8)
    actions.reopen(notification_id=made["failed"]["_id"], channels=[Channel.EMAIL], now=now)
    roll_up(now + A_MINUTE)
    assert_recount_matches()
    assert [key for key in stored(DAY, MIDNIGHT, DAY_LATER) if key[0] == "failed"] == []


def test_attempt_at_several_devices_counts_once() -> None:
    for token in ("one", "two"):
        factories.device(token)
    claim = factories.claimed(channel=Channel.PUSH)
    ids = tuple(d["_id"] for d in collection("devices").find())
    begun = factories.start(replace(claim, device_ids=ids), provider="fcm")
    assert collection("delivery_attempts").count_documents({}) == 2
    leases.settle([factories.settlement(begun, S.SENT)], now=NOON)
    roll_up(NOON + A_MINUTE)
    tried = metrics.read(MINUTE, since=NOON, until=NOON + A_MINUTE, metrics=["tried"])
    assert [value.value for value in tried] == [1]


def test_latency_histogram_gives_percentiles() -> None:
    for seconds in (0, 0, 1, 40):
        at = NOON + timedelta(seconds=seconds)
        begun = factories.started(at=NOON, created_at=NOON)
        leases.settle([factories.settlement(begun, S.SENT, at=at)], now=at)
    roll_up(NOON + 2 * A_MINUTE)
    (value,) = metrics.read(HOUR, since=NOON, until=NOON + A_MINUTE, metrics=["latency"])
    assert value.histogram is not None
    assert (value.value, value.seconds, sum(value.histogram)) == (4, 41, 4)
    p95 = metrics.quantile(value.histogram, 0.95)
    assert p95 is not None
    assert 30 < p95 <= 60


@pytest.mark.parametrize("code", [FailureCode.QUIET_HOURS, FailureCode.CHANNEL_UNAVAILABLE])
def test_held_time_is_no_latency_and_a_request_has_its_own(code: FailureCode) -> None:
    until = NOON + ONE_HOUR
    delivery = factories.claimed(at=NOON, created_at=NOON)
    held = NotSent(
        claimed=delivery, status=S.PENDING, code=code, reason="Held.", next_attempt_at=until
    )
    leases.settle_not_sent([held], now=NOON)
    sent_at = until + timedelta(seconds=2)
    [claim] = leases.claim(
        ids=[delivery.notification_id], channel=Channel.EMAIL, worker="one", now=until
    )
    [started] = leases.start([claim], provider="sendgrid", worker="one", now=sent_at)
    leases.settle([factories.settlement(started, S.SENT, at=sent_at)], now=sent_at)
    roll_up(sent_at + A_MINUTE)
    found = {
        item.metric: item
        for item in metrics.read(
            HOUR, since=NOON, until=NOON + 2 * ONE_HOUR, metrics=["latency", "request"]
        )
    }
    assert found["latency"].seconds == 2
    assert found["request"].seconds == pytest.approx(0.012)


def test_only_one_roll_up_runs_at_a_time() -> None:
    assert rollup_state.acquire_lease(now=NOON)
    assert rollup.run(now=NOON + A_MINUTE) is None
    assert rollup.rebuild(since=NOON, until=NOON + A_MINUTE, now=NOON + A_MINUTE) is None


@pytest.mark.parametrize("step", ["replace", "sum_up"])
def test_roll_up_that_was_taken_over_has_its_minutes_counted_again(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic()
    now, write = NOON + timedelta(minutes=7), getattr(metrics, step)
    later = now + rollup_state.LEASES.length

    def write_late(*given: Any, **options: Any) -> None:
        patch.undo()
        assert rollup.run(now=later, clock=lambda: later) is not None
        assert rollup_state.due_minutes(now=later) == []
        write(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(metrics, step, write_late)
        assert rollup.run(now=now, clock=lambda: now) is None
    assert rollup_state.due_minutes(now=later) != []
    assert rollup_state.counted_at() == later
    assert rollup_state.changes_until() == later


def test_interrupted_roll_up_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic()
    now = NOON + timedelta(minutes=7)
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "sum_up", broken)
        with pytest.raises(ConnectionError):
            rollup.run(now=now)
    roll_up(now)
    assert_recount_matches()


def test_roll_up_beyond_its_budget_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic()
    traffic(NOON - ONE_HOUR)
    monkeypatch.setattr(rollup, "MINUTES_PER_READ", 1)
    monkeypatch.setattr(rollup, "CHANGES_PER_READ", timedelta(days=2))
    now = NOON + timedelta(minutes=7)
    first = rollup.run(now=now, budget=0)
    assert first is not None
    assert (first.counted, first.remaining > 0) == (1, True)
    for _ in range(4):
        roll_up(now + ONE_HOUR)
    assert_recount_matches()


def test_changes_after_an_outage_are_found_in_steps() -> None:
    traffic()
    now = NOON + timedelta(minutes=7)
    roll_up(NOON - timedelta(minutes=1))
    for _ in range(3):
        rollup.run(now=now + timedelta(hours=1), budget=0)
    assert rollup_state.changes_until() == NOON + timedelta(minutes=29)
    roll_up(now + timedelta(hours=2))
    roll_up(now + timedelta(hours=4))
    assert_recount_matches()


def test_failed_roll_up_releases_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup, "changed_minutes", broken)
    with pytest.raises(ConnectionError):
        rollup.run(now=NOON)
    assert rollup_state.counted_at() is None
    assert rollup_state.acquire_lease(now=NOON), "the lease is released"


def test_change_during_the_count_is_kept() -> None:
    rollup_state.mark_changed([NOON], now=NOON)
    (mark,) = rollup_state.due_minutes(now=NOON)
    rollup_state.mark_changed([NOON], now=NOON + A_MINUTE)
    rollup_state.remove_counted([mark])
    assert len(rollup_state.due_minutes(now=NOON)) == 1


def test_outdated_metrics_are_removed() -> None:
    old = MetricValue(metric="sent", dimensions={"channel": "push"}, value=1, timestamp=NOON)
    metrics.replace(MINUTE, [NOON], [old], now=NOON)
    metrics.replace(MINUTE, [NOON], [], now=NOON)
    assert all_metrics() == []


def test_minutes_expire_and_days_stay() -> None:
    value = MetricValue(metric="sent", dimensions={"channel": "push"}, value=1, timestamp=NOON)
    for interval in Interval:
        metrics.replace(interval, [NOON], [value], now=NOON)
    found = collection("metrics_aggregates").find({}, {"interval": 1, "purge_at": 1})
    kept = {item["interval"]: item.get("purge_at") for item in found}
    assert kept == {"minute": NOON + 4 * ONE_DAY, "hour": NOON + 100 * ONE_DAY, "day": None}


def test_events_record_each_change_once() -> None:
    made = traffic()
    now = NOON + timedelta(minutes=7)
    roll_up(now)
    roll_up(now)
    found = list(collection("analytics_events").find())
    counts = Counter(item["event_type"].removeprefix("delivery.") for item in found)
    assert counts == {"sent": 4, "delivered": 2, "read": 1, "failed": 1}
    assert all(item["event_type"].startswith("delivery.") for item in found)
    failed = next(item for item in found if item["event_type"] == "delivery.failed")
    assert failed["entity_id"] == str(made["failed"]["_id"])
    assert (failed["user_id"], failed["data"]["code"]) == ("ada", "provider_error")
    assert "ada@example.com" not in str(found)
    assert str(made["test"]["_id"]) not in {item["entity_id"] for item in found}


def test_no_events_are_written_when_disabled(settings: Any) -> None:
    settings.ANALYTICS_EVENTS_DAYS = 0
    traffic()
    roll_up(NOON + timedelta(minutes=7))
    assert collection("analytics_events").count_documents({}) == 0


def rollup_command(*words: str) -> str:
    output = io.StringIO()
    call_command("rollup", *words, stdout=output, stderr=io.StringIO())
    return output.getvalue()


def test_command_recounts_a_time_span() -> None:
    for status in (DeliveryStatus.SENT, DeliveryStatus.FAILED):
        factories.settled(status, at=NOON, created_at=NOON)
    start = NOON - ONE_HOUR
    factories.accepted(created_at=start - ONE_HOUR)
    since, until = f"{start:%Y-%m-%dT%H:%M}", f"{NOON + timedelta(minutes=8):%Y-%m-%dT%H:%M}Z"
    assert rollup_command("--since", since, "--until", until) == "minutes counted: 120\n"
    assert stored(Interval.HOUR, NOON, NOON + ONE_HOUR) == +recounted(NOON, NOON + ONE_HOUR)


@each_case(
    "words",
    [
        ["--until", "2026-01-01"],
        ["--since", "2999-01-01"],
        ["--since", "2020-01-02", "--until", "2020-01-01"],
        ["--since", "2020-01-01", "--until", "2020-01-02"],
    ],
)
def test_command_refuses_an_invalid_time_span(words: list[str]) -> None:
    factories.accepted(created_at=utc_now())
    with pytest.raises(CommandError):
        rollup_command(*words)


def test_command_without_a_time_span_rolls_up() -> None:
    now = utc_now()
    factories.settled(DeliveryStatus.SENT, at=now - A_MINUTE, created_at=now - A_MINUTE)
    assert rollup_command() == "minutes counted: 1\n"
    assert collection("metrics_aggregates").count_documents({"interval": "day"}) > 0


def test_task_rolls_up() -> None:
    tasks.roll_up()
    assert rollup_state.counted_at() is not None


def test_command_starts_a_stopped_roll_up_again() -> None:
    at = utc_now() - timedelta(days=1)
    for _ in range(rollup_state.LEASES.max_claims):
        assert rollup_state.acquire_lease(now=at), "a worker that is lost"
        at += rollup_state.LEASES.length
    for _ in range(2):
        assert rollup.run(now=at) is None
    assert rollup_state.stopped_at() == at
    assert "runs again" in rollup_command()
    assert rollup_state.stopped_at() is None
    assert rollup.run(now=utc_now()) is not None


def test_count_that_was_stored_is_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic()
    monkeypatch.setattr(metrics, "sum_up", broken)
    assert rollup_state.acquire_lease(now=NOON), "a worker that is lost"
    at = NOON + rollup_state.LEASES.length
    with pytest.raises(ConnectionError):
        rollup.run(now=at)
    claim = rollup_state.acquire_lease(now=at)
    assert claim is not None
    assert claim.claim_count == 1


def test_command_fails_while_another_roll_up_runs() -> None:
    assert rollup_state.acquire_lease(now=utc_now())
    with pytest.raises(CommandError, match="retry in a minute"):
        rollup_command()


class RandomHistory:
    """Random changes of notifications."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = factories.NOON - timedelta(hours=10)
        self.documents: list[NotificationDocument] = []

    def step(self) -> None:
        """Advance the time and make a random change."""
        self.now += timedelta(seconds=self.rng.choice([1, 20, 61, 200, 900]))
        steps = (self.accept, self.attempt, self.attempt, self.attempt, self.report, self.operate)
        self.rng.choice(steps)()
        if self.rng.random() < 0.3:
            rollup.run(now=self.now + timedelta(milliseconds=1))

    def accept(self) -> None:
        channels = self.rng.choice([(Channel.EMAIL,), (Channel.EMAIL, Channel.IN_APP)])
        is_test = self.rng.random() < 0.1
        fields = {"channels": channels, "is_test": is_test, "max_attempts": 9}
        self.documents.append(factories.accepted(created_at=self.now, **fields))

    def attempt(self) -> None:
        ids = [document["_id"] for document in self.documents]
        claims = leases.claim(ids=ids, channel=Channel.EMAIL, worker="w", now=self.now)
        for claim in claims[:3]:
            provider = self.rng.choice(["sendgrid", "smtp"])
            begun = factories.start(claim, at=self.now, provider=provider)
            status = self.rng.choice([S.SENT, S.SENT, S.PENDING, S.FAILED, S.UNKNOWN, None, None])
            if status is None:
                leases.return_unsent([begun], now=self.now)
            else:
                at = self.now + timedelta(seconds=self.rng.choice([0, 2, 30]))
                leases.settle([factories.settlement(begun, status, at=at)], now=at)
        leases.release(claims[3:], now=self.now)

    def report(self) -> None:
        if not self.documents:
            return
        document = factories.read(self.rng.choice(self.documents)["_id"])
        number = factories.delivery(document)["attempt_count"]
        status = self.rng.choice([S.SENT, S.DELIVERED, S.READ, S.FAILED])
        ago = timedelta(seconds=self.rng.choice([0, 5, 400]))
        at = max(self.now - ago, document["created_at"])
        receipts.apply_receipt(receipt(document, status, at=at, number=number), now=self.now)

    def operate(self) -> None:
        if not self.documents:
            return
        which, channels = self.rng.choice(self.documents)["_id"], [Channel.EMAIL]
        if self.rng.random() < 0.7:
            actions.reopen(notification_id=which, channels=channels, now=self.now)
        else:
            actions.cancel(notification_id=which, channels=channels, reason="No.", now=self.now)


@pytest.mark.parametrize("seed", range(4))
def test_random_history_matches_a_recount(seed: int) -> None:
    history = RandomHistory(seed)
    for _ in range(STEPS):
        history.step()
    now = history.now
    rollup.run(now=now + A_MINUTE)
    while collection("metrics_due").count_documents({}):
        now += ONE_HOUR
        roll_up(now)
    start = (factories.NOON - ONE_DAY).replace(hour=0)
    end = start + 3 * ONE_DAY
    wanted = +recounted(start, end)
    assert len(wanted) > 10
    for interval in Interval:
        assert stored(interval, start, end) == wanted, interval
