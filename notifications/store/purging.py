"""Deleting what is over and old."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import UpdateMany

from .collections import attempts, notifications
from .documents import Document
from .expressions import MILLISECOND, Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """How much was deleted."""

    notifications: int
    attempts: int


def is_over_since(before: datetime) -> Document:
    """Return what holds for a notification with nothing open that nobody touched since."""
    return {"updated_at": {"$lt": before}, "due_at": None}


def purge(*, ids: Sequence[ObjectId], before: datetime) -> Purged:
    """Delete those of these notifications that are over since ``before``, and their attempts.

    One that is re-opened meanwhile stays, with its attempts. Attempts that a crash leaves behind
    are deleted by MongoDB when their own time comes.
    """
    wanted = {"_id": {"$in": list(ids)}}
    over = {**wanted, **is_over_since(before)}
    # A few by their ids, whatever the index by the time of the last change promises.
    deleted = notifications().delete_many(over, hint="_id_").deleted_count
    left = {document["_id"] for document in notifications().find(wanted, {"_id": 1})}
    gone = [one for one in ids if one not in left]
    found = attempts().delete_many({"notification_id": {"$in": gone}}).deleted_count
    return Purged(notifications=deleted, attempts=found)


def purged_at(metadata: timedelta) -> Expression:
    """Return when a notification is deleted that is kept for so long after its send time."""
    send_at = {"$ifNull": ["$scheduled_at", "$created_at"]}
    return {"$add": [send_at, metadata // MILLISECOND]}


def keep_for(*, ids: Sequence[ObjectId], metadata: timedelta) -> int:
    """Let those of these notifications that are over be deleted so long after their send time.

    And their attempts with them. Returns how many that changed; may be repeated.
    """
    wanted: dict[str, Any] = {"_id": {"$in": list(ids)}, "due_at": None}
    pipeline = [{"$set": {"purge_at": purged_at(metadata)}}]
    changed = notifications().update_many(wanted, pipeline, hint="_id_").modified_count
    times = [
        UpdateMany({"notification_id": one["_id"]}, {"$set": {"purge_at": one["purge_at"]}})
        for one in notifications().find(wanted, {"purge_at": 1}, hint="_id_")
    ]
    if times:
        attempts().bulk_write(times, ordered=False)
    return changed
