"""Isolation of poison candidates: deliveries whose last claim ended without a start."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import dispatcher, sweeper, worker
from domain.states import Channel, Priority
from notifications import store
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import FairQueue
from notifications.queueing.wakeups import ISOLATED_PER_WAKEUP
from notifyproject.db.collections import collection
from notifyproject.platform import process
from tests.support.broker_messages import queued_messages, work
from tests.support.factories.notifications import CLIENT, NOON, accepted, new
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import ScriptedProvider
from tests.support.waiting import LIMIT, until

pytestmark = pytest.mark.usefixtures("db", "broker", "own_process")

EMAIL = Channel.EMAIL
QUEUE = FairQueue(CLIENT, EMAIL, Priority.NORMAL)


def candidates(count: int) -> list[ObjectId]:
    """Return the ids of deliveries whose worker was lost after its claim."""
    ids = [accepted()["_id"] for _ in range(count)]
    claimed_at = NOON - store.LEASE
    before = {"send_at": claimed_at, "delivery.0.next_attempt_at": claimed_at}
    collection("notifications").update_many({}, {"$set": before})
    store.claim(ids=ids, channel=EMAIL, worker="lost", now=claimed_at)
    return ids


def test_wakeup_isolates_a_few_candidates_and_queues_the_rest(
    broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    ids = candidates(2 * ISOLATED_PER_WAKEUP + 2)
    worker.handle_wakeup(ids, channel=EMAIL, priority=Priority.NORMAL, clock=lambda: NOON)
    assert len(mail[0].seen) == ISOLATED_PER_WAKEUP
    messages = queued_messages(broker)
    assert [len(message.ids) for message in messages] == [ISOLATED_PER_WAKEUP, 2]
    assert not {str(one) for m in messages for one in m.ids} & {
        o.notification_id for o in mail[0].seen
    }
    work(broker, clock=lambda: NOON)
    assert len(mail[0].seen) == len(ids)


def test_sweep_sends_every_candidate_once_in_small_wakeups(
    broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    candidates(wakeups.WAKEUP_SIZE + 20)
    sweeper.sweep(now=NOON)
    assert {len(message.ids) for message in queued_messages(broker)} == {ISOLATED_PER_WAKEUP}
    work(broker, clock=lambda: NOON)
    assert (
        len(mail[0].seen)
        == len({o.notification_id for o in mail[0].seen})
        == wakeups.WAKEUP_SIZE + 20
    )
    assert not collection("notifications").count_documents({"due_at": {"$exists": True}})


def test_pull_leaves_candidates_to_the_sweep(mail: tuple[ScriptedProvider, ...]) -> None:
    candidates(2)
    fresh = accepted()["_id"]
    worker.pull(QUEUE, None, clock=lambda: NOON)
    assert [o.notification_id for o in mail[0].seen] == [str(fresh)]


def test_sweep_pulls_remaining_burst(
    broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    candidates(2)
    store.accept([new() for _ in range(fair_queue.BURST)], now=NOON)
    sweeper.sweep(now=NOON)
    first, *pulls = queued_messages(broker)
    assert len(first.ids) == 2
    assert {message.task for message in pulls} == {wakeups.PULL}


def test_isolation_uses_half_of_the_threads_of_a_channel(
    broker: redis.Redis, mail: tuple[ScriptedProvider, ...], settings: Any
) -> None:
    settings.WORKER_THREADS = 8
    first, second, third, fourth = ([one] for one in candidates(4))
    chain = iter([second, third, fourth])

    def one_more(_outbound: Any) -> Any:
        for one in chain:
            worker.handle_wakeup(one, channel=EMAIL, priority=Priority.NORMAL, clock=lambda: NOON)
        return scripted.accepted()

    mail[0].behave = one_more
    worker.handle_wakeup(first, channel=EMAIL, priority=Priority.NORMAL, clock=lambda: NOON)
    assert len(mail[0].seen) == 3
    (message,) = queued_messages(broker)
    assert (message.ids, message.eta is None) == (fourth, False)


def test_next_candidate_is_claimed_while_the_previous_is_sent(
    mail: tuple[ScriptedProvider, ...], settings: Any
) -> None:
    """Each waits for the request of the other, not for its response."""
    settings.WORKER_THREADS = 8
    both = threading.Barrier(2, timeout=LIMIT)

    def meet(_outbound: Any) -> Any:
        both.wait()
        return scripted.accepted()

    mail[0].behave = meet
    with ThreadPoolExecutor(2) as pool:
        sent = pool.map(
            lambda one: dispatcher.dispatch([one], channel=EMAIL, clock=lambda: NOON).counts,
            candidates(2),
        )
        assert list(sent) == [{"sent": 1}] * 2


def _is_in(thread: threading.Thread, module: ModuleType) -> bool:
    """Return whether a thread runs code of a module."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename != module.__file__:
        frame = frame.f_back
    return frame is not None


def test_one_candidate_at_a_time_is_claimed_and_unsent() -> None:
    order: list[str] = []

    def another() -> None:
        with dispatcher.isolate():
            order.append("second")

    with dispatcher.isolate():
        thread = threading.Thread(target=another)
        thread.start()
        until(lambda: _is_in(thread, dispatcher))
        order.append("first")
        dispatcher.end_isolation()
        thread.join(timeout=LIMIT)
        order.append("first is sent")
    assert order == ["first", "second", "first is sent"]


def test_stopping_worker_leaves_candidates_to_others(
    broker: redis.Redis, mail: tuple[ScriptedProvider, ...]
) -> None:
    def stop(_outbound: Any) -> Any:
        process.request_shutdown()
        return scripted.accepted()

    mail[0].behave = stop
    ids = candidates(3)
    worker.handle_wakeup(ids, channel=EMAIL, priority=Priority.NORMAL, clock=lambda: NOON)
    assert len(mail[0].seen) == 1
    (message,) = queued_messages(broker)
    assert len(message.ids) == 2
