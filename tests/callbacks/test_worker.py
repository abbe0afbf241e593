"""The callback worker: signed and paced calls, and the sweep."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import redis
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.core.management import call_command

from callbacks import outbox, retry, subscriptions, worker
from callbacks.events import CallbackState, DisabledReason, Event, EventType
from callbacks.worker import SweepReport
from domain import signing
from domain.states import DeliveryStatus
from notifyproject.db.collections import collection
from notifyproject.platform import broker as platform_broker
from notifyproject.platform import process
from tests.support.factories.notifications import CLIENT, NOON, settled
from tests.support.fakes.callback_receiver import Receiver, called_back, receiving

pytestmark = pytest.mark.usefixtures("db", "broker")
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LATER = NOON + HOUR
OTHER = ObjectId("d" * 24)


@pytest.fixture(autouse=True)
def _this_machine(settings: Any) -> None:
    settings.CALLBACK_LOOPBACK = True


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def due_message(receiver: Receiver) -> None:
    """Subscribe the receiver, and store a message to it."""
    called_back(receiver.url)
    record()


def record(count: int = 1, *, client_id: ObjectId = CLIENT, now: datetime = NOON) -> list[str]:
    ids = [f"evt_{client_id}_{now.timestamp():.0f}_{number:03}" for number in range(count)]
    events = [
        Event(
            id=notification_id,
            client_id=client_id,
            type=EventType.DELIVERY_SENT,
            at=now,
            data={"n": notification_id},
        )
        for notification_id in ids
    ]
    outbox.store_messages(events, now=now)
    return ids


def call(*, at: datetime = NOON, client_id: ObjectId = CLIENT) -> int:
    return worker.run_round(client_id, clock=lambda: at)


def statuses() -> list[str]:
    return [d["status"] for d in collection("callback_messages").find().sort("_id", 1)]


def test_message_is_signed_with_its_id_and_send_time(receiver: Receiver) -> None:
    secret = called_back(receiver.url).secret
    (message_id,) = record()
    assert call() == 1
    (request,) = receiver.requests
    assert request.headers["content-type"] == "application/json"
    assert request.body == {
        "type": "delivery.sent",
        "timestamp": NOON.strftime("%Y-%m-%dT12:00:00.000Z"),
        "data": {"n": message_id},
    }
    assert secret is not None
    signed = signing.sign_headers(
        message_id=message_id, timestamp=int(NOON.timestamp()), body=request.raw, secrets=[secret]
    )
    assert {name: request.headers[name] for name in signed} == signed
    assert statuses() == ["delivered"]
    assert subscriptions.get(CLIENT)["last_success_at"] == NOON


def test_replaced_secret_signs_for_a_day(receiver: Receiver) -> None:
    old = called_back(receiver.url).secret
    new = subscriptions.rotate(CLIENT, now=NOON)
    for at, secrets in ((NOON + DAY - SECOND, [new, old]), (NOON + DAY, [new])):
        record(now=at)
        call(at=at)
        last = receiver.requests[-1]
        found = last.headers["webhook-signature"].split(" ")
        sent = int(last.headers["webhook-timestamp"])
        assert found == [
            signing.sign(last.id, sent, last.raw, secret=secret or "") for secret in secrets
        ]


def test_failed_message_is_retried_with_the_same_id_and_bytes() -> None:
    with receiving(500, 204) as receiver:
        called_back(receiver.url)
        record()
        call()
        assert statuses() == ["pending"]
        assert call(at=NOON + SECOND) == 0
        call(at=NOON + 10 * SECOND)
        first, second = receiver.requests
    assert statuses() == ["delivered"]
    assert (first.id, first.raw) == (second.id, second.raw)
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]


def test_round_sends_twenty_messages_and_requeues_the_rest(
    receiver: Receiver, broker: redis.Redis
) -> None:
    called_back(receiver.url)
    record(25)
    assert call() == 20
    assert broker.llen("callbacks") == 1
    assert call() == 5
    assert broker.llen("callbacks") == 1
    assert sorted(receiver.ids()) == sorted(set(receiver.ids()))
    assert len(receiver.requests) == 25


def test_failing_endpoint_is_probed_with_one_message() -> None:
    with receiving(500) as receiver:
        called_back(receiver.url)
        record(25)
        assert call() == 8
        assert subscriptions.get(CLIENT)["failures"] == 8
        assert call(at=NOON + MINUTE) == 0
        assert call(at=NOON + 5 * MINUTE) == 1
        assert len(receiver.requests) == 9
    assert statuses() == ["pending"] * 25


def test_recovered_endpoint_gets_the_backlog() -> None:
    with receiving(*[500] * 8, 204) as receiver:
        called_back(receiver.url)
        record(25)
        call()
        call(at=NOON + 5 * MINUTE)
        assert subscriptions.get(CLIENT)["failures"] == 0
        while call(at=NOON + HOUR):
            pass
    assert statuses() == ["delivered"] * 25
    assert "failing_since" not in subscriptions.get(CLIENT)


def test_failing_endpoint_does_not_delay_others(receiver: Receiver) -> None:
    with receiving(500) as failing:
        called_back(failing.url)
        called_back(receiver.url, client_id=OTHER)
        record(25)
        record(25, client_id=OTHER)
        call()
        assert call(client_id=OTHER) == 20


@pytest.mark.usefixtures("due_message")
def test_rounds_are_limited_per_process(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = worker._round_slots(0)
    monkeypatch.setattr(worker, "_round_slots", lambda _: places)
    taken = 0
    while places.acquire(blocking=False):
        taken += 1
    assert taken == 4
    assert call() == 0
    assert broker.llen("callbacks") == 1
    places.release(taken)
    assert call() == 1


def test_status_410_disables_the_callback() -> None:
    with receiving(410) as receiver:
        called_back(receiver.url)
        record(3)
        call()
        assert call(at=NOON + DAY) == 0
    callback = subscriptions.get(CLIENT)
    assert (callback["state"], callback["disabled_reason"]) == ("disabled", DisabledReason.GONE)
    assert statuses() == ["failed"] * 3
    entry = LogEntry.objects.get()
    assert entry.object_id == str(CLIENT)
    assert "410" in entry.change_message


def test_five_days_of_failures_disable_the_callback() -> None:
    with receiving(500) as receiver:
        called_back(receiver.url)
        record()
        call()
        at = NOON + 5 * DAY
        record(now=at)
        call(at=at)
        assert subscriptions.get(CLIENT)["disabled_reason"] == DisabledReason.FAILING
    assert "five days" in LogEntry.objects.get().change_message


def test_message_fails_after_eight_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FAILURES_TO_OPEN", 100)
    with receiving(503) as receiver:
        called_back(receiver.url)
        record()
        at = NOON
        for _ in range(9):
            call(at=at)
            at = outbox.next_due_at(CLIENT) or at
        assert len(receiver.requests) == 8
    assert statuses() == ["failed"]
    assert NOON + 18 * HOUR < at < NOON + 30 * HOUR


def test_replaced_endpoint_is_not_disabled_for_the_old_one() -> None:
    with receiving(500) as receiver:
        called_back(receiver.url)
        hold = worker.acquire_lease(CLIENT, now=NOON)
        assert hold is not None
        called_back(f"{receiver.url}/new")
        failed = hold.health.after_failure(at=NOON, error="HTTP 500.", is_gone=True)
        worker.release_lease(hold, failed, now=NOON)
        assert not subscriptions.disable(
            client_id=CLIENT, reason=DisabledReason.GONE, now=NOON, url=hold.url
        )
    callback = subscriptions.get(CLIENT)
    assert callback["failures"] == 0
    assert "claim" not in callback


def test_round_starts_nothing_after_its_time(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    called_back(receiver.url)
    record(20)
    monkeypatch.setattr(worker, "MAX_ROUND_SECONDS", 0.0)
    assert call() == worker.MAX_CONCURRENT_REQUESTS
    assert call() == worker.MAX_CONCURRENT_REQUESTS


@pytest.mark.usefixtures("due_message")
def test_sweep_wakes_due_messages(broker: redis.Redis) -> None:
    assert worker.sweep(now=NOON) == SweepReport(woken=1, unpublished=0)
    assert broker.llen("callbacks") == 1


@pytest.mark.parametrize(
    "prepare",
    [
        lambda: worker.acquire_lease(CLIENT, now=NOON),
        lambda: collection("callback_messages").update_many({}, {"$set": {"next_try_at": LATER}}),
        lambda: collection("callbacks").update_one({}, {"$set": {"open_until": LATER}}),
    ],
    ids=["leased", "due later", "circuit open"],
)
@pytest.mark.usefixtures("due_message")
def test_sweep_skips_what_is_not_due(prepare: Callable[[], Any], broker: redis.Redis) -> None:
    prepare()
    assert worker.sweep(now=NOON) == SweepReport(woken=0, unpublished=0)
    assert broker.llen("callbacks") == 0


@pytest.mark.usefixtures("due_message")
def test_sweep_fails_messages_without_a_callback() -> None:
    subscriptions.remove(CLIENT)
    assert worker.sweep(now=NOON) == SweepReport(woken=0, unpublished=0)
    assert statuses() == ["failed"]


@pytest.mark.usefixtures("due_message")
def test_missing_encryption_key_sends_nothing(broker: redis.Redis, settings: Any) -> None:
    settings.FIELD_ENCRYPTION_KEYS = {"other": b"x" * 48}
    assert call() == 0
    assert broker.llen("callbacks") == 0
    assert statuses() == ["pending"]
    assert subscriptions.get(CLIENT)["state"] == CallbackState.ACTIVE


@pytest.mark.usefixtures("due_message")
def test_disallowed_loopback_is_not_called(receiver: Receiver, settings: Any) -> None:
    settings.CALLBACK_LOOPBACK = False
    assert call() == 0
    assert receiver.requests == []


@pytest.mark.usefixtures("due_message")
def test_sweep_without_broker_reports_unpublished_and_inline_run_delivers() -> None:
    platform_broker._health.record_failure()
    assert worker.sweep(now=NOON) == SweepReport(woken=0, unpublished=1)
    assert worker.run_inline(clock=lambda: NOON) == 1
    assert statuses() == ["delivered"]


@pytest.mark.usefixtures("due_message")
def test_shutdown_starts_nothing_and_returns_the_claims(receiver: Receiver) -> None:
    assert worker.run_round(CLIENT, clock=lambda: NOON, is_shutting_down=lambda: True) == 0
    assert receiver.requests == []
    assert call() == 1


def test_sweeper_command_sends_callbacks(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: process.clear_shutdown())
    called_back(receiver.url)
    settled(DeliveryStatus.FAILED, has_callback=True)
    platform_broker._health.record_failure()
    call_command("sweeper", once=True, deliver=True, stdout=StringIO())
    types = sorted(request.body["type"] for request in receiver.requests)
    assert types == ["delivery.failed", "notification.completed"]
    assert statuses() == ["delivered"] * 2
