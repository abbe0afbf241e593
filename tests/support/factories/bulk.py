"""A selection of failures, bulk operations on it, and a clock that tests put forward."""

from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.states import BulkAction, BulkStage, Channel, DeliveryStatus
from notifications.bulk import decisions, repository, runner, selection
from notifications.bulk import operation as bulk_operation
from notifications.bulk.decisions import StartOptions
from notifications.bulk.operation import Operation
from notifications.resend.actions import Staff
from notifications.resend.risk import RiskKind
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

MARIA = Staff(id=ObjectId("a" * 24), username="maria")
NOW = NOON + timedelta(hours=1)
EMAIL = Channel.EMAIL
S = DeliveryStatus


class Time:
    """A clock that goes a millisecond on at each look, and on where a test wants it to."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def __call__(self) -> datetime:
        """Return the time."""
        self.at += timedelta(milliseconds=1)
        return self.at


def failed(count: int = 1, *, at: datetime = NOON, **fields: Any) -> list[ObjectId]:
    """Store notifications whose email has failed; return their ids, the oldest first."""
    return [
        factories.settled(
            S.FAILED,
            at=at + timedelta(seconds=number),
            created_at=at,
            user_id=None,
            **fields,
        )["_id"]
        for number in range(count)
    ]


def previewed(clock: Time, *, action: BulkAction = BulkAction.RETRY, **fields: Any) -> Operation:
    """Return an operation on all failures of email, with its preview."""
    selected = fields.pop("selected", None) or selection.select_failures(
        channel=EMAIL, code=None, since=None
    )
    asked = decisions.preview(action=action, selection=selected, by=MARIA, now=clock(), **fields)
    assert runner.run(asked.id, clock=clock)
    return stored(asked)


def plan(**fields: Any) -> StartOptions:
    """Return what a person has decided."""
    usual: dict[str, Any] = {
        "included_risks": frozenset({RiskKind.SAFE}),
        "per_second": bulk_operation.MAX_PER_SECOND,
        "reason": "SendGrid is well again",
    }
    return StartOptions(**{**usual, **fields})


def started(clock: Time, operation: Operation | None = None, **fields: Any) -> Operation:
    """Return an operation that was started and that no worker has gone on with."""
    ready = operation or previewed(clock)
    assert ready.stage is BulkStage.READY
    return decisions.start(ready.id, options=plan(**fields), by=MARIA, now=clock())


def finish(clock: Time, operation: Operation) -> Operation:
    """Let workers go on with an operation until there is nothing left to do."""
    for _ in range(100):
        if stored(operation).stage is not BulkStage.RUNNING:
            break
        clock.at += timedelta(seconds=1)
        runner.run(operation.id, clock=clock)
    return stored(operation)


def stored(operation: Operation) -> Operation:
    """Return an operation as it is stored."""
    found = repository.get(operation.id)
    assert found is not None
    return found


def statuses(ids: list[ObjectId]) -> list[str]:
    """Return where the emails of these stand."""
    return [factories.delivery(factories.read(one))["status"] for one in ids]


def rows(operation: Operation) -> dict[ObjectId, dict[str, Any]]:
    """Return what became of each, by notification."""
    found = collection("operation_results").find({"operation_id": operation.id})
    return {row["notification_id"]: row for row in found}
