"""A bulk operation whose deliveries all fail again stops."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from bson import ObjectId

from domain.errors import FailureCode
from domain.states import BulkAction, BulkOutcome, BulkStage, DeliveryStatus
from notifications.bulk import decisions, runner, trial
from notifications.bulk import operation as bulk_operation
from notifications.bulk.operation import Operation
from notifications.store import leases
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.bulk import MARIA, Time, failed, previewed, started, stored

S = DeliveryStatus
ACTIONS = [BulkAction.RETRY, BulkAction.RESEND]


def run(operation: Operation, clock: Time) -> Operation:
    clock.at += timedelta(seconds=5)
    runner.run(operation.id, clock=clock)
    return stored(operation)


def end(operation: Operation, ids: Sequence[ObjectId], status: S, clock: Time) -> int:
    """End the deliveries that the operation has sent and that wait. Return how many."""
    count = 0
    is_resend = operation.action is BulkAction.RESEND
    for notification_id in ids:
        sent_as = (
            bulk_operation.resend_id(operation, notification_id) if is_resend else notification_id
        )
        document = collection("notifications").find_one({"_id": sent_as})
        if document is None or factories.delivery(document)["status"] != S.PENDING:
            continue
        if factories.delivery(document)["next_attempt_at"] > clock.at:
            continue
        claimed = factories.start(factories.claim(sent_as, at=clock.at), at=clock.at)
        code = None if status is S.SENT else FailureCode.REJECTED
        leases.settle([factories.settlement(claimed, status, at=clock.at, code=code)], now=clock.at)
        count += 1
    return count


@pytest.mark.parametrize(
    ("action", "status"), [(BulkAction.RETRY, S.PENDING), (BulkAction.RESEND, S.FAILED)]
)
def test_operation_stops_after_failures_without_a_success(
    clock: Time, action: BulkAction, status: S
) -> None:
    ids = failed(48)
    operation = run(started(clock, previewed(clock, action=action)), clock)
    assert operation.counts == {BulkOutcome.DONE: trial.TRIAL}
    assert run(operation, clock).counts == {BulkOutcome.DONE: trial.TRIAL}
    assert end(operation, ids, status, clock) == trial.TRIAL
    stopped = run(operation, clock)
    assert stopped.stage is BulkStage.PAUSED
    assert stopped.counts == {BulkOutcome.DONE: trial.TRIAL}
    assert stopped.problem == (
        "20 of the last 20 deliveries failed again and none was sent, 20 of them with "
        "“rejected”. Remove the cause and resume, or cancel."
    )
    # Resumed, it is on trial again.
    decisions.resume(operation.id, by=MARIA, now=clock())
    again = run(operation, clock)
    assert again.counts == {BulkOutcome.DONE: 2 * trial.TRIAL}
    assert end(operation, ids, S.SENT, clock) == trial.TRIAL
    assert run(operation, clock).counts == {BulkOutcome.DONE: 48}


@pytest.mark.parametrize("action", ACTIONS)
def test_one_success_proves_an_operation(clock: Time, action: BulkAction) -> None:
    ids = failed(60)
    operation = run(started(clock, previewed(clock, action=action)), clock)
    end(operation, ids[:1], S.SENT, clock)
    end(operation, ids, S.FAILED, clock)
    assert run(operation, clock).counts == {BulkOutcome.DONE: 60}


def test_operation_goes_on_if_no_worker_answers(clock: Time) -> None:
    failed(30)
    operation = run(started(clock), clock)
    clock.at += trial.PATIENCE
    assert run(operation, clock).counts == {BulkOutcome.DONE: 30}


@pytest.mark.parametrize("count", [1, trial.TRIAL])
def test_small_operation_has_no_trial(clock: Time, count: int) -> None:
    failed(count)
    assert run(started(clock), clock).counts == {BulkOutcome.DONE: count}


def test_cancelling_needs_no_trial(clock: Time) -> None:
    ids = [factories.accepted(user_id=None)["_id"] for _ in range(30)]
    chosen = bulk_operation.Selection(
        match={"_id": {"$in": ids}}, order="created_at", description=("All",)
    )
    cancelled = started(clock, previewed(clock, action=BulkAction.CANCEL, selected=chosen))
    assert run(cancelled, clock).counts == {BulkOutcome.DONE: 30}
