"""Lanes, on the real broker: a few by id, of a crowd only whose it is."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
import redis
from bson import ObjectId

from domain.states import Channel, Priority
from notifications import store
from notifications.queueing import fair_queue
from notifications.queueing import wakeups as queueing_wakeups
from notifications.queueing.fair_queue import BURST, MAX_PULLS, FairQueue, PullToken
from notifications.queueing.wakeups import WAKEUP_SIZE, Wakeup
from notifyproject.platform import valkey
from tests.support.broker_messages import Message, queued_messages
from tests.support.factories.notifications import CLIENT, NOON, new

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
LANE = FairQueue(CLIENT, EMAIL, Priority.NORMAL)
OTHER = ObjectId("d" * 24)


@pytest.fixture(autouse=True)
def _valkey() -> None:
    valkey.clear()


def announced(count: int, *, client_id: ObjectId = CLIENT, at: datetime = NOON) -> None:
    batch = [new(client_id=client_id, send_at=at, created_at=NOON) for _ in range(count)]
    results = store.accept(batch, now=NOON)
    fair_queue.enqueue_wakeups(
        [r.document for r in results if isinstance(r, store.Accepted)], now=NOON
    )


def drawn(messages: Sequence[Message]) -> list[ObjectId]:
    return [ObjectId(m.args[0]) for m in messages if m.task == queueing_wakeups.PULL]


# By id.


def test_a_few_are_announced_by_id(broker: redis.Redis) -> None:
    announced(3)
    (message,) = queued_messages(broker)
    assert (message.task, len(message.ids), message.eta) == (queueing_wakeups.DELIVER, 3, None)
    assert message.args[1:] == ["email", "normal"]


def test_a_hint_is_of_a_hundred_at_most(broker: redis.Redis) -> None:
    announced(WAKEUP_SIZE + 1)
    assert [len(m.ids) for m in queued_messages(broker)] == [WAKEUP_SIZE, 1]


def test_what_is_due_within_the_minute_is_announced_ahead_and_what_is_later_is_not(
    broker: redis.Redis,
) -> None:
    announced(1, at=NOON + MINUTE)
    announced(1, at=NOON + MINUTE + SECOND)
    (message,) = queued_messages(broker)
    assert message.eta is not None
    # By our clock, whatever the machine's own says.
    assert datetime.fromisoformat(message.eta) == NOON + MINUTE


# A crowd.


def test_a_crowd_is_announced_by_whose_it_is(broker: redis.Redis) -> None:
    announced(MAX_PULLS * WAKEUP_SIZE)
    assert drawn(queued_messages(broker)) == [CLIENT] * MAX_PULLS


def test_many_at_once_and_one_after_the_other_are_a_crowd_alike(broker: redis.Redis) -> None:
    for _ in range(BURST // 100):
        announced(100)
    assert drawn(queued_messages(broker)) == []
    announced(1)
    assert drawn(queued_messages(broker)) == [CLIENT]


@pytest.mark.parametrize(
    ("count", "draws"), [(1, 1), (WAKEUP_SIZE, 1), (WAKEUP_SIZE + 1, 2), (1_000, MAX_PULLS)]
)
def test_what_is_added_to_a_crowd_calls_in_as_many_draws_as_it_needs(
    broker: redis.Redis, count: int, draws: int
) -> None:
    broker.set(LANE.key("count"), BURST, ex=fair_queue.BURST_WINDOW)
    for _ in range(3):
        announced(count)
    assert drawn(queued_messages(broker)) == [CLIENT] * draws


def test_a_crowd_fills_its_lane_with_a_handful_of_messages(broker: redis.Redis) -> None:
    for _ in range(10):
        announced(MAX_PULLS * WAKEUP_SIZE)
    assert len(queued_messages(broker)) == MAX_PULLS


def test_one_clients_crowd_is_not_anothers(broker: redis.Redis) -> None:
    announced(BURST + 1)
    announced(1, client_id=OTHER)
    assert queued_messages(broker)[-1].task == queueing_wakeups.DELIVER


def test_after_a_while_a_client_is_no_crowd_any_more(broker: redis.Redis) -> None:
    announced(BURST + 1)
    assert 0 < broker.ttl(LANE.key("count")) <= fair_queue.BURST_WINDOW
    broker.delete(LANE.key("count"))
    announced(1)
    assert queued_messages(broker)[-1].task == queueing_wakeups.DELIVER


def test_a_crowd_of_later_is_drawn_then_and_takes_no_slot(broker: redis.Redis) -> None:
    announced(BURST + 1, at=NOON + 9 * SECOND)
    (message,) = queued_messages(broker)
    assert (message.task, message.args[3]) == (queueing_wakeups.PULL, None)
    assert message.eta is not None
    assert not any(broker.exists(LANE.key(slot)) for slot in range(MAX_PULLS + 1))


# Slots.


def tickets(broker: redis.Redis) -> list[PullToken]:
    return [PullToken(*m.args[3]) for m in queued_messages(broker)]


def test_a_draw_frees_its_slot_for_what_is_accepted_from_then_on(broker: redis.Redis) -> None:
    assert fair_queue.enqueue_pulls(LANE, now=NOON)
    first, *_ = tickets(broker)
    fair_queue.release_token(LANE, first)
    assert fair_queue.enqueue_pulls(LANE, now=NOON)
    assert tickets(broker)[-1].slot == first.slot
    assert len(tickets(broker)) == MAX_PULLS + 1


def test_a_slot_that_was_given_to_another_draw_stays_with_that_one(broker: redis.Redis) -> None:
    fair_queue.enqueue_pulls(LANE, now=NOON)
    late, *_ = tickets(broker)
    broker.delete(LANE.key(late.slot))
    fair_queue.enqueue_pulls(LANE, now=NOON)
    fair_queue.release_token(LANE, late)
    assert broker.get(LANE.key(late.slot)) == tickets(broker)[-1].nonce.encode()


def test_a_draw_goes_on_in_its_own_slot(broker: redis.Redis) -> None:
    assert fair_queue.continue_pull(LANE, PullToken(2, "done"), now=NOON)
    assert [one.slot for one in tickets(broker)] == [2]


def test_if_another_has_its_slot_by_then_that_one_goes_on(broker: redis.Redis) -> None:
    fair_queue.enqueue_pulls(LANE, now=NOON)
    assert fair_queue.continue_pull(LANE, PullToken(2, "done"), now=NOON)
    assert len(tickets(broker)) == MAX_PULLS


@pytest.mark.parametrize(("slot", "slots"), [(2, [2, 3]), (3, [3, 0])])
def test_where_there_is_room_it_calls_in_the_next_one_too(
    broker: redis.Redis, slot: int, slots: list[int]
) -> None:
    assert fair_queue.continue_pull(LANE, PullToken(slot, "done"), has_capacity=True, now=NOON)
    assert [one.slot for one in tickets(broker)] == slots


def test_without_valkeys_slots_a_draw_goes_on_without_one(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> None:
        raise valkey.Unavailable

    monkeypatch.setattr(valkey, "connection", away)
    assert fair_queue.continue_pull(LANE, PullToken(2, "done"), now=NOON)
    monkeypatch.undo()
    (message,) = queued_messages(broker)
    assert message.args[3] is None


def test_a_draw_that_came_to_nothing_comes_back_for_the_oldest(broker: redis.Redis) -> None:
    for _ in range(2):
        assert fair_queue.retry_pull(LANE, at=NOON + SECOND, now=NOON)
    (ticket,) = tickets(broker)
    assert ticket.slot == fair_queue.RETRY_SLOT
    assert ticket.slot % MAX_PULLS == 0, "behind nobody"


def test_what_is_accepted_meanwhile_does_not_wait_for_the_draw_that_comes_back(
    broker: redis.Redis,
) -> None:
    fair_queue.retry_pull(LANE, at=NOON + SECOND, now=NOON)
    assert fair_queue.enqueue_pulls(LANE, count=1, now=NOON)
    assert [m.eta is None for m in queued_messages(broker)] == [False, True]


@pytest.mark.parametrize(
    "ticket",
    [None, PullToken(fair_queue.AHEAD_SLOT, "done"), PullToken(fair_queue.RETRY_SLOT, "done")],
)
def test_a_draw_without_a_slot_calls_in_all(broker: redis.Redis, ticket: PullToken | None) -> None:
    assert fair_queue.continue_pull(LANE, ticket, now=NOON)
    assert len(tickets(broker)) == MAX_PULLS


def test_a_slot_outlives_the_wait_of_its_draw(broker: redis.Redis) -> None:
    fair_queue.schedule_pull(LANE, at=NOON + 40 * SECOND, now=NOON)
    assert 40 < broker.ttl(LANE.key(fair_queue.AHEAD_SLOT)) <= 40 + fair_queue.TOKEN_LIFETIME


def test_one_draw_waits_for_what_falls_due_next(broker: redis.Redis) -> None:
    for seconds in (20, 10):
        assert fair_queue.schedule_pull(LANE, at=NOON + seconds * SECOND, now=NOON)
    assert len(queued_messages(broker)) == 1


def test_a_draw_that_the_broker_does_not_take_leaves_its_slot_free(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing_wakeups, "send_pull", lambda **_: False)
    assert not fair_queue.enqueue_pulls(LANE, now=NOON)
    monkeypatch.undo()
    assert fair_queue.enqueue_pulls(LANE, now=NOON)
    assert len(queued_messages(broker)) == MAX_PULLS


# Looking again.


@pytest.mark.parametrize(
    ("ahead", "moment"),
    [(-5.0, 0.0), (0.0, 0.0), (0.2, 1.0), (1.0, 1.0), (1.001, 2.0), (59.5, 60.0), (60.0, 60.0)],
)
def test_a_moment_is_now_or_the_end_of_a_second(ahead: float, moment: float) -> None:
    at = queueing_wakeups.wakeup_time(NOON + timedelta(seconds=ahead), now=NOON)
    assert at == NOON + timedelta(seconds=moment)


def test_what_is_to_be_looked_at_in_the_same_second_is_one_hint(broker: redis.Redis) -> None:
    wakeups = [
        Wakeup(ObjectId(), EMAIL, Priority.NORMAL, NOON + timedelta(milliseconds=n))
        for n in (100, 900, 1001)
    ]
    queueing_wakeups.send_later(wakeups, now=NOON)
    assert [len(m.ids) for m in queued_messages(broker)] == [2, 1]


def test_what_is_to_be_looked_at_much_later_is_left_to_the_sweep(broker: redis.Redis) -> None:
    queueing_wakeups.send_later(
        [Wakeup(ObjectId(), EMAIL, Priority.NORMAL, NOON + 2 * MINUTE)], now=NOON
    )
    assert queued_messages(broker) == []
