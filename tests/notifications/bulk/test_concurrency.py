"""Whoever is lost, late, or there twice: each delivery is acted on once and counted once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Barrier

import pytest
from bson import ObjectId

from domain.states import BulkAction, BulkOutcome, BulkStage, DeliveryStatus
from notifications import store
from notifications.bulk import decisions, executor, repository, results, runner, selection
from notifications.bulk.operation import Operation
from notifications.bulk.repository import LEASE
from notifications.resend import actions
from notifications.resend.actions import InvalidStateError
from notifications.resend.risk import ResendRisk, RiskKind
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.bulk import (
    EMAIL,
    MARIA,
    Time,
    failed,
    finish,
    previewed,
    rows,
    started,
    statuses,
    stored,
)

SAFE = ResendRisk(kind=RiskKind.SAFE, reason="Nothing was sent.")


class Lost(BaseException):
    """The worker's process is gone."""


class Acting(Time):
    """A clock by which something happens when a worker looks at it for the how manieth time."""

    def __init__(self, time: Time, *, at_look: int, happens: Callable[[], object]) -> None:
        super().__init__(time.at)
        self.left, self.happens = at_look, happens

    def __call__(self) -> datetime:
        """Return the time, after what happens then."""
        self.left -= 1
        if self.left == 0:
            self.happens()
        return super().__call__()


def dies() -> None:
    """Be gone."""
    raise Lost


def opened(ids: list[ObjectId]) -> list[int]:
    """Return how often each was opened again: by its audit."""
    log = collection("django_admin_log")
    return [log.count_documents({"object_id": str(one)}) for one in ids]


def work_with(operation: Operation, clock: Time) -> None:
    """Go on with an operation until the worker is done, or lost."""
    with suppress(Lost):
        runner.run(operation.id, clock=clock)


def test_many_workers_at_once_act_on_each_once(clock: Time) -> None:
    ids = failed(40)
    operation = started(clock)
    barrier = Barrier(8)

    def worker(_: int) -> bool:
        barrier.wait()
        return runner.run(operation.id, clock=Time(clock.at))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(worker, range(8))) == 1
    assert opened(ids) == [1] * 40
    clock.at += timedelta(seconds=2)
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 40}


@pytest.mark.parametrize("action", [BulkAction.RETRY, BulkAction.RESEND])
def test_four_workers_with_the_same_in_hand_do_it_once(clock: Time, action: BulkAction) -> None:
    ids = failed(10)
    operation = started(clock, previewed(clock, action=action))
    places = selection.next_page(operation)
    barrier = Barrier(4)

    def worker(_: int) -> None:
        barrier.wait()
        executor.execute(operation, places, clock=Time(clock.at), until=clock.at + LEASE)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(worker, range(4)))
    assert {row["outcome"] for row in rows(operation).values()} == {"done"}
    if action is BulkAction.RETRY:
        assert opened(ids) == [1] * 10
    else:
        made = list(collection("notifications").find({"resent_from": {"$in": ids}}))
        assert len(made) == 10
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 10}


def test_a_second_worker_beside_one_that_was_thought_lost_acts_on_nothing_twice(
    clock: Time,
) -> None:
    ids = failed(10)
    operation = started(clock)
    other = Time(clock.at + LEASE + timedelta(seconds=1))

    def another_takes_over() -> None:
        runner.run(operation.id, clock=other)

    slow = Acting(clock, at_look=6, happens=another_takes_over)
    runner.run(operation.id, clock=slow)
    clock.at = other.at
    done = finish(clock, operation)
    assert (done.stage, done.counts) == (BulkStage.COMPLETED, {BulkOutcome.DONE: 10})
    assert {row["outcome"] for row in rows(done).values()} == {"done"}
    assert statuses(ids) == ["pending"] * 10
    deliveries = [factories.delivery(factories.read(one)) for one in ids]
    assert {d["max_attempts"] for d in deliveries} == {1 + 4}


@pytest.mark.parametrize("action", [BulkAction.RETRY, BulkAction.RESEND])
@pytest.mark.parametrize("at_look", range(1, 14))
def test_a_worker_that_is_lost_anywhere_is_replaced(
    clock: Time, action: BulkAction, at_look: int
) -> None:
    ids = failed(3)
    operation = started(clock, previewed(clock, action=action))
    work_with(operation, Acting(clock, at_look=at_look, happens=dies))
    clock.at += LEASE + timedelta(seconds=1)
    done = finish(clock, operation)
    assert (done.stage, done.counts) == (BulkStage.COMPLETED, {BulkOutcome.DONE: 3})
    if action is BulkAction.RESEND:
        resends = list(collection("notifications").find({"resent_from": {"$in": ids}}))
        assert len(resends) == 3
    else:
        assert statuses(ids) == ["pending"] * 3


