"""Reads and writes broadcasts, by compare-and-set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pymongo
from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError

from domain.pacing import Pacing
from domain.states import BroadcastStatus, NotificationStatus
from notifications.documents.broadcasts import BROADCASTS, BroadcastDocument
from notifications.documents.notification import NOTIFICATIONS
from notifications.models.broadcasts import AWAITING
from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.leases import Claim, Leases
from notifyproject.db.paging import Cursor, Page

from ..intake.page_result import PageResult
from ..intake.requests import Caller, NotificationRequest
from .audiences import Audience, audience_of
from .requests import request_of

B = BroadcastStatus
ACTIVE = (B.SCHEDULED.value, B.RUNNING.value, B.CANCELLING.value, B.AWAITING_APPROVAL.value)
"""Statuses in which a worker has something to do."""
RUNNING = {"status": B.RUNNING.value}
LEASES = Leases(collection=BROADCASTS, length=timedelta(seconds=60), max_claims=5)
"""A page takes about 1 s. A worker that needs a minute loses the lease. After five leases in a row
without a page, the broadcast fails."""
CLOCK_TOLERANCE = timedelta(seconds=1)
"""Tolerated clock skew, so that a run that arrives slightly early isn't lost."""
RETENTION = timedelta(days=90)  # A broadcast is deleted this long after it ended
MAX_EXAMPLES = 20  # User IDs stored as examples of each reason


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastLease:
    """A worker's lease on a broadcast."""

    id: ObjectId
    claim: Claim[BroadcastDocument]
    status: BroadcastStatus
    caller: Caller
    request: NotificationRequest
    audience: Audience
    cursor: str | None
    expires_at: datetime | None

    @property
    def document(self) -> BroadcastDocument:
        """The broadcast, as it was before the lease."""
        return self.claim.document

    def pacing(self, *, now: datetime) -> Pacing | None:
        """Return how the messages are spread, or None if all are sent at once.

        ``now`` is when it begins, if this is its first lease.
        """
        spread, hour = self.document.get("spread_seconds"), self.document.get("local_hour")
        if spread is None and hour is None:
            return None
        return Pacing(
            begins_at=self.document.get("started_at", now),
            spread=None if spread is None else timedelta(seconds=spread),
            local_hour=hour,
        )


def acquire_lease(broadcast_id: ObjectId, *, worker: str, now: datetime) -> BroadcastLease | None:
    """Lease a broadcast. Return None if it isn't due or is leased. Raises PyMongoError."""
    is_scheduled = {"$eq": ["$status", B.SCHEDULED.value]}
    reads_nothing = {"$in": ["$status", [B.CANCELLING.value, B.AWAITING_APPROVAL.value]]}
    wanted = {
        "_id": broadcast_id,
        "status": {"$in": ACTIVE},
        "due_at": {"$lte": now + CLOCK_TOLERANCE},
    }
    changes = {
        "due_at": "$claim.lease_until",
        "status": {"$cond": [is_scheduled, B.RUNNING.value, "$status"]},
        "started_at": {"$ifNull": ["$started_at", {"$cond": [reads_nothing, "$$REMOVE", now]}]},
        "updated_at": now,
    }
    claim = LEASES.claim_one(wanted, changes=changes, worker=worker, now=now)
    return _lease_from(claim) if claim is not None else None


def _lease_from(claim: Claim[BroadcastDocument]) -> BroadcastLease:
    """Return the lease on a claimed broadcast."""
    document = claim.document
    status = BroadcastStatus(document["status"])
    approval = document.get("approval")
    return BroadcastLease(
        id=claim.id,
        claim=claim,
        # The claim has started a scheduled one.
        status=BroadcastStatus.RUNNING if status is BroadcastStatus.SCHEDULED else status,
        caller=Caller(
            client_id=document["client_id"],
            request_id=document.get("request_id"),
            is_test=document.get("is_test", False),
            template_version=approval["template_version"] if approval is not None else None,
            design=approval["design"] if approval is not None else None,
        ),
        request=request_of(document),
        audience=audience_of(document),
        cursor=document.get("cursor"),
        expires_at=document.get("expires_at"),
    )


def advance(
    lease: BroadcastLease, page: PageResult, *, cursor: str | None, is_last: bool, now: datetime
) -> bool:
    """Record a page up to ``cursor`` and release the lease. Return False if it was lost."""
    # The last page completes the broadcast unless it was paused or cancelled meanwhile.
    change = _page_change(page, cursor, now)
    if is_last and lease.claim.release(_with_end(B.COMPLETED, change, now), where=RUNNING):
        return True
    return lease.claim.release(_with_due(change, at=now))


def defer(lease: BroadcastLease, *, until: datetime, now: datetime) -> bool:
    """Release the lease because of backpressure. Return False if it was lost or isn't running."""
    change = {"$set": {"is_waiting": True, "updated_at": now}}
    return lease.claim.give_back(_with_due(change, at=until), where=RUNNING)


