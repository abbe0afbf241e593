"""The documents of bulk operations: made, started, stopped, and gone on with under a lease.

Every change is compare-and-set on the stage and, for a worker's, on the claim's token: any number
of workers may try, and one that was thought lost writes nothing.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.states import ACTIVE_BULK_STAGES, BULK_TRANSITIONS, BulkAction, BulkOutcome, BulkStage
from notifyproject.db.collections import collection, unclaimed

from ..store import Document
from . import operation as bulk_operation
from .operation import (
    BulkStateError,
    Operation,
    Position,
    Selection,
    Staff,
    dump_filter,
    operation_of,
)

LEASE = timedelta(seconds=60)
MAX_CLAIMS = 3
"""Workers in a row that came no further: something in it stops them."""
PREVIEW_LIFETIME = timedelta(days=1)
"""A preview that is older is made anew: too much may have changed."""
PREVIEW_RETENTION = timedelta(days=30)
RETENTION = timedelta(days=400)
MAX_DUE_OPERATIONS = 100
"""Operations that one sweep tells workers to go on with."""
STUCK_MESSAGE = f"{MAX_CLAIMS} workers took it and came no further: look into their logs."


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationLease:
    """A worker's lease on an operation."""

    operation: Operation
    token: str
    lease_until: datetime
    is_recovered: bool
    """The worker before did not give it back: what it did last may not be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a worker has come to, to be added to what was known."""

    position: Position | None = None
    """The last notification that was looked at; None if none was."""
    preview_counts: Mapping[str, int] | None = None
    found_count: int = 0
    counts: Mapping[BulkOutcome, int] | None = None
    reasons: Mapping[str, int] | None = None


