"""Failed notifications, bulk operations on them, and a clock."""

from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from domain.states import BulkAction, BulkStage, DeliveryStatus
from notifications.actions.actions import Staff
from notifications.actions.risk import RiskKind
from notifications.bulk import decisions, repository, runner, selection
from notifications.bulk import operation as bulk_operation
from notifications.bulk.decisions import StartOptions
from notifications.bulk.operation import Operation, Selection
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

MARIA = Staff(id=ObjectId("a" * 24), username="maria")
NOW = NOON + timedelta(hours=1)
EMAIL = Channel.EMAIL
S = DeliveryStatus
EVERYTHING = Selection(
    match={"type": "payment_confirmed"}, order="created_at", description=("All",)
)


class Time:
    """A clock that advances a millisecond per reading, and can be set."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def __call__(self) -> datetime:
        self.at += timedelta(milliseconds=1)
        return self.at


def failed(count: int = 1, *, at: datetime = NOON, **fields: Any) -> list[ObjectId]:
    """Store notifications with a failed email. Return their IDs, oldest first."""
    return [
        factories.settled(
            S.FAILED, at=at + timedelta(seconds=number), created_at=at, user_id=None, **fields
        )["_id"]
        for number in range(count)
    ]


def previewed(clock: Time, *, action: BulkAction = BulkAction.RETRY, **fields: Any) -> Operation:
    """Return a previewed operation on all email failures."""
    selected = fields.pop("selected", None) or selection.select_failures(
        channel=EMAIL, code=None, since=None
    )
    operation = decisions.preview(
        action=action, selection=selected, by=MARIA, now=clock(), **fields
    )
    assert runner.run(operation.id, clock=clock)
    return stored(operation)


def plan(**fields: Any) -> StartOptions:
    usual: dict[str, Any] = {
        "included_risks": frozenset({RiskKind.SAFE}),
        "per_second": bulk_operation.MAX_PER_SECOND,
        "reason": "SendGrid is well again",
    }
    return StartOptions(**{**usual, **fields})


def started(clock: Time, operation: Operation | None = None, **fields: Any) -> Operation:
    """Return a started operation that no worker has run."""
    ready = operation or previewed(clock)
    assert ready.stage is BulkStage.READY
    return decisions.start(ready.id, options=plan(**fields), by=MARIA, now=clock())


def finish(clock: Time, operation: Operation) -> Operation:
    for _ in range(100):
        if stored(operation).stage is not BulkStage.RUNNING:
            break
        # Longer than the interval in which a trial is rechecked.
        clock.at += timedelta(seconds=3)
        runner.run(operation.id, clock=clock)
    return stored(operation)


def stored(operation: Operation) -> Operation:
    found = repository.get(operation.id)
    assert found is not None
    return found


def statuses(ids: list[ObjectId]) -> list[str]:
    return [
        factories.delivery(factories.read(notification_id))["status"] for notification_id in ids
    ]


def rows(operation: Operation) -> dict[ObjectId, dict[str, Any]]:
    found = collection("operation_results").find({"operation_id": operation.id})
    return {row["notification_id"]: row for row in found}
