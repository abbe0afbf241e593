"""Marks notifications with unpublished callback events, in the write that causes the events.

Only notifications of clients with a callback have a revision. Every write that changes a delivery
increments the revision, and sets the mark if there is something to report. The publisher clears the
mark unless the revision has changed since it read the notification.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import UpdateOne

from notifications.documents.notification import NotificationDocument

from .collections import notifications

_FIELDS = (
    "client_id",
    "external_id",
    "entity_id",
    "type",
    "is_test",
    "status",
    "delivery",
    "created_at",
    "updated_at",
    "callback_revision",
    "action",
    "acted_at",
    "replaced",
)


def pending_callbacks(*, limit: int) -> list[NotificationDocument]:
    """Return up to ``limit`` marked notifications, the oldest mark first."""
    marked = {"callback_due_at": {"$exists": True}}
    found = notifications().find(marked, _FIELDS).hint("ntf_callback")
    return list(found.sort("callback_due_at", 1).limit(limit))


def clear_marks(documents: Sequence[NotificationDocument]) -> int:
    """Clear the marks of those of these documents that have not changed. Return how many."""
    if not documents:
        return 0
    operations = [
        UpdateOne(
            {"_id": document["_id"], "callback_revision": document["callback_revision"]},
            {"$unset": {"callback_due_at": ""}},
        )
        for document in documents
    ]
    return notifications().bulk_write(operations, ordered=False).modified_count


def backfill_marks(*, client_id: ObjectId, since: datetime, until: datetime, now: datetime) -> int:
    """Mark notifications stored without knowledge of a client's new endpoint. Return how many."""
    created = {"$gte": since, "$lt": until}
    missed = {"client_id": client_id, "created_at": created, "callback_revision": None}
    marks = {"callback_revision": 1, "callback_due_at": now}
    return notifications().update_many(missed, {"$set": marks}).modified_count
