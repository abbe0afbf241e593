"""What apps are still to be told: marked in the write that changed it, so no crash comes between.

Only notifications of apps with a callback have a revision: every write that changes a delivery
counts it up and marks the document, unless nothing of it is worth telling yet. Whoever has told
takes the mark away if the revision is still the one that was told of.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import UpdateOne

from .collections import notifications
from .documents import Document


def pending_callbacks(*, limit: int) -> list[Document]:
    """Return notifications with something their app is still to be told, the oldest first."""
    marked = {"callback_due_at": {"$exists": True}}
    found = notifications().find(marked, _FIELDS).hint("ntf_callback")
    return list(found.sort("callback_due_at", 1).limit(limit))


def clear_marks(documents: Sequence[Document]) -> int:
    """Take the mark from these, as they were read; return how many have not changed since."""
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
    """Mark what an app had accepted, in this time, by a process that did not know its callback.

    Returns how many that were.
    """
    result = notifications().update_many(
        {
            "client_id": client_id,
            "created_at": {"$gte": since, "$lt": until},
            "callback_revision": None,
        },
        {"$set": {"callback_revision": 1, "callback_due_at": now}},
    )
    return result.modified_count


_FIELDS = (
    *("client_id", "external_id", "entity_id", "type", "is_test", "status"),
    *("delivery", "created_at", "updated_at", "callback_revision"),
)