def fail(lease: BroadcastLease, *, code: str, reason: str, now: datetime) -> bool:
    """End a broadcast before its audience is complete. Returns False as :func:`defer` does."""
    failure = {"failure_code": code, "failure_reason": reason, "updated_at": now}
    return lease.claim.release(_with_end(B.FAILED, {"$set": failure}, now), where=RUNNING)


def hold(
    lease: BroadcastLease,
    status: BroadcastStatus,
    *,
    approval: Mapping[str, Any],
    due_at: datetime | None,
    now: datetime,
) -> bool:
    """Stop reading the audience until somebody decides. Returns False as :func:`defer` does."""
    fields: dict[str, Any] = {"status": status.value, "approval": approval, "updated_at": now}
    if due_at is None:
        ended = {"$set": {**fields, "purge_at": now + RETENTION}, "$unset": {"due_at": ""}}
        return lease.claim.release(ended, where=RUNNING)
    return lease.claim.release(_with_due({"$set": fields}, at=due_at), where=RUNNING)


def wait_for_decision(lease: BroadcastLease, *, until: datetime, now: datetime) -> bool:
    """Release the lease of a broadcast whose approvers were told. Return False if it was lost."""
    change = {"$set": {"updated_at": now}}
    return lease.claim.release(_with_due(change, at=until), where=_awaiting(lease.document))


def expire(lease: BroadcastLease, *, now: datetime) -> bool:
    """End a broadcast that nobody decided about. Return False if the lease was lost."""
    fields = {"approval.stopped_at": now, "updated_at": now}
    change = _with_end(B.EXPIRED, {"$set": fields}, now)
    return lease.claim.release(change, where=_awaiting(lease.document))


def _awaiting(document: BroadcastDocument) -> dict[str, Any]:
    revision = document["approval"]["revision"]
    return {"status": B.AWAITING_APPROVAL.value, "approval.revision": revision}


def release_lease(lease: BroadcastLease, *, now: datetime) -> bool:
    """Release the lease without a page, due again at once. Return False if it was lost."""
    return lease.claim.give_back(_with_due({"$set": {"updated_at": now}}, at=now))


def record_cancelled(
    lease: BroadcastLease, count: int, *, at: datetime | None, now: datetime
) -> bool:
    """Add ``count`` cancelled notifications and set the next run, or finish if ``at`` is None."""
    change = {"$inc": {"withdrawn": count}, "$set": {"updated_at": now}}
    ended = _with_end(B.CANCELLED, change, now) if at is None else _with_due(change, at=at)
    return lease.claim.release(ended, where={"status": B.CANCELLING.value})


def restart_cancellation(broadcast_id: ObjectId, *, now: datetime) -> bool:
    """Start the cancellation of a cancelled broadcast's pending notifications again."""
    # A worker that lost its lease may have stored a page after the cancellation finished.
    change = {
        "$set": {"status": B.CANCELLING.value, "due_at": now, "updated_at": now},
        "$unset": {"finished_at": "", "purge_at": ""},
    }
    cancelled = {"_id": broadcast_id, "status": B.CANCELLED.value}
    return BROADCASTS().update_one(cancelled, change).modified_count > 0


def change_status(
    broadcast_id: ObjectId,
    *,
    from_statuses: Sequence[BroadcastStatus],
    stages: Mapping[str, Any],
    unset: Sequence[str] = (),
    now: datetime,
) -> BroadcastDocument | None:
    """Change a broadcast if it is in one of these statuses. Return it, or None if it isn't."""
    pipeline: list[dict[str, Any]] = [{"$set": {**stages, "updated_at": now}}]
    if unset:
        pipeline.append({"$unset": list(unset)})
    return BROADCASTS().find_one_and_update(
        {"_id": broadcast_id, "status": {"$in": [status.value for status in from_statuses]}},
        pipeline,
        return_document=ReturnDocument.AFTER,
    )


def write_approval(
    document: BroadcastDocument,
    status: BroadcastStatus,
    *,
    approval: Mapping[str, Any],
    content: Mapping[str, Any] | None = None,
    removed: Sequence[str] = (),
    due_at: datetime | None = None,
    is_ended: bool = False,
    where: Mapping[str, Any] | None = None,
    session: ClientSession | None = None,
    now: datetime,
) -> BroadcastDocument | None:
    """Write what a person did about an approval. Return the broadcast.

    Returns None unless it still has the status and the revision of ``document``, and matches
    ``where``. All is one write, with which a worker's lease for telling approvers ends, too.
    """
    fields: dict[str, Any] = {
        **(content or {}),
        "status": status.value,
        "approval": approval,
        "claim_count": 0,
        "updated_at": now,
    }
    # What nobody decides about is deleted, like what has ended.
    times: dict[str, datetime | None] = {
        "due_at": due_at,
        "finished_at": now if is_ended else None,
        "purge_at": now + RETENTION if due_at is None else None,
    }
    fields |= {name: value for name, value in times.items() if value is not None}
    gone = [*removed, "claim", *(name for name, value in times.items() if value is None)]
    return BROADCASTS().find_one_and_update(
        {
            "_id": document["_id"],
            "status": document["status"],
            "approval.revision": document["approval"]["revision"],
            **(where or {}),
        },
        {"$set": fields, "$unset": dict.fromkeys(gone, "")},
        return_document=ReturnDocument.AFTER,
        session=session,
    )


