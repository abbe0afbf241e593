"""Concurrent and lost workers: each delivery is executed and counted once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Barrier

import pytest
from bson import ObjectId

from domain.states import BulkAction, BulkOutcome, BulkStage, DeliveryStatus
from notifications.actions import actions
from notifications.actions.actions import InvalidStateError
from notifications.actions.risk import ResendRisk, RiskKind
from notifications.bulk import decisions, executor, repository, results, runner, selection, trial
from notifications.bulk.operation import Operation
from notifications.bulk.repository import LEASES
from notifications.store import leases
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
from tests.support.samples import sampled

SAFE = ResendRisk(kind=RiskKind.SAFE, reason="Nothing was sent.")


class Lost(BaseException):
    """Stands for the end of the process."""


class TriggerClock(Time):
    """A clock that runs an action when the clock is read for the nth time."""

    def __init__(self, time: Time, *, at_look: int, action_: Callable[[], object]) -> None:
        super().__init__(time.at)
        self.left, self.happens = at_look, action_

    def __call__(self) -> datetime:
        self.left -= 1
        if self.left == 0:
            self.happens()
        return super().__call__()


def die() -> None:
    raise Lost


def retry_counts(ids: list[ObjectId]) -> list[int]:
    """Return the number of retries of each notification, from the audit log."""
    log = collection("django_admin_log")
    return [log.count_documents({"object_id": str(notification_id)}) for notification_id in ids]


def work_with(operation: Operation, clock: Time) -> None:
    """Run an operation until the worker has finished or is lost."""
    with suppress(Lost):
        runner.run(operation.id, clock=clock)


def test_concurrent_workers_execute_each_delivery_once(clock: Time) -> None:
    ids = failed(trial.TRIAL)
    operation = started(clock)
    barrier = Barrier(8)

    def worker(_: int) -> bool:
        barrier.wait()
        return runner.run(operation.id, clock=Time(clock.at))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(worker, range(8))) == 1
    assert retry_counts(ids) == [1] * trial.TRIAL
    clock.at += timedelta(seconds=2)
    assert finish(clock, operation).counts == {BulkOutcome.DONE: trial.TRIAL}


@pytest.mark.parametrize("action", [BulkAction.RETRY, BulkAction.RESEND])
def test_four_workers_on_one_page_execute_it_once(clock: Time, action: BulkAction) -> None:
    ids = failed(10)
    operation = started(clock, previewed(clock, action=action))
    places = selection.next_page(operation)
    barrier = Barrier(4)

    def worker(_: int) -> None:
        barrier.wait()
        executor.execute(operation, places, clock=Time(clock.at), until=clock.at + LEASES.length)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(worker, range(4)))
    assert {row["outcome"] for row in rows(operation).values()} == {"done"}
    if action is BulkAction.RETRY:
        assert retry_counts(ids) == [1] * 10
    else:
        assert len(list(collection("notifications").find({"resent_from": {"$in": ids}}))) == 10
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 10}


def test_second_worker_after_a_slow_one_repeats_nothing(clock: Time) -> None:
    ids = failed(10)
    operation = started(clock)
    other = Time(clock.at + LEASES.length + timedelta(seconds=1))

    def another_takes_over() -> None:
        runner.run(operation.id, clock=other)

    runner.run(operation.id, clock=TriggerClock(clock, at_look=6, action_=another_takes_over))
    clock.at = other.at
    done = finish(clock, operation)
    assert (done.stage, done.counts) == (BulkStage.COMPLETED, {BulkOutcome.DONE: 10})
    assert {row["outcome"] for row in rows(done).values()} == {"done"}
    assert statuses(ids) == ["pending"] * 10
    deliveries = [factories.delivery(factories.read(notification_id)) for notification_id in ids]
    assert {d["max_attempts"] for d in deliveries} == {1 + 4}


STEPS = [
    (action, look) for action in (BulkAction.RETRY, BulkAction.RESEND) for look in range(1, 14)
]


@pytest.mark.parametrize(("action", "at_look"), sampled(STEPS, each=4))
def test_worker_lost_at_any_step_is_replaced(clock: Time, action: BulkAction, at_look: int) -> None:
    ids = failed(3)
    operation = started(clock, previewed(clock, action=action))
    work_with(operation, TriggerClock(clock, at_look=at_look, action_=die))
    clock.at += LEASES.length + timedelta(seconds=1)
    done = finish(clock, operation)
    assert (done.stage, done.counts) == (BulkStage.COMPLETED, {BulkOutcome.DONE: 3})
    if action is BulkAction.RESEND:
        assert len(list(collection("notifications").find({"resent_from": {"$in": ids}}))) == 3
    else:
        assert statuses(ids) == ["pending"] * 3


@pytest.mark.parametrize("action", [BulkAction.RETRY, BulkAction.RESEND])
def test_worker_lost_before_its_result_repeats_nothing(clock: Time, action: BulkAction) -> None:
    (notification_id,) = failed()
    operation = started(clock, previewed(clock, action=action))
    results.begin(operation.id, {results.DeliveryKey(notification_id, EMAIL): SAFE}, now=clock())
    executor._execute_one(operation, notification_id, [EMAIL], now=clock())
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 1}
    made = collection("notifications").count_documents({"resent_from": notification_id})
    assert made == (1 if action is BulkAction.RESEND else 0)


def test_delivery_that_failed_again_is_not_reopened_twice(clock: Time) -> None:
    (notification_id,) = failed()
    operation = started(clock)
    results.begin(operation.id, {results.DeliveryKey(notification_id, EMAIL): SAFE}, now=clock())
    executor._execute_one(operation, notification_id, [EMAIL], now=clock())
    again = factories.start(factories.claim(notification_id, at=clock.at), at=clock.at)
    leases.settle([factories.settlement(again, DeliveryStatus.FAILED, at=clock())], now=clock.at)
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 1}
    assert statuses([notification_id]) == ["failed"]


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a worker check the stage after every two deliveries."""
    monkeypatch.setattr(runner, "SLICE_SIZE", 2)


