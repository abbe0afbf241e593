"""The worker: pulls, wake-ups, fairness, thread limits, and shutdown."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
import redis
from bson import ObjectId
from pymongo.errors import NotPrimaryError

from delivery import accounts, pipeline, send_loop, sweeper, worker
from delivery.circuit_breaker import FIRST_WAIT, CircuitReporter, circuit_name
from delivery.pipeline import ISOLATION_TIME, Isolation, channel_threads
from delivery.runtime import SendingRuntime
from delivery.window import SendWindow
from domain import content
from domain.channels import Channel
from domain.states import Priority
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import BURST, FairQueue
from notifications.queueing.wakeups import ISOLATED_PER_WAKEUP
from notifications.store import acceptance, leases
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from notifyproject.platform import process
from tests.support.accounts import declare
from tests.support.broker_messages import queued_messages, work
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, accepted, new
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import ScriptedProvider
from tests.support.waiting import LIMIT, until

pytestmark = pytest.mark.usefixtures("db", "broker", "own_process")

EMAIL = Channel.EMAIL
QUEUE = FairQueue(CLIENT, EMAIL, Priority.NORMAL)
OTHER = ObjectId("d" * 24)
SECOND = timedelta(seconds=1)
OPEN = {"due_at": {"$exists": True}}
BRANDED = replace(new().content, look=content.Look(design=1, brand="acme"))


def noon() -> Any:
    return NOON


@pytest.fixture(autouse=True)
def _unlimited(settings: Any) -> None:
    settings.PROVIDER_RATES = {}


def accept_burst(count: int = BURST + 150, **fields: Any) -> None:
    acceptance.accept([new(**fields) for _ in range(count)], now=NOON)


def _token(broker: redis.Redis, *, slot: int) -> fair_queue.PullToken:
    broker.set(QUEUE.key(slot), "mine")
    return fair_queue.PullToken(slot, "mine")


def still_open() -> int:
    return collection("notifications").count_documents(OPEN)


def test_burst_is_pulled_completely(broker: redis.Redis, fcm: ScriptedProvider) -> None:
    accept_burst()
    fair_queue.enqueue_pulls(QUEUE, now=NOON)
    work(broker, clock=noon)
    assert len(fcm.seen) == BURST + 150
    assert still_open() == 0
    assert len({o.reference for o in fcm.seen}) == BURST + 150


def test_wakeup_of_another_client_comes_before_the_rest_of_a_burst(
    broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    accept_burst(600)
    fair_queue.enqueue_pulls(QUEUE, now=NOON)
    other = accepted(client_id=OTHER)
    fair_queue.enqueue_wakeups([other], now=NOON)
    work(broker, clock=noon)
    place = [o.notification_id for o in fcm.seen].index(str(other["_id"]))
    assert place <= fair_queue.MAX_PULLS * wakeups.WAKEUP_SIZE
    assert len(fcm.seen) == 601


def test_two_bursts_take_turns(broker: redis.Redis, fcm: ScriptedProvider) -> None:
    accept_burst(600)
    accept_burst(600, client_id=OTHER, recipient=content.Recipient(email="eve@example.com"))
    fair_queue.enqueue_pulls(QUEUE, now=NOON)
    fair_queue.enqueue_pulls(FairQueue(OTHER, EMAIL, Priority.NORMAL), now=NOON)
    work(broker, clock=noon)
    assert 200 <= [o.recipient for o in fcm.seen[:600]].count("eve@example.com") <= 400


def test_concurrent_pulls_take_consecutive_batches(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider, settings: Any
) -> None:
    settings.WORKER_THREADS = 8
    accept_burst(3 * wakeups.WAKEUP_SIZE)
    ids = [document["_id"] for document in collection("notifications").find().sort("_id")]
    worker.pull(runtime, QUEUE, _token(broker, slot=2), clock=noon)
    first = {o.notification_id for o in fcm.seen}
    assert first == {str(notification_id) for notification_id in ids[2 * 96 : 3 * 96]}
    worker.pull(runtime, QUEUE, _token(broker, slot=0), clock=noon)
    assert {o.notification_id for o in fcm.seen} - first == {
        str(notification_id) for notification_id in ids[:96]
    }


def test_any_pull_takes_a_small_backlog(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    accept_burst(5)
    worker.pull(runtime, QUEUE, _token(broker, slot=3), clock=noon)
    assert len(fcm.seen) == 5


def test_new_deliveries_add_one_pull(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    def accept_more(_outbound: Any) -> Any:
        if len(fcm.seen) == 1:
            accept_burst(3)
        return scripted.accepted()

    fcm.behave = accept_more
    accept_burst(1)
    worker.pull(runtime, QUEUE, None, clock=noon)
    (message,) = queued_messages(broker)
    assert (message.task, message.eta) == (wakeups.PULL, None)
    work(broker, clock=noon)
    assert still_open() == 0


def test_due_within_a_minute_is_scheduled(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    accept_burst(5, send_at=NOON + 9 * SECOND)
    worker.pull(runtime, QUEUE, None, clock=noon)
    (message,) = queued_messages(broker)
    assert (message.task, message.args[3][0]) == (
        wakeups.PULL,
        fair_queue.slot_at(NOON + 9 * SECOND),
    )
    assert message.eta is not None
    assert fcm.seen == []


def test_pull_waits_for_the_rate_instead_of_deferring(
    runtime: SendingRuntime,
    broker: redis.Redis,
    fcm: ScriptedProvider,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send_loop, "RATE_WAIT_SECONDS", 0.0)
    settings.PROVIDER_RATES = {"fcm": (10.0, 10)}
    accept_burst(2 * wakeups.WAKEUP_SIZE)
    worker.pull(runtime, QUEUE, None, clock=noon)
    assert len(fcm.seen) == 10
    messages = queued_messages(broker)
    assert {m.task for m in messages} == {wakeups.PULL}
    assert all(m.eta is not None for m in messages)
    touched = {"delivery.failure_code": "rate_limited"}
    assert collection("notifications").count_documents(touched) == worker.batch_size() - 10


def test_pull_waits_for_the_account_and_for_no_scope_of_it(
    runtime: SendingRuntime,
    broker: redis.Redis,
    fcm: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host that fails would delay the others behind it until its circuit's probe."""
    monkeypatch.setattr(fcm, "scope", lambda target: target.address.partition("@")[2])
    accept_burst(worker.batch_size(), recipient=content.Recipient(email="ada@down.example"))
    accept_burst(1)
    CircuitReporter().trip(circuit_name(fcm, "down.example"), now=NOON, retry_after=None)
    assert worker.pull(runtime, QUEUE, None, clock=noon) == worker.batch_size()
    assert {message.eta for message in queued_messages(broker)} == {None}
    broker.flushdb()
    CircuitReporter().trip(fcm.account, now=NOON, retry_after=None)
    accept_burst(worker.batch_size())
    assert worker.pull(runtime, QUEUE, None, clock=noon) == worker.batch_size()
    assert fcm.seen == []
    assert None not in {message.eta for message in queued_messages(broker)}