def create(
    *,
    action: BulkAction,
    selection: Selection,
    send_at: datetime | None,
    by: Staff,
    now: datetime,
) -> Operation:
    """Store an operation whose cohort is to be previewed; nothing is done before it is started."""
    document = {
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
    collection("operations").insert_one(document)
    return operation_of(document)


def discard(operation_id: ObjectId) -> None:
    """Forget an operation that was never started, and what its preview has found."""
    unstarted = [BulkStage.PREVIEWING.value, BulkStage.READY.value]
    query = {"_id": operation_id, "stage": {"$in": unstarted}}
    if collection("operations").delete_one(query).deleted_count:
        collection("operation_results").delete_many({"operation_id": operation_id})


def get(operation_id: ObjectId) -> Operation | None:
    """Return an operation; None if there is none."""
    document = collection("operations").find_one({"_id": operation_id})
    return operation_of(document) if document else None


def start(
    operation_id: ObjectId, *, fields: Mapping[str, Any], by: Staff, now: datetime
) -> Operation:
    """Let a previewed operation run; ``plan`` are the fields a person has chosen.

    Raises BulkStateError if it is not ready, or its preview too old.
    """
    found = get(operation_id)
    if (
        found is not None
        and found.stage is BulkStage.READY
        and now - found.frozen_at > PREVIEW_LIFETIME
    ):
        raise BulkStateError("The preview is over a day old: make a new one.")
    started = {"started_by": by.id, "started_by_name": by.username, "started_at": now}
    changes = {**fields, **started, "next_at": now, "purge_at": now + RETENTION}
    return _transition(operation_id, BulkStage.READY, BulkStage.RUNNING, changes, now)


def pause(operation_id: ObjectId, *, now: datetime) -> Operation:
    """Stop a running operation for a while; raises BulkStateError if it is not running.

    A worker that is at it ends with the few notifications that it has in hand.
    """
    return _transition(operation_id, BulkStage.RUNNING, BulkStage.PAUSED, {}, now)


def resume(operation_id: ObjectId, *, now: datetime) -> Operation:
    """Go on with a paused operation; raises BulkStateError if it is not paused."""
    changes = {"next_at": now, "claim_count": 0, "problem": None}
    resumed = _transition(operation_id, BulkStage.PAUSED, BulkStage.RUNNING, changes, now)
    # Nobody waits for the lease of a worker that lost it by the pause.
    collection("operations").update_one(
        {"_id": operation_id, "claim.lease_until": {"$gt": now}},
        {"$set": {"claim.lease_until": now}},
    )
    return resumed


def cancel(operation_id: ObjectId, *, now: datetime) -> Operation:
    """Stop an operation for good; raises BulkStateError if it has ended."""
    found = get(operation_id)
    if found is None or BulkStage.CANCELLED not in BULK_TRANSITIONS[found.stage]:
        raise BulkStateError("It has ended already.")
    return _transition(operation_id, found.stage, BulkStage.CANCELLED, {"finished_at": now}, now)


def claim(operation_id: ObjectId, *, worker: str, now: datetime) -> OperationLease | None:
    """Take an operation that is to be gone on with; None if it is not, or another worker has it.

    One that three workers in a row have taken and come no further with is stopped instead.
    """
    token = secrets.token_hex(16)
    claim_fields = {"token": token, "lease_until": now + LEASE, "worker": worker}
    before = collection("operations").find_one_and_update(
        {
            "_id": operation_id,
            "stage": {"$in": [stage.value for stage in ACTIVE_BULK_STAGES]},
            "next_at": {"$lte": now},
            **unclaimed(now=now),
        },
        {"$set": {"claim": claim_fields, "updated_at": now}, "$inc": {"claim_count": 1}},
    )
    if before is None:
        return None
    lease = OperationLease(
        operation=operation_of(before),
        token=token,
        lease_until=now + LEASE,
        is_recovered=before.get("claim") is not None,
    )
    if before["claim_count"] >= MAX_CLAIMS:
        is_running = lease.operation.stage is BulkStage.RUNNING
        finish(
            lease,
            BulkStage.PAUSED if is_running else BulkStage.CANCELLED,
            now=now,
            problem=STUCK_MESSAGE,
        )
        return None
    return lease


def save_progress(
    lease: OperationLease, progress: Progress, *, now: datetime
) -> OperationLease | None:
    """Note how far a worker has come and renew its lease; None if it has lost the operation."""
    changes: dict[str, Any] = {
        "claim.lease_until": now + LEASE,
        "claim_count": 0,
        "updated_at": now,
    }
    if progress.position is not None:
        changes |= {"after_at": progress.position.at, "after_id": progress.position.id}
    increments = {f"found.{kind}": count for kind, count in (progress.preview_counts or {}).items()}
    increments |= {f"counts.{outcome}": count for outcome, count in (progress.counts or {}).items()}
    increments |= {f"reasons.{reason}": count for reason, count in (progress.reasons or {}).items()}
    increments["found_count"] = progress.found_count
    document = _update_leased(lease, {"$set": changes, "$inc": increments})
    if document is None:
        return None
    return OperationLease(
        operation=operation_of(document),
        token=lease.token,
        lease_until=now + LEASE,
        is_recovered=False,
    )


def release(lease: OperationLease, *, at: datetime, now: datetime) -> bool:
    """Give an operation back, to be gone on with from ``at`` on; False if it was lost."""
    changes = {"next_at": at, "updated_at": now, "claim_count": 0}
    return _update_leased(lease, {"$set": changes, "$unset": {"claim": ""}}) is not None


def finish(
    lease: OperationLease,
    stage: BulkStage,
    *,
    now: datetime,
    problem: str | None = None,
    **changes: Any,
) -> bool:
    """Let an operation come to a stage in which no worker has anything to do."""
    changes |= {"stage": stage.value, "updated_at": now, "claim_count": 0}
    if problem is not None:
        changes["problem"] = problem
    if not BULK_TRANSITIONS[stage]:
        changes["finished_at"] = now
    unset = {"claim": "", "next_at": "", "after_at": "", "after_id": ""}
    if stage is BulkStage.PAUSED:
        unset = {"claim": "", "next_at": ""}
    return _update_leased(lease, {"$set": changes, "$unset": unset}) is not None


def recount(
    operation_id: ObjectId, *, counts: Mapping[BulkOutcome, int], reasons: Mapping[str, int]
) -> None:
    """Replace what was counted on the way by what the results say."""
    collection("operations").update_one(
        {"_id": operation_id},
        {"$set": {"counts": {o.value: n for o, n in counts.items()}, "reasons": dict(reasons)}},
    )


def due_operations(*, now: datetime) -> list[ObjectId]:
    """Return operations that are to be gone on with and that no worker has, the first due first."""
    found = collection("operations").find(
        {
            "next_at": {"$lte": now},
            **unclaimed(now=now),
        },
        {"_id": 1},
    )
    due = found.sort("next_at", 1).hint("opn_next").limit(MAX_DUE_OPERATIONS)
    return [document["_id"] for document in due]


def _update_leased(lease: OperationLease, update: Mapping[str, Any]) -> Document | None:
    """Change an operation that this worker holds; None if it does not any more."""
    return collection("operations").find_one_and_update(
        {
            "_id": lease.operation.id,
            "claim.token": lease.token,
            "stage": lease.operation.stage.value,
        },
        update,
        return_document=ReturnDocument.AFTER,
    )


def _transition(
    operation_id: ObjectId,
    before: BulkStage,
    after: BulkStage,
    changes: Mapping[str, Any],
    now: datetime,
) -> Operation:
    """Take an operation from one stage to another; raises BulkStateError if it is not in the first."""
    update: dict[str, Any] = {"$set": {**changes, "stage": after.value, "updated_at": now}}
    if after not in ACTIVE_BULK_STAGES:
        update["$unset"] = {"next_at": ""}
    document = collection("operations").find_one_and_update(
        {"_id": operation_id, "stage": before.value},
        update,
        return_document=ReturnDocument.AFTER,
    )
    if document is None:
        raise BulkStateError(f"It is not {before.value}: somebody else was faster.")
    return operation_of(document)