def interrupted(clock: Time, step: Callable[..., object]) -> tuple[list[ObjectId], Operation]:
    """Run an operation on nine deliveries, and take a step (such as pause) in the middle."""
    ids = failed(9)
    operation = started(clock)

    def take_step() -> None:
        step(operation.id, by=MARIA, now=clock.at)

    runner.run(operation.id, clock=TriggerClock(clock, at_look=9, action_=take_step))
    return ids, stored(operation)


@pytest.mark.usefixtures("small_slices")
def test_pause_within_a_page_stops_and_resumes(clock: Time) -> None:
    ids, paused = interrupted(clock, decisions.pause)
    done = statuses(ids).count("pending")
    assert paused.stage is BulkStage.PAUSED
    assert 0 < done < 9
    assert paused.counts == {BulkOutcome.DONE: done}
    assert not runner.run(paused.id, clock=clock)
    assert runner.enqueue_due(now=clock() + timedelta(hours=1)) == 0
    decisions.resume(paused.id, by=MARIA, now=clock())
    assert finish(clock, paused).counts == {BulkOutcome.DONE: 9}
    assert retry_counts(ids) == [1] * 9


@pytest.mark.usefixtures("small_slices")
def test_cancel_within_a_page_leaves_the_rest_unchanged(clock: Time) -> None:
    ids, cancelled = interrupted(clock, decisions.cancel)
    done = statuses(ids).count("pending")
    assert (cancelled.stage, cancelled.counts) == (BulkStage.CANCELLED, {BulkOutcome.DONE: done})
    assert 0 < done < 9
    for step in (decisions.cancel, decisions.resume, decisions.pause):
        with pytest.raises(InvalidStateError):
            step(cancelled.id, by=MARIA, now=clock())


def test_retry_by_staff_during_the_run_is_recorded_as_failed(clock: Time) -> None:
    first, second = failed(2)
    operation = started(clock)

    def retry() -> None:
        actions.retry(notification_id=second, channels=None, now=clock.at)

    # The clock is read three times before the first delivery and four before the second.
    runner.run(operation.id, clock=TriggerClock(clock, at_look=6, action_=retry))
    found = rows(finish(clock, operation))
    assert found[first]["outcome"] == "done"
    assert found[second]["outcome"] == "failed"
    assert found[second]["detail"] == "No failed channel to retry."


def test_worker_with_an_expired_lease_does_nothing(clock: Time) -> None:
    ids = failed(3)
    operation = started(clock)
    hold = repository.claim(operation.id, worker="w", now=clock())
    assert hold is not None
    places = selection.next_page(operation)
    with pytest.raises(executor.LeaseExpiredError):
        executor.execute(hold.operation, places, clock=clock, until=clock.at)
    assert statuses(ids) == ["failed"] * 3
