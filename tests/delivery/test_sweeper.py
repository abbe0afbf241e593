"""The sweeper with the real broker."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import heartbeats, sweeper
from delivery.sweeper import MAX_QUEUE_DEPTH, SweepReport
from domain.channels import Channel
from domain.queues import SERVICE
from domain.states import DeliveryStatus, Priority
from notifications.catalog import types
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import BURST
from notifications.queueing.wakeups import HORIZON, WAKEUP_SIZE
from notifications.store import acceptance
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from notifyproject.platform import broker as platform_broker
from notifyproject.platform import server_health
from notifyproject.platform.server_health import ServerHealth
from notifyproject.settings.base import queue_names
from notifyproject.stack import servers
from tests.support.broker_messages import queued_messages as messages
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted, claimed, new, started
from tests.support.waiting import SILENT_FOR

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def sweep(now: Any = NOON) -> SweepReport:
    return sweeper.sweep(now=now)


def report(**counts: int) -> SweepReport:
    names = ("woken", "pulled", "unpublished", "recovered", "resolved")
    return SweepReport(**{name: counts.get(name, 0) for name in names})


def woken(broker: redis.Redis, queue: str = "email.normal") -> list[ObjectId]:
    return [
        notification_id for message in messages(broker, queue) for notification_id in message.ids
    ]


def depths(broker: redis.Redis) -> dict[str, int]:
    found = {name: int(broker.llen(name)) for name in queue_names() if name != SERVICE}
    return {name: depth for name, depth in found.items() if depth}


def test_due_delivery_gets_a_wakeup_by_id_and_channel(broker: redis.Redis) -> None:
    document = accepted()
    assert sweep() == report(woken=1)
    (message,) = messages(broker)
    assert message.args == [[str(document["_id"])], "email", "normal"]
    assert (message.task, message.eta) == ("notifications.deliver", None)


def test_wakeup_holds_only_ids(broker: redis.Redis) -> None:
    # Not "ada", which one random ID in twenty holds, nor digits alone.
    accepted(user_id="lovelace", data={"code": "code-493817"})
    sweep()
    (raw,) = broker.lrange("email.normal", 0, -1)
    text = raw.decode() + base64.b64decode(json.loads(raw)["body"]).decode()
    for secret in ("lovelace", "example.com", "code-493817", "payment"):
        assert secret not in text


@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("channel", [EMAIL, PUSH, WHATSAPP])
def test_queue_per_channel_and_priority(
    broker: redis.Redis, channel: Channel, priority: Priority
) -> None:
    document = accepted(channels=[channel], priority=priority)
    sweep()
    assert depths(broker) == {f"{channel}.{priority}": 1}
    assert woken(broker, f"{channel}.{priority}") == [document["_id"]]


def test_idle_sweep_sends_no_wakeups(broker: redis.Redis) -> None:
    assert sweep().woken == 0
    accepted(send_at=NOON + timedelta(hours=1))
    for status in (S.SENT, S.FAILED, S.UNKNOWN):
        factories.settled(status)
    claimed()
    assert sweep().woken == 0
    assert depths(broker) == {}


def test_each_channel_of_a_notification_gets_a_wakeup(broker: redis.Redis) -> None:
    accepted(channels=[EMAIL, WHATSAPP])
    assert sweep().woken == 2
    assert depths(broker) == {"email.normal": 1, "whatsapp.normal": 1}


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(1, [1]), (WAKEUP_SIZE, [100]), (WAKEUP_SIZE + 1, [100, 1]), (BURST, [100, 100])],
)
def test_wakeup_holds_at_most_100_ids(broker: redis.Redis, count: int, sizes: list[int]) -> None:
    acceptance.accept([new() for _ in range(count)], now=NOON)
    assert sweep().woken == count
    assert [len(m.ids) for m in messages(broker)] == sizes
    assert len(set(woken(broker))) == count


def test_wakeups_are_sent_oldest_first(broker: redis.Redis) -> None:
    documents = [accepted(send_at=NOON - n * SECOND, created_at=NOON) for n in (1, 3, 2)]
    sweep()
    assert woken(broker) == [documents[n]["_id"] for n in (1, 2, 0)]


def test_expired_claim_gets_a_wakeup(broker: redis.Redis) -> None:
    claim = claimed()
    assert sweep(NOON + LEASE).woken == 1
    assert woken(broker) == [claim.notification_id]


def test_delivery_due_before_the_next_sweep_gets_a_scheduled_wakeup(broker: redis.Redis) -> None:
    accepted(send_at=NOON + 30 * SECOND)
    assert sweep().woken == 1
    (message,) = messages(broker)
    assert message.eta is not None


@pytest.mark.parametrize(
    ("ahead", "count"),
    [(HORIZON, 1), (HORIZON + timedelta(milliseconds=1), 0), (SECOND, 1), (2 * HORIZON, 0)],
)
def test_sweep_looks_one_minute_ahead(ahead: timedelta, count: int) -> None:
    accepted(send_at=NOON + ahead)
    assert sweep().woken == count


def test_sweep_looks_a_full_minute_ahead_from_any_millisecond() -> None:
    now = NOON + timedelta(milliseconds=500)
    accepted(send_at=now + HORIZON - timedelta(milliseconds=100), created_at=now)
    assert sweep(now) == report(woken=1)


def test_deliveries_due_in_the_same_second_share_a_wakeup(broker: redis.Redis) -> None:
    for milliseconds in (1, 500, 999, 1000):
        accepted(send_at=NOON + 9 * SECOND + timedelta(milliseconds=milliseconds))
    sweep()
    assert [len(m.ids) for m in messages(broker)] == [4]


def test_due_and_future_deliveries_get_separate_wakeups(broker: redis.Redis) -> None:
    accepted()
    accepted(send_at=NOON + 9 * SECOND)
    sweep()
    assert [m.eta is None for m in messages(broker)] == [True, False]


def fill(broker: redis.Redis, queue: str, count: int) -> None:
    broker.rpush(queue, *[b"{}"] * count)


def test_full_queue_gets_no_wakeup(broker: redis.Redis) -> None:
    fill(broker, "email.normal", MAX_QUEUE_DEPTH)
    accepted()
    assert sweep() == report(unpublished=1)
    assert broker.llen("email.normal") == MAX_QUEUE_DEPTH


def test_full_queue_does_not_block_others(broker: redis.Redis) -> None:
    fill(broker, "email.normal", MAX_QUEUE_DEPTH)
    accepted(channels=[EMAIL, WHATSAPP])
    accepted(priority=Priority.CRITICAL)
    assert sweep().woken == 2
    assert (broker.llen("whatsapp.normal"), broker.llen("email.critical")) == (1, 1)


def pulled_clients(broker: redis.Redis, queue: str = "email.normal") -> list[str]:
    return [m.args[0] for m in messages(broker, queue) if m.task == "notifications.pull"]


def test_burst_gets_pulls(broker: redis.Redis) -> None:
    first, *_ = acceptance.accept([new() for _ in range(BURST + 1)], now=NOON)
    assert sweep() == report(pulled=1)
    assert pulled_clients(broker) == [str(first.document["client_id"])] * fair_queue.MAX_PULLS


def test_repeated_sweep_adds_no_pulls(broker: redis.Redis) -> None:
    acceptance.accept([new() for _ in range(BURST + 1)], now=NOON)
    sweep()
    assert sweep() == report(pulled=1)
    assert len(pulled_clients(broker)) == fair_queue.MAX_PULLS


def test_burst_does_not_hide_another_client(broker: redis.Redis) -> None:
    acceptance.accept([new(send_at=NOON - MINUTE) for _ in range(BURST + 1)], now=NOON)
    other = accepted(client_id=ObjectId())
    assert sweep() == report(pulled=1, woken=1)
    wakeup_count = [m for m in messages(broker) if m.task == "notifications.deliver"]
    assert [m.ids for m in wakeup_count] == [[other["_id"]]]


def test_future_burst_gets_a_scheduled_pull(broker: redis.Redis) -> None:
    acceptance.accept([new(send_at=NOON + 9 * SECOND) for _ in range(BURST + 1)], now=NOON)
    assert sweep() == report(pulled=1)
    (message,) = messages(broker)
    assert message.task == "notifications.pull"
    assert message.eta is not None


def test_sweep_requests_a_worker_heartbeat(broker: redis.Redis) -> None:
    sweep()
    (message,) = messages(broker, SERVICE)
    assert message.task == "notifications.heartbeat"
    assert heartbeats.last_worker_heartbeat() is None
    heartbeats.record_worker_heartbeat(now=NOON)
    assert heartbeats.last_worker_heartbeat() == NOON


def test_dead_workers_delivery_is_found_within_150_seconds() -> None:
    """A lease begins with the claim; after its end, the next sweep but one is the last to come."""
    assert LEASE + 2 * sweeper.SWEEP_SECONDS * SECOND <= 150 * SECOND


def test_lost_attempt_is_recovered_as_unknown() -> None:
    begun = started()
    assert sweep(NOON + LEASE).recovered == 1
    assert factories.read(begun.notification_id)["delivery"][0]["status"] == "unknown"


@pytest.mark.parametrize(
    ("type_", "status", "wakeup_count"),
    [("payment_confirmed", "pending", 1), ("marketing", "failed", 0)],
    ids=["retried", "failed"],
)
def test_unknown_outcome_is_resolved_by_its_type(
    broker: redis.Redis, type_: str, status: str, wakeup_count: int
) -> None:
    document = factories.settled(S.UNKNOWN, type=type_)
    done = sweep(NOON + 5 * MINUTE)
    assert (done.resolved, done.woken) == (1, wakeup_count)
    assert factories.delivery(factories.read(document["_id"]))["status"] == status
    assert len(woken(broker)) == wakeup_count


def test_unknown_outcome_of_a_removed_type_fails() -> None:
    document = factories.settled(S.UNKNOWN)
    collection("notification_types").delete_one({"_id": "payment_confirmed"})
    types.invalidate_types()
    assert sweep(NOON + 5 * MINUTE).resolved == 1
    assert factories.delivery(factories.read(document["_id"]))["status"] == "failed"


def test_unknown_outcome_waits_for_its_receipt() -> None:
    factories.settled(S.UNKNOWN)
    assert sweep(NOON + 4 * MINUTE).resolved == 0


def test_concurrent_sweepers_recover_each_delivery_once() -> None:
    for _ in range(10):
        started()
        factories.settled(S.UNKNOWN)
    with ThreadPoolExecutor(4) as threads:
        reports = list(threads.map(lambda _: sweep(NOON + 10 * MINUTE), range(4)))
    assert sum(report.recovered for report in reports) == 10
    assert sum(report.resolved for report in reports) == 10


def test_sweep_records_its_heartbeat() -> None:
    assert heartbeats.last_sweep() is None
    sweep()
    assert heartbeats.last_sweep() == NOON
    sweep(NOON + MINUTE)
    assert heartbeats.last_sweep() == NOON + MINUTE


WAKEUP: dict[str, Any] = {"channel": Channel.EMAIL, "priority": Priority.NORMAL, "now": NOON}


@pytest.fixture
def no_broker(broker: redis.Redis, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish to a port without a listener."""
    settings.REDIS_URL = f"redis://127.0.0.1:{servers.free_port()}/0"
    monkeypatch.setattr(server_health, "PAUSE_AFTER_FAILURE", SILENT_FOR)


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    counted: list[None] = []
    record_failure = ServerHealth.record_failure

    def count(self: ServerHealth) -> None:
        if self is platform_broker._health:
            counted.append(None)
        record_failure(self)

    monkeypatch.setattr(ServerHealth, "record_failure", count)
    return counted