@pytest.mark.parametrize("action", [BulkAction.RETRY, BulkAction.RESEND])
def test_lost_between_acting_and_saying_so(clock: Time, action: BulkAction) -> None:
    (one,) = failed()
    operation = started(clock, previewed(clock, action=action))
    which = results.DeliveryKey(one, EMAIL)
    results.begin(operation.id, {which: SAFE}, now=clock())
    executor._execute_one(operation, one, [EMAIL], now=clock())
    done = finish(clock, operation)
    assert done.counts == {BulkOutcome.DONE: 1}
    made = collection("notifications").count_documents({"resent_from": one})
    assert made == (1 if action is BulkAction.RESEND else 0)


def test_what_was_begun_with_and_failed_again_is_not_opened_twice(clock: Time) -> None:
    (one,) = failed()
    operation = started(clock)
    results.begin(operation.id, {results.DeliveryKey(one, EMAIL): SAFE}, now=clock())
    executor._execute_one(operation, one, [EMAIL], now=clock())
    again = factories.start(factories.claim(one, at=clock.at), at=clock.at)
    settlement = factories.settlement(again, DeliveryStatus.FAILED, at=clock())
    store.settle([settlement], now=clock.at)
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 1}
    assert statuses([one]) == ["failed"]


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker look after every two whether it is to go on."""
    monkeypatch.setattr(runner, "SLICE_SIZE", 2)


def held_up(clock: Time, step: Callable[..., object]) -> tuple[list[ObjectId], Operation]:
    """Let somebody take a step in the middle of a page; return its nine, and the operation then."""
    ids = failed(9)
    operation = started(clock)

    def take_it() -> None:
        step(operation.id, by=MARIA, now=clock.at)

    runner.run(operation.id, clock=Acting(clock, at_look=9, happens=take_it))
    return ids, stored(operation)


@pytest.mark.usefixtures("small_slices")
def test_paused_in_the_middle_of_a_page_it_stops_and_goes_on_later(clock: Time) -> None:
    ids, paused = held_up(clock, decisions.pause)
    done = statuses(ids).count("pending")
    assert paused.stage is BulkStage.PAUSED
    assert 0 < done < 9
    assert paused.counts == {BulkOutcome.DONE: done}
    assert not runner.run(paused.id, clock=clock)
    assert runner.enqueue_due(now=clock() + timedelta(hours=1)) == 0

    decisions.resume(paused.id, by=MARIA, now=clock())
    assert finish(clock, paused).counts == {BulkOutcome.DONE: 9}
    assert opened(ids) == [1] * 9


@pytest.mark.usefixtures("small_slices")
def test_cancelled_in_the_middle_of_a_page_the_rest_stays_as_it_is(clock: Time) -> None:
    ids, cancelled = held_up(clock, decisions.cancel)
    done = statuses(ids).count("pending")
    assert (cancelled.stage, cancelled.counts) == (BulkStage.CANCELLED, {BulkOutcome.DONE: done})
    assert 0 < done < 9
    for step in (decisions.cancel, decisions.resume, decisions.pause):
        with pytest.raises(InvalidStateError):
            step(cancelled.id, by=MARIA, now=clock())


def test_somebody_else_retries_one_while_its_turn_comes(clock: Time) -> None:
    first, second = failed(2)
    operation = started(clock)

    def retry() -> None:
        actions.retry(notification_id=second, channels=None, now=clock.at)

    # The first is acted on after the third look, the second after the fourth.
    runner.run(operation.id, clock=Acting(clock, at_look=6, happens=retry))
    done = finish(clock, operation)
    found = rows(done)
    assert found[first]["outcome"] == "done"
    assert found[second]["outcome"] == "failed"
    assert found[second]["detail"] == "No failed channel to retry."


def test_one_that_stops_every_worker_is_stopped_itself(clock: Time) -> None:
    failed()
    operation = started(clock)
    for _ in range(repository.MAX_CLAIMS):
        work_with(operation, Acting(clock, at_look=4, happens=dies))
        clock.at += LEASE + timedelta(seconds=1)
    assert not runner.run(operation.id, clock=clock)
    stopped = stored(operation)
    assert (stopped.stage, stopped.problem) == (BulkStage.PAUSED, repository.STUCK_MESSAGE)
    decisions.resume(operation.id, by=MARIA, now=clock())
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 1}


def test_a_worker_whose_lease_is_over_does_nothing_more(clock: Time) -> None:
    ids = failed(3)
    operation = started(clock)
    hold = repository.claim(operation.id, worker="w", now=clock())
    assert hold is not None
    places = selection.next_page(operation)
    with pytest.raises(executor.LeaseExpiredError):
        executor.execute(hold.operation, places, clock=clock, until=clock.at)
    assert statuses(ids) == ["failed"] * 3