@pytest.mark.parametrize("is_pause", [False, True])
def test_one_pull_takes_what_waits_for_a_scope(
    runtime: SendingRuntime,
    broker: redis.Redis,
    fcm: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
    is_pause: bool,
) -> None:
    """A wake-up of its own for each would keep the queue busy when the wait ends."""
    monkeypatch.setattr(fcm, "scope", lambda target: target.address.partition("@")[2])
    name, seconds = circuit_name(fcm, "down.example"), FIRST_WAIT / SECOND
    if is_pause:
        CircuitReporter().pause(name, now=NOON, retry_after=seconds)
    else:
        CircuitReporter().trip(name, now=NOON, retry_after=None)
    waiting = content.Recipient(email="ada@down.example")
    documents = [accepted(recipient=waiting) for _ in range(5)]
    for document in documents:
        worker.handle_wakeup(
            runtime, [document["_id"]], channel=EMAIL, priority=Priority.NORMAL, clock=noon
        )
    wait_ends, later = NOON + FIRST_WAIT, NOON + FIRST_WAIT + 4 * SECOND
    pulls = queued_messages(broker)
    assert {message.task for message in pulls} == {wakeups.PULL}
    due = [wait_ends, wait_ends + SECOND if is_pause else later]
    assert [message.eta for message in pulls] == [at.isoformat() for at in due]
    assert worker.pull(runtime, QUEUE, None, clock=lambda: later) == 5
    assert len(fcm.seen) == (5 if is_pause else 1), "only a circuit needs a probe"