@pytest.mark.usefixtures("no_broker")
def test_lost_attempt_is_recovered() -> None:
    started()
    assert sweeper.sweep(now=NOON + LEASE).recovered == 1
    assert heartbeats.last_sweep() == NOON + LEASE


@pytest.mark.usefixtures("no_broker")
def test_sweep_counts_unpublished_wakeups() -> None:
    acceptance.accept([new() for _ in range(3)], now=NOON)
    report = sweeper.sweep(now=NOON)
    assert report == SweepReport(woken=0, pulled=0, unpublished=3, recovered=0, resolved=0)


@pytest.mark.usefixtures("no_broker")
def test_wakeup_fails_without_an_error(failures: list[None]) -> None:
    assert not wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert wakeups.depth("email.normal") is None
    fair_queue.enqueue_wakeups([accepted() for _ in range(20)], now=NOON)
    assert len(failures) == 1, "asked once"


@pytest.mark.usefixtures("no_broker")
def test_recent_success_does_not_delay_the_failure(failures: list[None]) -> None:
    platform_broker._health.record_answer()
    assert not wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert len(failures) == 1


def test_pause_skips_the_broker(broker: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    platform_broker._health.record_failure()
    assert not wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert broker.llen("email.normal") == 0
    monkeypatch.setattr(server_health, "PAUSE_AFTER_FAILURE", 0.0)
    assert wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert broker.llen("email.normal") == 1


def test_unpublished_wakeup_is_sent_when_the_broker_is_back(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted()
    platform_broker._health.record_failure()
    report = sweeper.sweep(now=NOON)
    assert report == SweepReport(woken=0, pulled=0, unpublished=1, recovered=0, resolved=0)
    monkeypatch.setattr(server_health, "PAUSE_AFTER_FAILURE", 0.0)
    assert sweeper.sweep(now=NOON).woken == 1
    assert broker.llen("email.normal") == 1
