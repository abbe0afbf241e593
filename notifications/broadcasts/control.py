"""Pauses, resumes, and cancels broadcasts, and enqueues their runs."""

from datetime import datetime, timedelta

from bson import ObjectId

from domain import queues
from domain.states import BroadcastStatus
from notifyproject.db.collections import collection
from notifyproject.db.leases import unclaimed

from ..queueing import wakeups
from ..resend.actions import InvalidStateError
from . import repository
from .documents import Document
from .repository import ACTIVE

ENQUEUE_HORIZON = timedelta(seconds=wakeups.MAX_DELAY_SECONDS)
MAX_DUE_BROADCASTS = 100
"""Broadcasts that one sweep calls for. So many at once would wait for each other anyway."""


def enqueue(broadcast_id: ObjectId, *, at: datetime, now: datetime) -> bool:
    """Have a worker go on with a broadcast at an instant; return whether one was told.

    Nobody is told of what lies further ahead than a minute: the sweep is.
    """
    if at - now > ENQUEUE_HORIZON:
        return False
    return wakeups.publish_broadcast(broadcast_id, at=at if at > now else None, now=now)


def enqueue_due(*, now: datetime) -> int:
    """Have workers go on with each broadcast that is or falls due within a minute.

    Those whose message was lost, or whose worker was: their leases have ended. Returns how many
    are due and nobody could be told of.
    """
    due_broadcasts = find_due(until=now + ENQUEUE_HORIZON, now=now)
    queued = wakeups.depth(queues.BROADCASTS) if due_broadcasts else 0
    if queued is not None and queued >= MAX_DUE_BROADCASTS:
        # Repeats by then: a message for each of them is there already.
        return 0
    return sum(not enqueue(one, at=at, now=now) and at <= now for one, at in due_broadcasts)


def find_due(*, until: datetime, now: datetime) -> list[tuple[ObjectId, datetime]]:
    """Return the broadcasts that nobody is at and that are due by then, the oldest first."""
    query = {
        "status": {"$in": ACTIVE},
        "due_at": {"$lte": until},
        **unclaimed(now=now),
    }
    found = collection("broadcasts").find(query, {"due_at": 1}).sort("due_at", 1)
    return [(one["_id"], one["due_at"]) for one in found.hint("brc_due").limit(MAX_DUE_BROADCASTS)]


__all__ = ["InvalidStateError", "cancel", "pause", "resume"]
B = BroadcastStatus


def pause(broadcast_id: ObjectId, *, now: datetime) -> Document:
    """Read no more of an audience until it is resumed; a page that is under way ends.

    Again changes nothing. Raises LookupError if there is none, InvalidStateError once it has ended.
    """
    paused = repository.change_status(
        broadcast_id,
        from_statuses=(B.SCHEDULED, B.RUNNING),
        stages={"status": B.PAUSED.value, "is_waiting": False},
        now=now,
    )
    return paused or _require_status(broadcast_id, (B.PAUSED,), "The broadcast isn't running.")


def resume(broadcast_id: ObjectId, *, now: datetime) -> Document:
    """Read on; one whose time has not come waits for it.

    Again changes nothing. Raises LookupError if there is none, InvalidStateError once it has ended.
    """
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
        return _require_status(
            broadcast_id, (B.SCHEDULED, B.RUNNING), "The broadcast isn't paused."
        )
    enqueue(broadcast_id, at=resumed["due_at"], now=now)
    return resumed


def cancel(broadcast_id: ObjectId, *, now: datetime) -> Document:
    """Tell nobody more, and withdraw what is pending of those who were to be told.

    Also of one that has ended, as long as some of it has not been sent. Again changes nothing.
    Raises LookupError if there is none, InvalidStateError if nothing is left to cancel.
    """
    ended = (B.COMPLETED, B.FAILED)
    document = repository.get(broadcast_id)
    if document is None:
        raise LookupError("no such broadcast")
    if document["status"] in ended and not repository.has_open(broadcast_id):
        raise InvalidStateError("It has ended, and nothing is pending.")
    cancelled = repository.change_status(
        broadcast_id,
        from_statuses=(B.SCHEDULED, B.RUNNING, B.PAUSED, *ended),
        stages={"status": B.CANCELLING.value, "due_at": now, "is_waiting": False},
        unset=("finished_at", "purge_at"),
        now=now,
    )
    if cancelled is None:
        return _require_status(
            broadcast_id, (B.CANCELLING, B.CANCELLED), "The broadcast can't be cancelled now."
        )
    enqueue(broadcast_id, at=now, now=now)
    return cancelled


def _require_status(
    broadcast_id: ObjectId, statuses: tuple[BroadcastStatus, ...], message: str
) -> Document:
    """Return a broadcast that is as it was to be; raises InvalidStateError for any other."""
    document = repository.get(broadcast_id)
    if document is None:
        raise LookupError("no such broadcast")
    if document["status"] not in statuses:
        raise InvalidStateError(message)
    return document
