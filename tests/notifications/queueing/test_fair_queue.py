"""Fair queues with the real broker: wake-ups by ID, and pulls for bursts."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
import redis
from bson import ObjectId

from domain.channels import Channel
from domain.states import Priority
from notifications.queueing import fair_queue
from notifications.queueing import wakeups as queueing_wakeups
from notifications.queueing.fair_queue import BURST, MAX_PULLS, FairQueue, PullToken
from notifications.queueing.wakeups import WAKEUP_SIZE, Wakeup
from notifications.store import acceptance
from notifications.store.acceptance import Accepted
from notifyproject.platform import broker as broker_client
from notifyproject.platform import valkey
from tests.support.broker_messages import Message, queued_messages
from tests.support.factories.notifications import CLIENT, NOON, new
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
QUEUE = FairQueue(CLIENT, EMAIL, Priority.NORMAL)


@pytest.fixture(autouse=True)
def _valkey() -> None:
    valkey.clear()


def accept_and_enqueue(count: int, *, client_id: ObjectId = CLIENT, at: datetime = NOON) -> None:
    batch = [new(client_id=client_id, send_at=at, created_at=NOON) for _ in range(count)]
    results = acceptance.accept(batch, now=NOON)
    fair_queue.enqueue_wakeups([r.document for r in results if isinstance(r, Accepted)], now=NOON)


def pulled_clients(messages: Sequence[Message]) -> list[ObjectId]:
    return [ObjectId(m.args[0]) for m in messages if m.task == queueing_wakeups.PULL]


def test_few_deliveries_get_wakeups_by_id(broker: redis.Redis) -> None:
    accept_and_enqueue(3)
    (message,) = queued_messages(broker)
    assert (message.task, len(message.ids), message.eta) == (queueing_wakeups.DELIVER, 3, None)
    assert message.args[1:] == ["email", "normal"]


def test_wakeup_holds_at_most_100_ids(broker: redis.Redis) -> None:
    accept_and_enqueue(WAKEUP_SIZE + 1)
    assert [len(m.ids) for m in queued_messages(broker)] == [WAKEUP_SIZE, 1]


def test_due_within_a_minute_gets_a_scheduled_wakeup_and_later_none(broker: redis.Redis) -> None:
    accept_and_enqueue(1, at=NOON + MINUTE)
    accept_and_enqueue(1, at=NOON + MINUTE + SECOND)
    (message,) = queued_messages(broker)
    assert message.eta is not None
    # By the passed clock, not by the clock of the machine.
    assert datetime.fromisoformat(message.eta) == NOON + MINUTE


def test_burst_gets_pulls(broker: redis.Redis) -> None:
    accept_and_enqueue(MAX_PULLS * WAKEUP_SIZE)
    assert pulled_clients(queued_messages(broker)) == [CLIENT] * MAX_PULLS


def test_many_single_deliveries_are_a_burst_too(broker: redis.Redis) -> None:
    for _ in range(BURST // 100):
        accept_and_enqueue(100)
    assert pulled_clients(queued_messages(broker)) == []
    accept_and_enqueue(1)
    assert pulled_clients(queued_messages(broker)) == [CLIENT]


@pytest.mark.parametrize(
    ("count", "pulls"), [(1, 1), (WAKEUP_SIZE, 1), (WAKEUP_SIZE + 1, 2), (1_000, MAX_PULLS)]
)
def test_burst_gets_as_many_pulls_as_it_needs(broker: redis.Redis, count: int, pulls: int) -> None:
    broker.set(QUEUE.key("count"), BURST, ex=fair_queue.BURST_WINDOW)
    for _ in range(3):
        accept_and_enqueue(count)
    assert pulled_clients(queued_messages(broker)) == [CLIENT] * pulls


@each_case("odd", ["nan", "inf", "-5", "1e300", "9" * 40, "", "many", "1.5", None])
def test_odd_stored_count_loses_no_wakeup(odd: str | None, broker: redis.Redis) -> None:
    if odd is None:
        broker.rpush(QUEUE.key("count"), "1")
    else:
        broker.set(QUEUE.key("count"), odd)
    for _ in range(2):
        accept_and_enqueue(1)
    valkey.run("return 1", keys=[], args=[])  # The scripts before it have run.
    assert [message.task for message in queued_messages(broker)] == [queueing_wakeups.DELIVER] * 2
    assert broker.ttl(QUEUE.key("count")) > 0 or odd == "1.5"
    broker.flushdb()


def test_bursts_are_counted_per_client(broker: redis.Redis) -> None:
    accept_and_enqueue(BURST + 1)
    accept_and_enqueue(1, client_id=ObjectId("d" * 24))
    assert queued_messages(broker)[-1].task == queueing_wakeups.DELIVER


def test_burst_ends_after_its_window(broker: redis.Redis) -> None:
    accept_and_enqueue(BURST + 1)
    assert 0 < broker.ttl(QUEUE.key("count")) <= fair_queue.BURST_WINDOW
    broker.delete(QUEUE.key("count"))
    accept_and_enqueue(1)
    assert queued_messages(broker)[-1].task == queueing_wakeups.DELIVER


def test_future_burst_gets_a_scheduled_pull_without_a_token(broker: redis.Redis) -> None:
    accept_and_enqueue(BURST + 1, at=NOON + 9 * SECOND)
    (message,) = queued_messages(broker)
    assert (message.task, message.args[3]) == (queueing_wakeups.PULL, None)
    assert message.eta is not None
    assert not any(broker.exists(QUEUE.key(slot)) for slot in range(MAX_PULLS + 1))


def tokens(broker: redis.Redis) -> list[PullToken]:
    return [PullToken(*m.args[3]) for m in queued_messages(broker)]


def test_started_pull_frees_its_token(broker: redis.Redis) -> None:
    assert fair_queue.enqueue_pulls(QUEUE, now=NOON)
    first, *_ = tokens(broker)
    fair_queue.release_token(QUEUE, first)
    assert fair_queue.enqueue_pulls(QUEUE, now=NOON)
    assert tokens(broker)[-1].slot == first.slot
    assert len(tokens(broker)) == MAX_PULLS + 1


def test_late_pull_does_not_free_a_replaced_token(broker: redis.Redis) -> None:
    fair_queue.enqueue_pulls(QUEUE, now=NOON)
    late, *_ = tokens(broker)
    broker.delete(QUEUE.key(late.slot))
    fair_queue.enqueue_pulls(QUEUE, now=NOON)
    fair_queue.release_token(QUEUE, late)
    assert broker.get(QUEUE.key(late.slot)) == tokens(broker)[-1].nonce.encode()


def test_pull_continues_in_its_own_slot(broker: redis.Redis) -> None:
    assert fair_queue.continue_pull(QUEUE, PullToken(2, "done"), now=NOON)
    assert [token.slot for token in tokens(broker)] == [2]


def test_pull_is_replaced_by_the_new_owner_of_its_slot(broker: redis.Redis) -> None:
    fair_queue.enqueue_pulls(QUEUE, now=NOON)
    assert fair_queue.continue_pull(QUEUE, PullToken(2, "done"), now=NOON)
    assert len(tokens(broker)) == MAX_PULLS


@pytest.mark.parametrize(("slot", "slots"), [(2, [2, 3]), (3, [3, 0])])
def test_pull_adds_the_next_slot_where_there_is_capacity(
    broker: redis.Redis, slot: int, slots: list[int]
) -> None:
    assert fair_queue.continue_pull(QUEUE, PullToken(slot, "done"), has_capacity=True, now=NOON)
    assert [token.slot for token in tokens(broker)] == slots


def test_pull_continues_without_a_token_while_valkey_is_down(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise valkey.Unavailable

    monkeypatch.setattr(valkey, "connection", fail)
    assert fair_queue.continue_pull(QUEUE, PullToken(2, "done"), now=NOON)
    monkeypatch.undo()
    (message,) = queued_messages(broker)
    assert message.args[3] is None


def test_failed_pull_is_retried_once(broker: redis.Redis) -> None:
    for _ in range(2):
        assert fair_queue.retry_pull(QUEUE, at=NOON + SECOND, now=NOON)
    (token,) = tokens(broker)
    assert token.slot == fair_queue.RETRY_SLOT
    assert token.slot % MAX_PULLS == 0, "the first batch"


def test_retried_pull_does_not_delay_new_deliveries(broker: redis.Redis) -> None:
    fair_queue.retry_pull(QUEUE, at=NOON + SECOND, now=NOON)
    assert fair_queue.enqueue_pulls(QUEUE, count=1, now=NOON)
    assert [m.eta is None for m in queued_messages(broker)] == [False, True]


@pytest.mark.parametrize(
    "token",
    [None, PullToken(fair_queue.slot_at(NOON), "done"), PullToken(fair_queue.RETRY_SLOT, "done")],
)
def test_pull_without_a_slot_fills_all_slots(broker: redis.Redis, token: PullToken | None) -> None:
    assert fair_queue.continue_pull(QUEUE, token, now=NOON)
    assert len(tokens(broker)) == MAX_PULLS


def test_token_outlives_the_wait_of_its_pull(broker: redis.Redis) -> None:
    at = NOON + 40 * SECOND
    fair_queue.schedule_pull(QUEUE, at=at, now=NOON)
    assert 40 < broker.ttl(QUEUE.key(fair_queue.slot_at(at))) <= 40 + fair_queue.TOKEN_LIFETIME


def test_a_second_has_one_scheduled_pull_and_delays_no_earlier_one(broker: redis.Redis) -> None:
    for seconds in (20.0, 10.0, 19.5, 20.0):
        assert fair_queue.schedule_pull(QUEUE, at=NOON + seconds * SECOND, now=NOON)
    assert [m.args[3][0] for m in queued_messages(broker)] == [
        fair_queue.slot_at(NOON + seconds * SECOND) for seconds in (20, 10)
    ]
    assert {token.slot % MAX_PULLS for token in tokens(broker)} == {0}, "the first batch"


def test_unpublished_pull_frees_token(broker: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_client, "publish", lambda *_, **__: False)
    assert not fair_queue.enqueue_pulls(QUEUE, now=NOON)
    monkeypatch.undo()
    assert fair_queue.enqueue_pulls(QUEUE, now=NOON)
    assert len(queued_messages(broker)) == MAX_PULLS


@each_case(
    "ahead, moment",
    [(-5.0, 0.0), (0.0, 0.0), (0.2, 1.0), (1.0, 1.0), (1.001, 2.0), (59.5, 60.0), (60.0, 60.0)],
)
def test_wakeup_time_is_now_or_the_end_of_a_second(ahead: float, moment: float) -> None:
    at = queueing_wakeups.wakeup_time(NOON + timedelta(seconds=ahead), now=NOON)
    assert at == NOON + timedelta(seconds=moment)


def test_later_wakeups_in_the_same_second_are_one(broker: redis.Redis) -> None:
    wakeups = [
        Wakeup(ObjectId(), EMAIL, Priority.NORMAL, NOON + timedelta(milliseconds=n))
        for n in (100, 900, 1001)
    ]
    queueing_wakeups.send_later(wakeups, now=NOON)
    assert [len(m.ids) for m in queued_messages(broker)] == [2, 1]


def test_distant_wakeup_is_left_to_the_sweep(broker: redis.Redis) -> None:
    queueing_wakeups.send_later(
        [Wakeup(ObjectId(), EMAIL, Priority.NORMAL, NOON + 2 * MINUTE)], now=NOON
    )
    assert queued_messages(broker) == []
