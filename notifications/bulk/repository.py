"""Stores bulk operations by compare-and-set on the stage and, for a worker, on its lease token."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.states import ACTIVE_BULK_STAGES, BULK_TRANSITIONS, BulkAction, BulkStage
from notifications.documents.bulk import OPERATION_RESULTS, OPERATIONS, BulkOperationDocument
from notifyproject.db.leases import Claim, Leases, unclaimed

from ..actions.actions import InvalidStateError, Staff
from . import operation as bulk_operation
from . import results
from .operation import ActedOn, Operation, Position, Selection, dump_filter, operation_of
from .results import DeliveryOutcome

LEASES = Leases(collection=OPERATIONS, length=timedelta(seconds=60), max_claims=3)
PREVIEW_LIFETIME = timedelta(days=1)
"""An older preview can't be started, since too much may have changed."""
PREVIEW_RETENTION = timedelta(days=30)
RETENTION = timedelta(days=400)
MAX_DUE_OPERATIONS = 100
MAX_RECENT = 50  # Deliveries that an operation last changed, of which it knows
STUCK_MESSAGE = f"{LEASES.max_claims} consecutive workers made no progress. See their logs."


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationLease:
    """A worker's lease on an operation."""

    operation: Operation
    claim: Claim[BulkOperationDocument]

    @property
    def same_stage(self) -> dict[str, str]:
        """The condition of its writes: staff haven't paused or cancelled it."""
        return {"stage": self.operation.stage.value}


def create(
    *, action: BulkAction, selection: Selection, send_at: datetime | None, by: Staff, now: datetime
) -> Operation:
    """Store a new operation, to be previewed. The action starts only when staff start it."""
    document: BulkOperationDocument = {
        "_id": ObjectId(),
        "action": action.value,
        "stage": BulkStage.PREVIEWING.value,
        "match": dump_filter(selection.match),
        "order": selection.order,
        "described": list(selection.description),
        "channels": [channel.value for channel in selection.channels],
        "only": dict(selection.delivery_filter),
        "frozen_at": now,
        "next_at": now,
        "claim_count": 0,
        "found": {},
        "found_count": 0,
        "is_capped": False,
        "includes": [],
        "per_second": bulk_operation.DEFAULT_PER_SECOND,
        "counts": {},
        "reasons": {},
        "created_by": by.id,
        "created_by_name": by.username,
        "created_at": now,
        "updated_at": now,
        "purge_at": now + PREVIEW_RETENTION,
    }
    if send_at is not None:
        document["send_at"] = send_at
    OPERATIONS().insert_one(document)
    return operation_of(document)


def discard(operation_id: ObjectId) -> None:
    """Delete an operation that was never started, with its preview."""
    unstarted = [BulkStage.PREVIEWING.value, BulkStage.READY.value]
    query = {"_id": operation_id, "stage": {"$in": unstarted}}
    if OPERATIONS().delete_one(query).deleted_count:
        OPERATION_RESULTS().delete_many({"operation_id": operation_id})


def get(operation_id: ObjectId) -> Operation | None:
    """Return an operation, or None if it doesn't exist."""
    document = OPERATIONS().find_one({"_id": operation_id})
    return operation_of(document) if document else None


def start(
    operation_id: ObjectId, *, fields: Mapping[str, Any], by: Staff, now: datetime
) -> Operation:
    """Start a previewed operation. Raises InvalidStateError if it isn't ready or is too old."""
    found = get(operation_id)
    frozen_at = found.frozen_at if found and found.stage is BulkStage.READY else now
    if now - frozen_at > PREVIEW_LIFETIME:
        raise InvalidStateError("The preview expired. Create a new one.")
    started = {"started_by": by.id, "started_by_name": by.username, "started_at": now}
    changes = {**fields, **started, "next_at": now, "purge_at": now + RETENTION}
    return _transition(operation_id, BulkStage.READY, BulkStage.RUNNING, changes, now)


def pause(operation_id: ObjectId, *, now: datetime) -> Operation:
    """Pause a running operation after the current notifications. Raises InvalidStateError."""
    return _transition(operation_id, BulkStage.RUNNING, BulkStage.PAUSED, {}, now)


def resume(operation_id: ObjectId, *, now: datetime) -> Operation:
    """Resume a paused operation. Raises InvalidStateError if it isn't paused."""
    changes = {"next_at": now, "claim_count": 0, "problem": None}
    # The cause of its failures may be gone: it is on trial again.
    changes |= {"recent": [], "is_proven": False}
    resumed = _transition(operation_id, BulkStage.PAUSED, BulkStage.RUNNING, changes, now)
    # End the lease of a worker that was paused, so that the next one needn't wait for it.
    OPERATIONS().update_one(
        {"_id": operation_id, "claim.lease_until": {"$gt": now}},
        {"$set": {"claim.lease_until": now}},
    )
    return resumed


def cancel(operation_id: ObjectId, *, now: datetime) -> Operation:
    """Cancel an operation. Raises InvalidStateError if it has ended."""
    found = get(operation_id)
    if found is None or BulkStage.CANCELLED not in BULK_TRANSITIONS[found.stage]:
        raise InvalidStateError("The operation has ended.")
    return _transition(operation_id, found.stage, BulkStage.CANCELLED, {"finished_at": now}, now)


