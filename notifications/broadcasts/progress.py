"""The writer of how far a broadcast has come. Every change is compare-and-set.

A worker reads a page under a lease and moves the cursor only while the lease's token is its own: of
two that are at the same page, one moves it. Both have stored the same notifications.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.states import BroadcastStatus
from notifyproject.db.collections import collection
from notifyproject.db.leases import unclaimed

from .documents import Document, PageRead, Turn, turn_from

B = BroadcastStatus
ACTIVE = (B.SCHEDULED.value, B.RUNNING.value, B.CANCELLING.value)
"""A worker has something to do."""
LEASE = timedelta(seconds=60)
"""A page takes about a second; whoever needs a minute for it is lost, or will find out."""
EARLY = timedelta(seconds=1)
"""Clocks of two machines differ by so much: a message that comes before its time is not lost."""
RETENTION = timedelta(days=90)
"""A broadcast is deleted this long after it has ended."""
EXAMPLES = 20
"""User ids that are told of each reason."""


def take(broadcast_id: ObjectId, *, worker: str, now: datetime) -> Turn | None:
    """Lease a broadcast that is due; None if it is not, or another worker is at it.

    Raises PyMongoError.
    """
    claim = {"token": secrets.token_hex(8), "lease_until": now + LEASE, "worker": worker}
    begins = {"$eq": ["$status", B.SCHEDULED.value]}
    withdraws = {"$eq": ["$status", B.CANCELLING.value]}
    found = collection("broadcasts").find_one_and_update(
        {
            "_id": broadcast_id,
            "status": {"$in": ACTIVE},
            "due_at": {"$lte": now + EARLY},
            **unclaimed(now=now),
        },
        [
            {
                "$set": {
                    "claim": {"$literal": claim},
                    "claim_count": {"$add": ["$claim_count", 1]},
                    "due_at": claim["lease_until"],
                    "status": {"$cond": [begins, B.RUNNING.value, "$status"]},
                    "started_at": {
                        "$cond": [
                            withdraws,
                            {"$ifNull": ["$started_at", "$$REMOVE"]},
                            {"$ifNull": ["$started_at", now]},
                        ]
                    },
                    "updated_at": now,
                }
            }
        ],
        return_document=ReturnDocument.AFTER,
    )
    return turn_from(found) if found is not None else None


def advance(turn: Turn, page: PageRead, *, now: datetime) -> bool:
    """Note a page and end the turn; False if the turn was another's by then, and nothing is noted.

    Behind the last page it is completed, unless it was paused or cancelled meanwhile.
    """
    change = _noted(page, now)
    if page.is_last and _change(
        turn, {"status": B.RUNNING.value}, _ended(B.COMPLETED, change, now)
    ):
        return True
    return _change(turn, {}, _going_on(change, at=now))


def wait(turn: Turn, *, until: datetime, now: datetime) -> bool:
    """End the turn without a page, because too much is to be sent already.

    False if the broadcast was paused or cancelled meanwhile, or the turn was another's by then.
    """
    waits = {"$set": {"is_waiting": True, "updated_at": now}}
    return _change(turn, {"status": B.RUNNING.value}, _going_on(waits, at=until))


def fail(turn: Turn, *, code: str, reason: str, now: datetime) -> bool:
    """End a broadcast before its audience does; False as for :func:`wait`."""
    failure = {"failure_code": code, "failure_reason": reason, "updated_at": now}
    ended = _ended(B.FAILED, {"$set": failure}, now)
    return _change(turn, {"status": B.RUNNING.value}, ended)


def give_back(turn: Turn, *, now: datetime) -> bool:
    """End the turn without a page, for whoever is to go on at once; False if it was another's."""
    return _change(turn, {}, _going_on({"$set": {"updated_at": now}}, at=now))


def note_withdrawn(turn: Turn, count: int, *, at: datetime | None, now: datetime) -> bool:
    """Count what was withdrawn, and go on ``at`` an instant; None: nothing of it is left."""
    change = {"$inc": {"withdrawn": count}, "$set": {"updated_at": now}}
    done = _ended(B.CANCELLED, change, now) if at is None else _going_on(change, at=at)
    return _change(turn, {"status": B.CANCELLING.value}, done)


def withdraw_again(broadcast_id: ObjectId, *, now: datetime) -> bool:
    """Withdraw once more what is pending of a broadcast that is cancelled.

    For a worker that stored a page after its lease: others may have thought that all was done.
    """
    return (
        collection("broadcasts")
        .update_one(
            {"_id": broadcast_id, "status": B.CANCELLED.value},
            {
                "$set": {"status": B.CANCELLING.value, "due_at": now, "updated_at": now},
                "$unset": {"finished_at": "", "purge_at": ""},
            },
        )
        .modified_count
        > 0
    )


def change_status(
    broadcast_id: ObjectId,
    *,
    from_statuses: Sequence[BroadcastStatus],
    stages: Mapping[str, Any],
    unset: Sequence[str] = (),
    now: datetime,
) -> Document | None:
    """Move a broadcast that is in one of these statuses; return it, or None if it is in none."""
    pipeline: list[dict[str, Any]] = [{"$set": {**stages, "updated_at": now}}]
    if unset:
        pipeline.append({"$unset": list(unset)})
    return collection("broadcasts").find_one_and_update(
        {"_id": broadcast_id, "status": {"$in": [one.value for one in from_statuses]}},
        pipeline,
        return_document=ReturnDocument.AFTER,
    )


def _noted(page: PageRead, now: datetime) -> dict[str, Any]:
    """Return the change that counts a page; of each reason the first few user ids are kept."""
    counts = {"accepted": page.accepted}
    examples: dict[str, Any] = {}
    for kind, reasons in (("skipped", page.skipped), ("rejected", page.rejected)):
        for code, user_ids in reasons.items():
            counts[f"{kind}.{code}.count"] = len(user_ids)
            first = {"$each": list(user_ids[:EXAMPLES]), "$slice": EXAMPLES}
            examples[f"{kind}.{code}.examples"] = first
    noted: dict[str, Any] = {"is_waiting": False, "claim_count": 0, "updated_at": now}
    if page.cursor is not None:
        noted["cursor"] = page.cursor
    return {"$set": noted, "$inc": counts} | ({"$push": examples} if examples else {})


def _going_on(change: Mapping[str, Any], *, at: datetime) -> dict[str, Any]:
    more = {"due_at": at, "claim_count": 0}
    return {**change, "$set": {**change["$set"], **more}, "$unset": {"claim": ""}}


def _ended(status: BroadcastStatus, change: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    ended = {"status": status.value, "finished_at": now, "purge_at": now + RETENTION}
    return {
        **change,
        "$set": {**change["$set"], **ended},
        "$unset": {"claim": "", "due_at": ""},
    }


def _change(turn: Turn, wanted: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
    mine = {"_id": turn.id, "claim.token": turn.token, **wanted}
    return collection("broadcasts").update_one(mine, change).matched_count > 0