def test_no_second_batch_of_a_client_waits_for_the_same_tokens(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"fcm": (100.0, 1)}
    pulled: dict[str, int] = {}
    other = FairQueue(OTHER, EMAIL, Priority.NORMAL)

    def pull_again(_outbound: Any) -> Any:
        if not pulled:
            until(
                lambda: pipeline.is_waiting_for_rate(runtime, QUEUE),
                otherwise="the batch did not wait",
            )
            pulled["same client"] = worker.pull(runtime, QUEUE, None)
            pulled["another"] = worker.pull(runtime, other, None)
        return scripted.accepted()

    fcm.behave = pull_again
    accept_burst(6)
    accept_burst(1, client_id=OTHER)
    assert worker.pull(runtime, QUEUE, None) == 6
    assert pulled == {"same client": 0, "another": 1}
    assert not pipeline.is_waiting_for_rate(runtime, QUEUE)
    # The other client's delivery may have met an empty bucket, and is then held.
    assert collection("notifications").count_documents({**OPEN, "client_id": CLIENT}) == 0
    pulls = [message for message in queued_messages(broker) if message.task == wakeups.PULL]
    assert fair_queue.RETRY_SLOT in [message.args[3][0] for message in pulls]


@pytest.fixture
def acme(settings: Any, monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """Return the account of a brand, which sends nothing else."""
    declare(settings, PROVIDER_ACME_KIND="sendgrid", PROVIDER_ACME_API_KEY="SG.key-of-acme")
    brands = {"acme": {"name": "Acme", "accounts": {"email": ["acme"]}}}
    others: dict[str, Any] = {
        name: {} for name in ("partials", "layouts", "translations", "changed_in")
    }
    collection("designs").insert_one({"_id": 1, "brands": brands, **others})
    found = ScriptedProvider(name="acme")
    monkeypatch.setattr(accounts, "get_provider", lambda _name: found)
    return found


def test_queue_of_a_brand_waits_for_the_tokens_of_its_own_account(
    runtime: SendingRuntime, fcm: ScriptedProvider, acme: ScriptedProvider
) -> None:
    """What other messages of the channel wait for is nothing to it, and the other way round."""
    accept_burst(1, content=BRANDED)
    accept_burst(1, client_id=OTHER)
    other = FairQueue(OTHER, EMAIL, Priority.NORMAL)
    assert [worker.pull(runtime, queue, None, clock=noon) for queue in (QUEUE, other)] == [1, 1]
    for account, waits in ((acme.account, (True, False)), (fcm.account, (False, True))):
        runtime.rate_waits[account] = {"batch"}
        found = [pipeline.is_waiting_for_rate(runtime, queue) for queue in (QUEUE, other)]
        assert found == list(waits)
        runtime.rate_waits.clear()
    runtime.windows.of(acme).adjust(5)
    runtime.windows.of(fcm).adjust(2)
    assert [pipeline.in_flight(runtime, queue) for queue in (QUEUE, other)] == [5, 2]


def test_queue_of_two_lanes_waits_for_the_rate_if_both_do(
    runtime: SendingRuntime, fcm: ScriptedProvider, acme: ScriptedProvider
) -> None:
    accept_burst(1)
    accept_burst(1, content=BRANDED)
    assert worker.pull(runtime, QUEUE, None, clock=noon) == 2
    runtime.rate_waits[acme.account] = {"batch"}
    assert not pipeline.is_waiting_for_rate(runtime, QUEUE)
    runtime.rate_waits[fcm.account] = {"batch"}
    assert pipeline.is_waiting_for_rate(runtime, QUEUE)
    accept_burst(1)
    assert worker.pull(runtime, QUEUE, None, clock=noon) == 1
    assert runtime.lanes == {}, "without a brand, nothing is noted"


def test_pull_waits_for_the_account_of_a_brand_as_for_the_channels(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider, acme: ScriptedProvider
) -> None:
    """Else a backlog would be claimed, rendered, and held while nothing can be sent."""
    CircuitReporter().trip(acme.account, now=NOON, retry_after=None)
    accept_burst(worker.batch_size() + 1, content=BRANDED)
    assert worker.pull(runtime, QUEUE, None, clock=noon) == worker.batch_size()
    assert None not in {message.eta for message in queued_messages(broker)}
    broker.flushdb()
    accept_burst(2 * worker.batch_size(), client_id=OTHER)
    other = FairQueue(OTHER, EMAIL, Priority.NORMAL)
    assert worker.pull(runtime, other, None, clock=noon) == worker.batch_size()
    assert None in {message.eta for message in queued_messages(broker)}
    assert (acme.seen, len(fcm.seen)) == ([], worker.batch_size())


def test_batch_that_waits_for_one_of_two_accounts_is_the_only_one(
    runtime: SendingRuntime, mail: tuple[ScriptedProvider, ScriptedProvider]
) -> None:
    """The second account takes over, and has no deliveries of its own."""
    runtime.rate_waits[mail[0].account] = {"batch"}
    assert pipeline.is_waiting_for_rate(runtime, QUEUE)


def test_pull_with_a_replaced_token_takes_one_batch_without_a_successor(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    """A pull with the new token is queued already."""
    accept_burst(2 * wakeups.WAKEUP_SIZE)
    broker.set(QUEUE.key(0), "another")
    broker.set(QUEUE.key(1), "one more")
    assert (
        worker.pull(runtime, QUEUE, fair_queue.PullToken(0, "late"), clock=noon)
        == worker.batch_size()
    )
    assert queued_messages(broker) == []


def test_pull_continues_and_adds_another(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    accept_burst(2 * wakeups.WAKEUP_SIZE)
    worker.pull(runtime, QUEUE, _token(broker, slot=1), clock=noon)
    assert [message.args[3][0] for message in queued_messages(broker)] == [1, 2]


def test_pull_is_retried_after_a_database_error(
    runtime: SendingRuntime,
    broker: redis.Redis,
    fcm: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise NotPrimaryError("it steps down")

    accept_burst(3)
    monkeypatch.setattr(pipeline, "dispatch", fail)
    with pytest.raises(NotPrimaryError):
        worker.pull(runtime, QUEUE, _token(broker, slot=1), clock=noon)
    (message,) = queued_messages(broker)
    assert (message.task, message.args[3][0]) == (wakeups.PULL, fair_queue.RETRY_SLOT)
    assert message.eta is not None


def test_batches_per_client_are_limited(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    pulled: list[int] = []

    def pull_again(_outbound: Any) -> Any:
        if len(fcm.seen) <= worker.BATCHES_AHEAD:
            accept_burst(1)
            pulled.append(worker.pull(runtime, QUEUE, None, clock=noon))
        return scripted.accepted()

    fcm.behave = pull_again
    accept_burst(1)
    worker.pull(runtime, QUEUE, None, clock=noon)
    assert pulled == [0, *[1] * (worker.BATCHES_AHEAD - 1)]
    assert len(fcm.seen) == worker.BATCHES_AHEAD
    first, *_ = queued_messages(broker)
    assert (first.task, first.args[3][0]) == (wakeups.PULL, fair_queue.RETRY_SLOT), "retried later"
    assert first.eta is not None
    work(broker, clock=noon)
    assert still_open() == 0


def test_more_batches_are_prepared_the_more_requests_are_in_flight(
    runtime: SendingRuntime, fcm: ScriptedProvider, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WORKER_THREADS = 8
    monkeypatch.setattr(worker, "batch_size", lambda: 1)
    pulled: list[int] = []

    def pull_again(_outbound: Any) -> Any:
        accept_burst(1)
        pulled.append(worker.pull(runtime, QUEUE, None, clock=noon))
        return scripted.accepted()

    fcm.behave = pull_again
    accept_burst(1)
    worker.pull(runtime, QUEUE, None, clock=noon)
    assert len(fcm.seen) == channel_threads() - 1
    assert pulled[0] == 0


def test_next_batch_is_pulled_when_the_requests_of_this_one_are_in_flight(
    runtime: SendingRuntime,
    broker: redis.Redis,
    fcm: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "batch_size", lambda: 5)
    pulls: list[int] = []

    def look(_outbound: Any) -> Any:
        until(lambda: len(queued_messages(broker)) == 2, otherwise="the next batch was not pulled")
        pulls.append(len(queued_messages(broker)))
        return scripted.accepted()

    fcm.behave = look
    accept_burst(6)
    assert worker.pull(runtime, QUEUE, _token(broker, slot=0), clock=noon) == 5
    assert set(pulls) == {2}, "its own slot, and another for the free capacity"
    assert len(queued_messages(broker)) == 2


def test_batches_of_one_client_leave_room_for_another(
    runtime: SendingRuntime, fcm: ScriptedProvider
) -> None:
    pulled: list[int] = []

    def pull_again(_outbound: Any) -> Any:
        if len(fcm.seen) < worker.BATCHES_AHEAD:
            accept_burst(1)
            worker.pull(runtime, QUEUE, None, clock=noon)
        elif not pulled:
            accept_burst(1, client_id=OTHER)
            pulled.append(0)
            pulled[0] = worker.pull(
                runtime, FairQueue(OTHER, EMAIL, Priority.NORMAL), None, clock=noon
            )
        return scripted.accepted()

    fcm.behave = pull_again
    accept_burst(1)
    worker.pull(runtime, QUEUE, None, clock=noon)
    assert pulled == [1]


@pytest.mark.parametrize(
    ("priority", "delay"), [(Priority.NORMAL, SECOND), (Priority.CRITICAL, SECOND / 5)]
)
def test_channel_uses_most_threads_but_not_all(
    runtime: SendingRuntime,
    broker: redis.Redis,
    fcm: ScriptedProvider,
    settings: Any,
    *,
    priority: Priority,
    delay: timedelta,
) -> None:
    settings.WORKER_THREADS = 4
    inner: list[int] = []

    def one_more(_outbound: Any) -> Any:
        inner.append(1)
        if len(inner) <= 3:
            worker.handle_wakeup(
                runtime, [accepted()["_id"]], channel=EMAIL, priority=priority, clock=noon
            )
        return scripted.accepted()

    fcm.behave = one_more
    worker.handle_wakeup(runtime, [accepted()["_id"]], channel=EMAIL, priority=priority, clock=noon)
    assert len(fcm.seen) == 3
    (message,) = queued_messages(broker, f"email.{priority}")
    assert message.eta == (NOON + delay).isoformat()


def test_pull_of_critical_deliveries_without_a_free_thread_returns_after_200_ms(
    runtime: SendingRuntime, broker: redis.Redis, settings: Any
) -> None:
    settings.WORKER_THREADS = 1
    queue = FairQueue(QUEUE.client_id, EMAIL, Priority.CRITICAL)
    with runtime.threads.try_acquire(EMAIL, limit=1):
        worker.pull(runtime, queue, None, clock=noon)
    returned = queued_messages(broker, queue.name)
    assert {message.eta for message in returned} == {(NOON + SECOND / 5).isoformat()}


@pytest.mark.usefixtures("one_at_a_time")
def test_stopping_worker_ends_its_requests_and_returns_the_rest(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:

    def stop(_outbound: Any) -> Any:
        process.request_shutdown()
        return scripted.accepted()

    fcm.behave = stop
    ids = [accepted()["_id"] for _ in range(5)]
    worker.handle_wakeup(runtime, ids, channel=EMAIL, priority=Priority.NORMAL, clock=noon)
    assert len(fcm.seen) == 1
    (message,) = queued_messages(broker)
    assert set(message.ids) < set(ids)
    assert len(message.ids) == 4
    given_back = [
        factories.delivery(factories.read(notification_id)) for notification_id in message.ids
    ]
    assert {(d["status"], d["claim"], d["claim_count"]) for d in given_back} == {
        ("pending", None, 0)
    }


def test_stopping_worker_leaves_messages(
    runtime: SendingRuntime, broker: redis.Redis, fcm: ScriptedProvider
) -> None:
    process.request_shutdown()
    worker.handle_wakeup(
        runtime, [accepted()["_id"]], channel=EMAIL, priority=Priority.NORMAL, clock=noon
    )
    worker.pull(runtime, QUEUE, None, clock=noon)
    assert fcm.seen == []
    assert [m.task for m in queued_messages(broker)] == [wakeups.DELIVER] + [
        wakeups.PULL
    ] * fair_queue.MAX_PULLS


def test_inline_worker_sends_everything_by_priority(
    runtime: SendingRuntime, fcm: ScriptedProvider
) -> None:
    low = accepted(priority=Priority.LOW)
    accept_burst(150)
    urgent = accepted(priority=Priority.CRITICAL, client_id=OTHER)
    assert worker.run_inline(runtime, clock=noon) == 152
    order = [o.notification_id for o in fcm.seen]
    assert (order[0], order[-1]) == (str(urgent["_id"]), str(low["_id"]))
    assert sweeper.sweep(now=NOON).woken == 0


def test_stopping_worker_returns_a_batch_that_waits_for_room(
    runtime: SendingRuntime, fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [accepted()["_id"] for _ in range(5)]

    def acquire_late(_window: SendWindow, count: int, *, timeout: float) -> int:
        process.request_shutdown()
        return count

    monkeypatch.setattr(SendWindow, "acquire", acquire_late)
    report = pipeline.dispatch(runtime, ids, channel=EMAIL, clock=noon)
    assert fcm.seen == []
    assert {wakeup.notification_id for wakeup in report.wakeups} == set(ids)
    given_back = [factories.delivery(factories.read(notification_id)) for notification_id in ids]
    assert {(d["claim"], d["claim_count"]) for d in given_back} == {(None, 0)}


def candidates(count: int) -> list[ObjectId]:
    """Return the IDs of deliveries whose worker was lost after its claim."""
    ids = [accepted()["_id"] for _ in range(count)]
    claimed_at = NOON - LEASE
    before = {"send_at": claimed_at, "delivery.0.next_attempt_at": claimed_at}
    collection("notifications").update_many({}, {"$set": before})
    leases.claim(ids=ids, channel=EMAIL, worker="lost", now=claimed_at)
    return ids


def test_wakeup_isolates_candidates_for_a_limited_time_and_leaves_the_rest_to_the_sweep(
    runtime: SendingRuntime, broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    ids = candidates(3)
    times = [NOON]

    def respond_slowly(_outbound: Any) -> Any:
        times.append(times[-1] + ISOLATION_TIME / 2)
        return scripted.accepted()

    mail[0].behave = respond_slowly
    worker.handle_wakeup(
        runtime, ids, channel=EMAIL, priority=Priority.NORMAL, clock=lambda: times[-1]
    )
    assert len(mail[0].seen) == 2
    assert queued_messages(broker) == []
    sweeper.sweep(now=times[-1])
    work(broker, clock=lambda: times[-1])
    assert len(mail[0].seen) == len({o.notification_id for o in mail[0].seen}) == len(ids)


def test_sweep_shares_candidates_between_wakeups(
    broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    candidates(wakeups.WAKEUP_SIZE + 20)
    sweeper.sweep(now=NOON)
    assert {len(message.ids) for message in queued_messages(broker)} == {ISOLATED_PER_WAKEUP}
    work(broker, clock=noon)
    assert (
        len(mail[0].seen)
        == len({o.notification_id for o in mail[0].seen})
        == wakeups.WAKEUP_SIZE + 20
    )
    assert not collection("notifications").count_documents({"due_at": {"$exists": True}})


def test_pull_leaves_candidates_to_the_sweep(
    runtime: SendingRuntime, mail: tuple[ScriptedProvider, ...]
) -> None:
    candidates(2)
    fresh = accepted()["_id"]
    worker.pull(runtime, QUEUE, None, clock=noon)
    assert [o.notification_id for o in mail[0].seen] == [str(fresh)]


def test_sweep_pulls_remaining_burst(
    broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    candidates(2)
    acceptance.accept([new() for _ in range(fair_queue.BURST)], now=NOON)
    sweeper.sweep(now=NOON)
    first, *pulls = queued_messages(broker)
    assert len(first.ids) == 2
    assert {message.task for message in pulls} == {wakeups.PULL}


def test_isolation_uses_half_of_the_threads_of_a_channel(
    runtime: SendingRuntime, broker: redis.Redis, mail: tuple[ScriptedProvider, ...], settings: Any
) -> None:
    settings.WORKER_THREADS = 8
    first, second, third, fourth = ([candidate] for candidate in candidates(4))
    chain = iter([second, third, fourth])

    def one_more(_outbound: Any) -> Any:
        for batch in chain:
            worker.handle_wakeup(
                runtime, batch, channel=EMAIL, priority=Priority.NORMAL, clock=noon
            )
        return scripted.accepted()

    mail[0].behave = one_more
    worker.handle_wakeup(runtime, first, channel=EMAIL, priority=Priority.NORMAL, clock=noon)
    assert len(mail[0].seen) == 3
    # A wake-up for the fourth would only come back until a thread is free.
    assert queued_messages(broker) == []
    sweeper.sweep(now=NOON)
    assert [message.ids for message in queued_messages(broker)] == [fourth]


def test_next_candidate_is_claimed_while_the_previous_is_sent(
    runtime: SendingRuntime, mail: tuple[ScriptedProvider, ...], settings: Any
) -> None:
    """Each request waits until the other has been sent, so sending one by one would hang."""
    settings.WORKER_THREADS = 8
    both = threading.Barrier(2, timeout=LIMIT)

    def meet(_outbound: Any) -> Any:
        both.wait()
        return scripted.accepted()

    mail[0].behave = meet
    with ThreadPoolExecutor(2) as pool:
        sent = pool.map(
            lambda item: pipeline.dispatch(runtime, [item], channel=EMAIL, clock=noon).counts,
            candidates(2),
        )
        assert list(sent) == [{"sent": 1}] * 2


def _is_in(thread: threading.Thread, module: ModuleType) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename != module.__file__:
        frame = frame.f_back
    return frame is not None


def test_one_candidate_at_a_time_is_claimed_and_unsent() -> None:
    lock, order = threading.Lock(), list[str]()

    def another() -> None:
        with Isolation(lock):
            order.append("second")

    with Isolation(lock) as isolation:
        thread = threading.Thread(target=another)
        thread.start()
        until(lambda: _is_in(thread, pipeline))
        order.append("first")
        isolation.end()
        thread.join(timeout=LIMIT)
        order.append("first is sent")
    assert order == ["first", "second", "first is sent"]


def test_stopping_worker_leaves_candidates_to_others(
    runtime: SendingRuntime, broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    def stop(_outbound: Any) -> Any:
        process.request_shutdown()
        return scripted.accepted()

    mail[0].behave = stop
    ids = candidates(3)
    worker.handle_wakeup(runtime, ids, channel=EMAIL, priority=Priority.NORMAL, clock=noon)
    assert len(mail[0].seen) == 1
    sweeper.sweep(now=NOON)
    (message,) = queued_messages(broker)
    assert len(message.ids) == 2
