"""Pausing, resuming and cancelling a broadcast.

A pause holds back new notifications and nothing else: those that are accepted go on. A cancellation
holds back both, as far as nothing has left.
"""

from datetime import datetime

from bson import ObjectId

from domain.states import BroadcastStatus

from ..redrive import NotPossible
from . import progress, reading, waking
from .documents import Document

__all__ = ["NotPossible", "cancel", "pause", "resume"]

B = BroadcastStatus


def pause(broadcast_id: ObjectId, *, now: datetime) -> Document:
    """Read no more of an audience until it is resumed; a page that is under way ends.

    Again changes nothing. Raises LookupError if there is none, NotPossible once it has ended.
    """
    paused = progress.change_status(
        broadcast_id,
        from_statuses=(B.SCHEDULED, B.RUNNING),
        stages={"status": B.PAUSED.value, "is_waiting": False},
        now=now,
    )
    return paused or _unless(broadcast_id, (B.PAUSED,), "It is not running any more.")


def resume(broadcast_id: ObjectId, *, now: datetime) -> Document:
    """Read on; one whose time has not come waits for it.

    Again changes nothing. Raises LookupError if there is none, NotPossible once it has ended.
    """
    begins_at = {"$ifNull": ["$scheduled_at", now]}
    is_later = {"$gt": [begins_at, now]}
    resumed = progress.change_status(
        broadcast_id,
        from_statuses=(B.PAUSED,),
        stages={
            "status": {"$cond": [is_later, B.SCHEDULED.value, B.RUNNING.value]},
            "due_at": {"$max": [begins_at, now]},
        },
        now=now,
    )
    if resumed is None:
        return _unless(broadcast_id, (B.SCHEDULED, B.RUNNING), "It is not paused.")
    waking.call(broadcast_id, at=resumed["due_at"], now=now)
    return resumed


def cancel(broadcast_id: ObjectId, *, now: datetime) -> Document:
    """Tell nobody more, and withdraw what is pending of those who were to be told.

    Also of one that has ended, as long as some of it has not been sent. Again changes nothing.
    Raises LookupError if there is none, NotPossible if nothing is left to cancel.
    """
    over = (B.COMPLETED, B.FAILED)
    document = reading.one(broadcast_id)
    if document is None:
        raise LookupError("no such broadcast")
    if document["status"] in over and not reading.has_open(broadcast_id):
        raise NotPossible("It has ended, and nothing of it is waiting to be sent.")
    cancelled = progress.change_status(
        broadcast_id,
        from_statuses=(B.SCHEDULED, B.RUNNING, B.PAUSED, *over),
        stages={"status": B.CANCELLING.value, "due_at": now, "is_waiting": False},
        unset=("finished_at", "purge_at"),
        now=now,
    )
    if cancelled is None:
        return _unless(broadcast_id, (B.CANCELLING, B.CANCELLED), "It cannot be cancelled now.")
    waking.call(broadcast_id, at=now, now=now)
    return cancelled


def _unless(broadcast_id: ObjectId, done: tuple[BroadcastStatus, ...], why_not: str) -> Document:
    """Return a broadcast that is as it was to be; raises NotPossible for any other."""
    document = reading.one(broadcast_id)
    if document is None:
        raise LookupError("no such broadcast")
    if document["status"] not in done:
        raise NotPossible(why_not)
    return document