def _page_change(page: PageResult, cursor: str | None, now: datetime) -> dict[str, Any]:
    counts = {"accepted": page.accepted}
    examples: dict[str, Any] = {}
    for kind, reasons in (("skipped", page.skipped), ("rejected", page.rejected)):
        for code, user_ids in reasons.items():
            counts[f"{kind}.{code}.count"] = len(user_ids)
            first = {"$each": list(user_ids[:MAX_EXAMPLES]), "$slice": MAX_EXAMPLES}
            examples[f"{kind}.{code}.examples"] = first
    fields: dict[str, Any] = {"is_waiting": False, "updated_at": now}
    if cursor is not None:
        fields["cursor"] = cursor
    return {"$set": fields, "$inc": counts} | ({"$push": examples} if examples else {})


def _with_end(status: BroadcastStatus, change: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    ended = {"status": status.value, "finished_at": now, "purge_at": now + RETENTION}
    return {**change, "$set": {**change["$set"], **ended}, "$unset": {"due_at": ""}}


def _with_due(change: Mapping[str, Any], *, at: datetime) -> dict[str, Any]:
    return {**change, "$set": {**change["$set"], "due_at": at}}


NEWEST_FIRST = (("created_at", -1), ("_id", -1))
COUNT_SECONDS = 2.0  # Time limit for counting a broadcast's notifications: about a million of them
WITHOUT_USER_IDS = {"user_ids": 0}  # Omits up to 10,000 user IDs
UNFINISHED = (
    NotificationStatus.CREATED,
    NotificationStatus.QUEUED,
    NotificationStatus.PROCESSING,
    NotificationStatus.RETRYING,
)


def get(broadcast_id: ObjectId, *, client_id: ObjectId | None = None) -> BroadcastDocument | None:
    """Return a broadcast, with ``client_id`` only if it is that client's. Raises PyMongoError."""
    query: dict[str, Any] = {"_id": broadcast_id}
    if client_id is not None:
        query["client_id"] = client_id
    return BROADCASTS().find_one(query, WITHOUT_USER_IDS)


def read(broadcast_id: ObjectId) -> BroadcastDocument:
    """Return a broadcast with its whole audience. Raises LookupError or PyMongoError."""
    document = BROADCASTS().find_one({"_id": broadcast_id})
    if document is None:
        raise LookupError("no such broadcast")
    return document


def awaiting_page(*, limit: int, cursor: Cursor | None = None) -> Page[BroadcastDocument]:
    """Return up to ``limit`` broadcasts of all clients that await an approval, newest first."""
    return paging.page(
        BROADCASTS,
        AWAITING,
        order=NEWEST_FIRST,
        limit=limit,
        cursor=cursor,
        fields=WITHOUT_USER_IDS,
    )


def page(
    *, client_id: ObjectId, limit: int, cursor: Cursor | None = None
) -> Page[BroadcastDocument]:
    """Return up to ``limit`` of a client's broadcasts, newest first. Raises PyMongoError."""
    return paging.page(
        BROADCASTS,
        {"client_id": client_id},
        order=NEWEST_FIRST,
        limit=limit,
        cursor=cursor,
        fields=WITHOUT_USER_IDS,
    )


def count_by_status(broadcast_id: ObjectId) -> Mapping[NotificationStatus, int] | None:
    """Count a broadcast's notifications by status. None if that takes over COUNT_SECONDS."""
    pipeline: list[Mapping[str, Any]] = [
        {"$match": {"broadcast_id": broadcast_id}},
        {"$group": {"_id": "$status", "count": {"$sum": 1}}},
    ]
    try:
        with pymongo.timeout(COUNT_SECONDS):
            found = list(collection(NOTIFICATIONS.name).aggregate(pipeline, hint="ntf_broadcast"))
    except PyMongoError as error:
        if error.timeout:
            return None
        raise
    counts = {NotificationStatus(row["_id"]): int(row["count"]) for row in found}
    return {status: counts[status] for status in NotificationStatus if status in counts}


def match_open(broadcast_id: ObjectId) -> dict[str, Any]:
    """Return the query for a broadcast's notifications with an open delivery."""
    unfinished = [status.value for status in UNFINISHED]
    return {"broadcast_id": broadcast_id, "status": {"$in": unfinished}}


def has_open(broadcast_id: ObjectId) -> bool:
    """Return whether a broadcast has an open delivery."""
    found = NOTIFICATIONS().find_one(match_open(broadcast_id), {"_id": 1}, hint="ntf_broadcast")
    return found is not None
