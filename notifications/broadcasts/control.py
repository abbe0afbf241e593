"""Pauses, resumes, and cancels broadcasts, and enqueues runs of them."""

from datetime import datetime, timedelta

from bson import ObjectId

from domain import queues
from domain.states import BroadcastStatus
from notifications.documents.broadcasts import BROADCASTS, BroadcastDocument
from notifyproject.db.leases import unclaimed

from ..actions.actions import InvalidStateError
from ..queueing import wakeups
from . import repository
from .repository import ACTIVE

ENQUEUE_HORIZON = timedelta(seconds=wakeups.MAX_DELAY_SECONDS)
MAX_DUE_BROADCASTS = 100
"""Maximum of due broadcasts that one sweep enqueues. More would only wait for each other."""


def enqueue(broadcast_id: ObjectId, *, at: datetime, now: datetime) -> bool:
    """Enqueue a run of a broadcast. Return False if the sweeper must do so later."""
    if at - now > ENQUEUE_HORIZON:
        return False
    return wakeups.publish_broadcast(broadcast_id, at=at if at > now else None, now=now)


def enqueue_due(*, now: datetime) -> int:
    """Enqueue runs of broadcasts due soon. Return how many due ones the broker didn't accept."""
    # This recovers lost messages and expired leases.
    due_broadcasts = find_due(until=now + ENQUEUE_HORIZON, now=now)
    queued = wakeups.depth(queues.BROADCASTS) if due_broadcasts else 0
    if queued is not None and queued >= MAX_DUE_BROADCASTS:
        # The queue already holds a message for each of them.
        return 0
    return sum(
        not enqueue(broadcast_id, at=at, now=now) and at <= now
        for broadcast_id, at in due_broadcasts
    )


def find_due(*, until: datetime, now: datetime) -> list[tuple[ObjectId, datetime]]:
    """Return the broadcasts without a lease that are due by ``until``, oldest first."""
    query = {"status": {"$in": ACTIVE}, "due_at": {"$lte": until}, **unclaimed(now=now)}
    found = BROADCASTS().find(query, {"due_at": 1}).sort("due_at", 1)
    return [
        (document["_id"], document["due_at"])
        for document in found.hint("brc_due").limit(MAX_DUE_BROADCASTS)
    ]


B = BroadcastStatus


def pause(broadcast_id: ObjectId, *, now: datetime) -> BroadcastDocument:
    """Pause a broadcast after the current page. Raises LookupError or InvalidStateError."""
    paused = repository.change_status(
        broadcast_id,
        from_statuses=(B.SCHEDULED, B.RUNNING),
        stages={"status": B.PAUSED.value, "is_waiting": False},
        now=now,
    )
    return paused or _require_status(broadcast_id, (B.PAUSED,), "The broadcast isn't running.")


def resume(broadcast_id: ObjectId, *, now: datetime) -> BroadcastDocument:
    """Resume or reschedule a paused broadcast. Raises LookupError or InvalidStateError."""
    begins_at = {"$ifNull": ["$scheduled_at", now]}
    is_later = {"$gt": [begins_at, now]}
    resumed = repository.change_status(
        broadcast_id,
        from_statuses=(B.PAUSED,),
        stages={
            "status": {"$cond": [is_later, B.SCHEDULED.value, B.RUNNING.value]},
            "due_at": {"$max": [begins_at, now]},
        },
        now=now,
    )
    if resumed is None:
        expected = (B.SCHEDULED, B.RUNNING)
        return _require_status(broadcast_id, expected, "The broadcast isn't paused.")
    enqueue(broadcast_id, at=resumed["due_at"], now=now)
    return resumed


def cancel(broadcast_id: ObjectId, *, now: datetime) -> BroadcastDocument:
    """Cancel a broadcast and its pending notifications. Raises LookupError or InvalidStateError."""
    # Idempotent. An ended broadcast may still have pending notifications.
    ended = (B.COMPLETED, B.FAILED)
    document = repository.get(broadcast_id)
    if document is None:
        raise LookupError("no such broadcast")
    if document["status"] in ended and not repository.has_open(broadcast_id):
        raise InvalidStateError("It has ended, and nothing is pending.")
    cancelled = repository.change_status(
        broadcast_id,
        from_statuses=(
            *(B.DRAFT, B.AWAITING_APPROVAL, B.REJECTED, B.EXPIRED),
            *(B.SCHEDULED, B.RUNNING, B.PAUSED, *ended),
        ),
        stages={"status": B.CANCELLING.value, "due_at": now, "is_waiting": False},
        unset=("finished_at", "purge_at"),
        now=now,
    )
    if cancelled is None:
        expected = (B.CANCELLING, B.CANCELLED)
        return _require_status(broadcast_id, expected, "The broadcast can't be cancelled now.")
    enqueue(broadcast_id, at=now, now=now)
    return cancelled


def _require_status(
    broadcast_id: ObjectId, statuses: tuple[BroadcastStatus, ...], message: str
) -> BroadcastDocument:
    document = repository.get(broadcast_id)
    if document is None:
        raise LookupError("no such broadcast")
    if document["status"] not in statuses:
        raise InvalidStateError(message)
    return document
