"""Removing what an old notification says. That there was one, and what became of it, stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId

from .collections import attempts, notifications
from .documents import Document
from .erasing import TEMPLATE, without_reasons
from .expressions import Expression, Pipeline
from .purging import is_over_since

SHOWN_IN_INBOX = (*TEMPLATE, "subject", "body", "is_masked", "image_url", "deep_link", "payload")
"""What stays of the content while its owner finds it in their inbox."""
ABOUT_NOBODY = ("locale", "timezone")
"""What stays of the recipient, beside the devices: it explains the language and the time."""
SAFE_ANSWER = ("status", "code")
"""What stays of a provider's answer: nothing in it is a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """How much was changed."""

    notifications: int
    attempts: int


def is_content_removed(document: Document) -> bool:
    """Return whether what a stored notification said was removed, as it was old."""
    return document.get("content_removed_at") is not None


def remove_content(*, ids: Sequence[ObjectId], before: datetime, now: datetime) -> Removed:
    """Remove what those of these notifications say that are over since ``before``.

    One that is open, or was re-opened meanwhile, stays as it is. May be repeated: a call that was
    broken off between the two collections is made good by the next. ``updated_at`` stays, so that
    "nothing has happened to it since" goes on to mean that. Raises PyMongoError.
    """
    wanted = {"_id": {"$in": list(ids)}}
    over = {**wanted, **is_over_since(before), "erased_at": None}
    changed = notifications().update_many(over, _pipeline(now), hint="_id_").modified_count
    bare = {**wanted, "content_removed_at": {"$exists": True}}
    gone = [document["_id"] for document in notifications().find(bare, {"_id": 1}, hint="_id_")]
    found = attempts().update_many({"notification_id": {"$in": gone}}, _of_attempts())
    return Removed(notifications=changed, attempts=found.modified_count)


def _pipeline(now: datetime) -> Pipeline:
    in_the_inbox = {"$and": [{"$gt": ["$inbox_at", None]}, "$is_active"]}
    content = {
        "$cond": [
            in_the_inbox,
            _fields("$content", SHOWN_IN_INBOX),
            _fields("$content", TEMPLATE),
        ]
    }
    devices = {"device_ids": {"$ifNull": ["$recipient.device_ids", []]}}
    return [
        {
            "$set": {
                **without_reasons(),
                "content": content,
                "recipient": {"$mergeObjects": [devices, _fields("$recipient", ABOUT_NOBODY)]},
                "data": {"$literal": {}},
                "content_removed_at": {"$ifNull": ["$content_removed_at", now]},
            }
        },
        {"$unset": ["error", "sealed", "sealed_until"]},
    ]


def _of_attempts() -> Pipeline:
    has_answer = {"$eq": [{"$type": "$platform_response"}, "object"]}
    answer = {"$cond": [has_answer, _fields("$platform_response", SAFE_ANSWER), "$$REMOVE"]}
    return [{"$set": {"platform_response": answer}}, {"$unset": "error_message"}]


def _fields(path: str, names: Sequence[str]) -> Expression:
    """Return an object with these fields of another, as far as they are there."""
    fields: dict[str, Any] = {name: {"$ifNull": [f"{path}.{name}", "$$REMOVE"]} for name in names}
    return {"$mergeObjects": [fields]}
