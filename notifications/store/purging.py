"""Deleting what is over and old."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId

from .collections import attempts, notifications
from .documents import Document


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
