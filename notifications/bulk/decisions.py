"""What a person decides about an operation, each decision on record with who took it and why."""

from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId

from domain.states import BulkAction
from notifyproject.platform import audit

from ..models import BulkOperation
from ..models.bulk import REASON_LENGTH
from ..queueing import wakeups
from ..resend.risk import RiskKind
from . import operation as bulk_operation
from . import repository
from .executor import JUDGED
from .operation import BulkStateError, Operation, Selection, Staff

ALWAYS_LEFT_OUT = frozenset({RiskKind.SUPPRESSED})
"""Nothing is sent to somebody who does not want it, whoever asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What a person has decided about a previewed operation."""

    includes: frozenset[RiskKind]
    """The verdicts to act on; all others are left out."""
    per_second: int
    reason: str
    duplicate_reason: str | None = None
    """Why a second copy is taken into account, if it is."""


def preview(
    *,
    action: BulkAction,
    cohort: Selection,
    send_at: datetime | None = None,
    by: Staff,
    now: datetime,
) -> Operation:
    """Have a cohort counted and judged in the background; nothing is done to it.

    Raises NotPossible if no channel is chosen, or the time to send at is missing or past.
    """
    if not cohort.channels:
        raise BulkStateError("Choose at least one channel.")
    if action is BulkAction.RESCHEDULE and (send_at is None or send_at <= now):
        raise BulkStateError("Give a time in the future to send them at.")
    operation = repository.create(action=action, cohort=cohort, send_at=send_at, by=by, now=now)
    wakeups.publish_operation(operation.id, at=None, now=now)
    return operation


def discard(operation_id: ObjectId) -> None:
    """Forget an operation that was never started."""
    repository.discard(operation_id)


def start(operation_id: ObjectId, *, plan: StartOptions, by: Staff, now: datetime) -> Operation:
    """Let a previewed operation run.

    Raises NotPossible if a decision is missing, or it is not ready to run.
    """
    found = repository.one(operation_id)
    _check(plan, found)
    chosen = {
        "includes": sorted(kind.value for kind in plan.includes),
        "per_second": plan.per_second,
        "reason": plan.reason.strip(),
    }
    if RiskKind.MAY_DUPLICATE in plan.includes and plan.duplicate_reason:
        chosen["duplicate_reason"] = plan.duplicate_reason.strip()
    operation = repository.start(operation_id, plan=chosen, by=by, now=now)
    also = f" A second copy is accepted: {operation.duplicate_reason}"
    _record(
        operation,
        by,
        f"Started: {operation.reason}{also if operation.duplicate_reason else ''}",
    )
    wakeups.publish_operation(operation_id, at=None, now=now)
    return operation


def pause(operation_id: ObjectId, *, by: Staff, now: datetime) -> Operation:
    """Stop a running operation for a while; raises NotPossible."""
    operation = repository.pause(operation_id, now=now)
    _record(operation, by, "Paused.")
    return operation


def resume(operation_id: ObjectId, *, by: Staff, now: datetime) -> Operation:
    """Go on with a paused operation; raises NotPossible."""
    operation = repository.resume(operation_id, now=now)
    _record(operation, by, "Resumed.")
    wakeups.publish_operation(operation_id, at=None, now=now)
    return operation


def cancel(operation_id: ObjectId, *, by: Staff, now: datetime) -> Operation:
    """Stop an operation for good, or throw a preview away; raises NotPossible."""
    operation = repository.cancel(operation_id, now=now)
    _record(operation, by, "Cancelled.")
    return operation


def _check(plan: StartOptions, operation: Operation | None) -> None:
    """Raise NotPossible if a decision is missing or cannot be."""
    if operation is None:
        raise BulkStateError("It is not there any more.")
    if not plan.reason.strip():
        raise BulkStateError("Say why: a reason is kept with it.")
    reasons = (plan.reason, plan.duplicate_reason or "")
    if any(len(reason) > REASON_LENGTH for reason in reasons):
        raise BulkStateError(f"A reason has at most {REASON_LENGTH} characters.")
    if not bulk_operation.SLOWEST <= plan.per_second <= bulk_operation.FASTEST:
        raise BulkStateError(
            f"Choose a pace from {bulk_operation.SLOWEST} to {bulk_operation.FASTEST} a second."
        )
    if not plan.includes:
        raise BulkStateError("Everything is left out: there is nothing to do.")
    if plan.includes & ALWAYS_LEFT_OUT:
        raise BulkStateError("What is suppressed is always left out.")
    is_risky = operation.action in JUDGED and RiskKind.MAY_DUPLICATE in plan.includes
    if is_risky and not (plan.duplicate_reason or "").strip():
        raise BulkStateError("Say why a second copy is acceptable.")


def _record(operation: Operation, by: Staff, message: str) -> None:
    audit.record(
        by=by.id,
        model=BulkOperation,
        object_id=str(operation.id),
        name=f"{operation.action} {operation.id}",
        message=message,
    )
