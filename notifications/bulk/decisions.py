"""Staff decisions about bulk operations, each recorded in the audit log."""

from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId

from domain.states import BulkAction
from notifyproject.platform import audit

from ..actions.actions import InvalidStateError, Staff
from ..actions.risk import RiskKind
from ..models import BulkOperation
from ..models.bulk import REASON_LENGTH
from ..queueing import wakeups
from . import operation as bulk_operation
from . import repository
from .executor import ASSESSED_ACTIONS
from .operation import Operation, Selection

ALWAYS_SKIPPED = frozenset({RiskKind.SUPPRESSED})  # Suppressed deliveries are never sent


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What staff choose when they start a previewed operation."""

    included_risks: frozenset[RiskKind]  # The resend risks to act on; all others are skipped
    per_second: int
    reason: str
    duplicate_reason: str | None = None


def preview(
    *,
    action: BulkAction,
    selection: Selection,
    send_at: datetime | None = None,
    by: Staff,
    now: datetime,
) -> Operation:
    """Create an operation and enqueue its preview. Raises InvalidStateError for invalid choices."""
    if not selection.channels:
        raise InvalidStateError("Select at least one channel.")
    if action is BulkAction.RESCHEDULE and (send_at is None or send_at <= now):
        raise InvalidStateError("A send time in the future is required.")
    operation = repository.create(
        action=action, selection=selection, send_at=send_at, by=by, now=now
    )
    wakeups.publish_operation(operation.id, at=None, now=now)
    return operation


def start(operation_id: ObjectId, *, options: StartOptions, by: Staff, now: datetime) -> Operation:
    """Start a previewed operation. Raises InvalidStateError if not ready or for invalid options."""
    _check_options(options, repository.get(operation_id))
    fields = {
        "includes": sorted(kind.value for kind in options.included_risks),
        "per_second": options.per_second,
        "reason": options.reason.strip(),
    }
    if RiskKind.MAY_DUPLICATE in options.included_risks and options.duplicate_reason:
        fields["duplicate_reason"] = options.duplicate_reason.strip()
    operation = repository.start(operation_id, fields=fields, by=by, now=now)
    message = f"Started: {operation.reason}"
    if operation.duplicate_reason:
        message += f" Duplicates accepted: {operation.duplicate_reason}"
    _audit(operation, by, message)
    wakeups.publish_operation(operation_id, at=None, now=now)
    return operation


def pause(operation_id: ObjectId, *, by: Staff, now: datetime) -> Operation:
    """Pause a running operation. Raises InvalidStateError."""
    operation = repository.pause(operation_id, now=now)
    _audit(operation, by, "Paused.")
    return operation


def resume(operation_id: ObjectId, *, by: Staff, now: datetime) -> Operation:
    """Resume a paused operation. Raises InvalidStateError."""
    operation = repository.resume(operation_id, now=now)
    _audit(operation, by, "Resumed.")
    wakeups.publish_operation(operation_id, at=None, now=now)
    return operation


def cancel(operation_id: ObjectId, *, by: Staff, now: datetime) -> Operation:
    """Cancel an operation or a preview. Raises InvalidStateError."""
    operation = repository.cancel(operation_id, now=now)
    _audit(operation, by, "Cancelled.")
    return operation


def _check_options(options: StartOptions, operation: Operation | None) -> None:
    if operation is None:
        raise InvalidStateError("Not found.")
    if not options.reason.strip():
        raise InvalidStateError("A reason is required.")
    reasons = (options.reason, options.duplicate_reason or "")
    if any(len(reason) > REASON_LENGTH for reason in reasons):
        raise InvalidStateError(f"A reason has at most {REASON_LENGTH} characters.")
    lowest, highest = bulk_operation.MIN_PER_SECOND, bulk_operation.MAX_PER_SECOND
    if not lowest <= options.per_second <= highest:
        raise InvalidStateError(f"The rate must be {lowest} to {highest} per second.")
    if not options.included_risks:
        raise InvalidStateError("Nothing selected.")
    if options.included_risks & ALWAYS_SKIPPED:
        raise InvalidStateError("Suppressed deliveries are always skipped.")
    is_risky = (
        operation.action in ASSESSED_ACTIONS and RiskKind.MAY_DUPLICATE in options.included_risks
    )
    if is_risky and not (options.duplicate_reason or "").strip():
        raise InvalidStateError("A reason for duplicates is required.")


def _audit(operation: Operation, by: Staff, message: str) -> None:
    audit.record(
        by=by.id,
        model=BulkOperation,
        object_id=str(operation.id),
        name=f"{operation.action} {operation.id}",
        message=message,
    )