def claim(operation_id: ObjectId, *, worker: str, now: datetime) -> OperationLease | None:
    """Lease an operation. Return None if it isn't due, is leased, or is stopped here."""
    # After three consecutive workers without progress, the operation is stopped.
    active = [stage.value for stage in ACTIVE_BULK_STAGES]
    wanted = {"_id": operation_id, "stage": {"$in": active}, "next_at": {"$lte": now}}
    claimed = LEASES.claim_one(wanted, changes={"updated_at": now}, worker=worker, now=now)
    if claimed is None:
        return None
    lease = OperationLease(operation=operation_of(claimed.document), claim=claimed)
    if claimed.is_exhausted:
        stop(lease, problem=STUCK_MESSAGE, now=now)
        return None
    return lease


def save_progress(
    lease: OperationLease,
    *,
    position: Position | None = None,
    preview_counts: Mapping[str, int] = MappingProxyType({}),
    found_count: int = 0,
    outcomes: Collection[DeliveryOutcome] = (),
    acted_on: Sequence[ActedOn] = (),
    now: datetime,
) -> OperationLease | None:
    """Add a worker's progress and renew its lease. Return None if the lease was lost."""
    changes: dict[str, Any] = {"updated_at": now}
    if position is not None:
        changes |= {"after_at": position.at, "after_id": position.id}
    increments = Counter({f"found.{kind}": count for kind, count in preview_counts.items()})
    increments.update(f"counts.{outcome.outcome}" for outcome in outcomes)
    increments.update(
        f"reasons.{outcome.reason}" for outcome in outcomes if outcome.reason is not None
    )
    increments["found_count"] = found_count
    update: dict[str, Any] = {"$set": changes, "$inc": increments}
    if acted_on:
        changes["acted_at"] = now
        latest = [str(notification_id) for notification_id in acted_on][-MAX_RECENT:]
        update["$push"] = {"recent": {"$each": latest, "$slice": -MAX_RECENT}}
    renewed = lease.claim.renew(update, where=lease.same_stage, now=now)
    if renewed is None:
        return None
    claimed, document = renewed
    return OperationLease(operation=operation_of(document), claim=claimed)


def prove(lease: OperationLease) -> OperationLease | None:
    """Record that its trial is over. Return None if the lease was lost."""
    document = lease.claim.write({"$set": {"is_proven": True}}, where=lease.same_stage)
    return replace(lease, operation=operation_of(document)) if document else None


def release(lease: OperationLease, *, at: datetime, now: datetime) -> bool:
    """Release an operation, due again at ``at``. Return False if the lease was lost."""
    # Progress is what save_progress stored. A run that waited, or was shut down, made none.
    changes = {"next_at": at, "updated_at": now}
    return lease.claim.give_back({"$set": changes}, where=lease.same_stage)


def stop(lease: OperationLease, *, problem: str, now: datetime) -> None:
    """Pause a running operation, or cancel a preview, and store the problem."""
    is_running = lease.operation.stage is BulkStage.RUNNING
    stage = BulkStage.PAUSED if is_running else BulkStage.CANCELLED
    finish(lease, stage, now=now, problem=problem)


def finish(lease: OperationLease, stage: BulkStage, *, now: datetime, **changes: Any) -> bool:
    """Release an operation into a stage without work for workers. Return False without lease."""
    changes |= {"stage": stage.value, "updated_at": now}
    if not BULK_TRANSITIONS[stage]:
        changes["finished_at"] = now
    unset = {"next_at": "", "after_at": "", "after_id": ""}
    if stage is BulkStage.PAUSED:
        unset = {"next_at": ""}
    return lease.claim.release({"$set": changes, "$unset": unset}, where=lease.same_stage)


def recount(operation_id: ObjectId) -> None:
    """Set an operation's counts from its result rows, since a lost worker may not have counted."""
    counts, reasons = results.counts(operation_id)
    changes = {"counts": {o.value: n for o, n in counts.items()}, "reasons": dict(reasons)}
    OPERATIONS().update_one({"_id": operation_id}, {"$set": changes})


def due_operations(*, now: datetime) -> list[ObjectId]:
    """Return the operations that are due and not leased, oldest first."""
    found = OPERATIONS().find({"next_at": {"$lte": now}, **unclaimed(now=now)}, {"_id": 1})
    due = found.sort("next_at", 1).hint("opn_next").limit(MAX_DUE_OPERATIONS)
    return [document["_id"] for document in due]


def _transition(
    operation_id: ObjectId,
    before: BulkStage,
    after: BulkStage,
    changes: Mapping[str, Any],
    now: datetime,
) -> Operation:
    update: dict[str, Any] = {"$set": {**changes, "stage": after.value, "updated_at": now}}
    if after not in ACTIVE_BULK_STAGES:
        update["$unset"] = {"next_at": ""}
    document = OPERATIONS().find_one_and_update(
        {"_id": operation_id, "stage": before.value}, update, return_document=ReturnDocument.AFTER
    )
    if document is None:
        raise InvalidStateError(f"The operation isn't {before.value}: it was changed meanwhile.")
    return operation_of(document)
