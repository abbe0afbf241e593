"""What a worker does with its messages: fairly, within its channel's room, until asked to stop."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId
from pymongo.errors import NotPrimaryError

from delivery import dispatcher, sweeper, worker
from domain import content
from domain.states import Channel, Priority
from notifications import store
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import BURST, FairQueue
from notifyproject.db.collections import collection
from notifyproject.platform import process
from tests.support.broker_messages import queued_messages, work
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, accepted, new
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import ScriptedProvider

pytestmark = pytest.mark.usefixtures("db", "broker", "own_process")

EMAIL = Channel.EMAIL
LANE = FairQueue(CLIENT, EMAIL, Priority.NORMAL)
OTHER = ObjectId("d" * 24)
SECOND = timedelta(seconds=1)


def noon() -> Any:
    return NOON


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    provider = ScriptedProvider()
    monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: (provider,))
    return provider


def crowd(count: int = BURST + 150, **fields: Any) -> None:
    store.accept([new(**fields) for _ in range(count)], now=NOON)


def _ticket(broker: redis.Redis, *, slot: int) -> fair_queue.PullToken:
    """Return the ticket of a draw that has a slot."""
    broker.set(LANE.key(slot), "mine")
    return fair_queue.PullToken(slot, "mine")


def still_open() -> int:
    return collection("notifications").count_documents({"due_at": {"$exists": True}})


# Draws.


def test_a_crowd_is_drawn_to_its_end(broker: redis.Redis, provider: ScriptedProvider) -> None:
    crowd()
    fair_queue.enqueue_pulls(LANE, now=NOON)
    work(broker, clock=noon)
    assert len(provider.seen) == BURST + 150
    assert still_open() == 0
    assert len({o.reference for o in provider.seen}) == BURST + 150


def test_the_other_clients_hint_comes_before_the_rest_of_a_crowd(
    broker: redis.Redis, provider: ScriptedProvider
) -> None:
    crowd(600)
    fair_queue.enqueue_pulls(LANE, now=NOON)
    other = accepted(client_id=OTHER)
    fair_queue.enqueue_wakeups([other], now=NOON)
    work(broker, clock=noon)
    place = [o.notification_id for o in provider.seen].index(str(other["_id"]))
    assert place <= fair_queue.MAX_PULLS * wakeups.WAKEUP_SIZE
    assert len(provider.seen) == 601


def test_two_crowds_take_turns(broker: redis.Redis, provider: ScriptedProvider) -> None:
    crowd(600)
    crowd(600, client_id=OTHER, recipient=content.Recipient(email="eve@example.com"))
    fair_queue.enqueue_pulls(LANE, now=NOON)
    fair_queue.enqueue_pulls(FairQueue(OTHER, EMAIL, Priority.NORMAL), now=NOON)
    work(broker, clock=noon)
    first_half = [o.recipient for o in provider.seen[:600]]
    assert 200 <= first_half.count("eve@example.com") <= 400


def test_draws_that_look_at_once_take_one_batch_behind_the_other(
    broker: redis.Redis, provider: ScriptedProvider, settings: Any
) -> None:
    settings.WORKER_THREADS = 8
    crowd(3 * wakeups.WAKEUP_SIZE)
    ids = [one["_id"] for one in collection("notifications").find().sort("_id")]
    worker.pull(LANE, _ticket(broker, slot=2), clock=noon)
    first = {o.notification_id for o in provider.seen}
    assert first == {str(one) for one in ids[2 * 96 : 3 * 96]}
    worker.pull(LANE, _ticket(broker, slot=0), clock=noon)
    assert {o.notification_id for o in provider.seen} - first == {str(one) for one in ids[:96]}


def test_of_few_any_draw_takes_all(broker: redis.Redis, provider: ScriptedProvider) -> None:
    crowd(5)
    worker.pull(LANE, _ticket(broker, slot=3), clock=noon)
    assert len(provider.seen) == 5


def test_what_came_while_a_draw_was_sending_calls_in_one_draw_however_much_that_is(
    broker: redis.Redis, provider: ScriptedProvider
) -> None:
    def more_comes(_outbound: Any) -> Any:
        if len(provider.seen) == 1:
            crowd(3)
        return scripted.accepted()

    provider.behave = more_comes
    crowd(1)
    worker.pull(LANE, None, clock=noon)
    (message,) = queued_messages(broker)
    assert (message.task, message.eta) == (wakeups.PULL, None)
    work(broker, clock=noon)
    assert still_open() == 0


def test_what_falls_due_within_the_minute_is_drawn_then(
    broker: redis.Redis, provider: ScriptedProvider
) -> None:
    crowd(5, send_at=NOON + 9 * SECOND)
    worker.pull(LANE, None, clock=noon)
    (message,) = queued_messages(broker)
    assert (message.task, message.args[3][0]) == (wakeups.PULL, fair_queue.AHEAD_SLOT)
    assert message.eta is not None
    assert provider.seen == []


def test_behind_a_rate_a_draw_waits_rather_than_parks_one_after_the_other(
    broker: redis.Redis, provider: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"scripted": (10.0, 10)}
    crowd(2 * wakeups.WAKEUP_SIZE)
    worker.pull(LANE, None, clock=noon)
    assert len(provider.seen) == 10
    messages = queued_messages(broker)
    assert {m.task for m in messages} == {wakeups.PULL}
    assert all(m.eta is not None for m in messages)
    touched = {"delivery.failure_code": "rate_limited"}
    assert collection("notifications").count_documents(touched) == worker.batch_size() - 10


def test_a_draw_whose_slot_is_anothers_by_now_takes_what_is_due_and_is_followed_by_that_one(
    broker: redis.Redis, provider: ScriptedProvider
) -> None:
    """It may have waited for long, and the one that was given its slot waits as long."""
    crowd(2 * wakeups.WAKEUP_SIZE)
    broker.set(LANE.key(0), "another")
    broker.set(LANE.key(1), "one more")
    assert worker.pull(LANE, fair_queue.PullToken(0, "late"), clock=noon) == worker.batch_size()
    assert queued_messages(broker) == []


def test_a_draw_is_followed_by_its_next_one_and_where_there_is_room_by_one_more(
    broker: redis.Redis, provider: ScriptedProvider
) -> None:
    crowd(2 * wakeups.WAKEUP_SIZE)
    worker.pull(LANE, _ticket(broker, slot=1), clock=noon)
    assert [message.args[3][0] for message in queued_messages(broker)] == [1, 2]


def test_a_draw_that_the_database_fails_comes_back(
    broker: redis.Redis, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise NotPrimaryError("it steps down")

    crowd(3)
    monkeypatch.setattr(dispatcher, "dispatch", fail)
    with pytest.raises(NotPrimaryError):
        worker.pull(LANE, _ticket(broker, slot=1), clock=noon)
    (message,) = queued_messages(broker)
    assert (message.task, message.args[3][0]) == (wakeups.PULL, fair_queue.RETRY_SLOT)
    assert message.eta is not None


# Room for other clients and channels.


def test_a_process_is_at_a_few_batches_of_a_client_and_leaves_the_rest_to_them(
    broker: redis.Redis, provider: ScriptedProvider
) -> None:
    drawn: list[int] = []

    def draw_again(_outbound: Any) -> Any:
        if len(provider.seen) <= worker.MAX_BATCHES_PER_CLIENT:
            crowd(1)
            drawn.append(worker.pull(LANE, None, clock=noon))
        return scripted.accepted()

    provider.behave = draw_again
    crowd(1)
    worker.pull(LANE, None, clock=noon)
    assert drawn == [0, *[1] * (worker.MAX_BATCHES_PER_CLIENT - 1)]
    assert len(provider.seen) == worker.MAX_BATCHES_PER_CLIENT
    first, *_ = queued_messages(broker)
    assert (first.task, first.args[3][0]) == (wakeups.PULL, fair_queue.RETRY_SLOT), "if these hang"
    assert first.eta is not None
    work(broker, clock=noon)
    assert still_open() == 0


def test_batches_of_a_client_leave_room_for_those_of_another(provider: ScriptedProvider) -> None:
    drawn: list[int] = []

    def draw_again(_outbound: Any) -> Any:
        if len(provider.seen) < worker.MAX_BATCHES_PER_CLIENT:
            crowd(1)
            worker.pull(LANE, None, clock=noon)
        elif not drawn:
            crowd(1, client_id=OTHER)
            drawn.append(0)
            drawn[0] = worker.pull(FairQueue(OTHER, EMAIL, Priority.NORMAL), None, clock=noon)
        return scripted.accepted()

    provider.behave = draw_again
    crowd(1)
    worker.pull(LANE, None, clock=noon)
    assert drawn == [1]


def test_a_channel_has_most_threads_and_not_all(
    broker: redis.Redis, provider: ScriptedProvider, settings: Any
) -> None:
    settings.WORKER_THREADS = 4
    inner: list[int] = []

    def one_more(_outbound: Any) -> Any:
        inner.append(1)
        if len(inner) <= 3:
            worker.handle_wakeup(
                [accepted()["_id"]], channel=EMAIL, priority=Priority.NORMAL, clock=noon
            )
        return scripted.accepted()

    provider.behave = one_more
    worker.handle_wakeup([accepted()["_id"]], channel=EMAIL, priority=Priority.NORMAL, clock=noon)
    assert len(provider.seen) == 3
    (message,) = queued_messages(broker)
    assert message.eta is not None


# Stopping.


def test_a_worker_that_is_asked_to_stop_ends_its_round_and_gives_the_rest_back(
    broker: redis.Redis, provider: ScriptedProvider, settings: Any
) -> None:
    settings.WORKER_THREADS = 1

    def stop(_outbound: Any) -> Any:
        process.request_shutdown()
        return scripted.accepted()

    provider.behave = stop
    ids = [accepted()["_id"] for _ in range(5)]
    worker.handle_wakeup(ids, channel=EMAIL, priority=Priority.NORMAL, clock=noon)
    assert len(provider.seen) == 1
    (message,) = queued_messages(broker)
    assert set(message.ids) < set(ids)
    assert len(message.ids) == 4
    given_back = [factories.delivery(factories.read(one)) for one in message.ids]
    assert {(d["status"], d["claim"], d["claim_count"]) for d in given_back} == {
        ("pending", None, 0)
    }


def test_a_worker_that_stops_leaves_its_messages_to_others(
    broker: redis.Redis, provider: ScriptedProvider
) -> None:
    process.request_shutdown()
    worker.handle_wakeup([accepted()["_id"]], channel=EMAIL, priority=Priority.NORMAL, clock=noon)
    worker.pull(LANE, None, clock=noon)
    assert provider.seen == []
    assert [m.task for m in queued_messages(broker)] == [wakeups.DELIVER] + [
        wakeups.PULL
    ] * fair_queue.MAX_PULLS


# Without a broker.


def test_without_a_broker_one_process_sends_everything_the_urgent_first(
    provider: ScriptedProvider,
) -> None:
    low = accepted(priority=Priority.LOW)
    crowd(150)
    urgent = accepted(priority=Priority.CRITICAL, client_id=OTHER)
    assert worker.run_inline(clock=noon) == 152
    order = [o.notification_id for o in provider.seen]
    assert (order[0], order[-1]) == (str(urgent["_id"]), str(low["_id"]))
    assert sweeper.sweep(now=NOON).woken == 0
