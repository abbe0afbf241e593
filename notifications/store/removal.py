"""Erasure, content removal, and purge."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import UpdateMany

from domain.states import Channel, DeliveryStatus

from .actions import cancelled_changes
from .collections import attempts, notifications, visits
from .documents import Document
from .inbox import Inbox
from .pipelines import MILLISECOND, Expression, Pipeline, update

S = DeliveryStatus
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
ERASURE_REASON = "The person was erased."
TEMPLATE_FIELDS = ("template_id", "template_version")
"""What stays of the content: it is about nobody."""
ERASED_RECIPIENT: dict[str, Any] = {"device_ids": []}
"""What stays of the recipient."""
ERASABLE_FIELDS = ("created_at", "client_id", "recipient.email", "recipient.phone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasable:
    """A notification that is to be erased, and the addresses in it."""

    id: ObjectId
    created_at: datetime
    client_id: ObjectId
    email: str | None = field(default=None, repr=False)
    phone: str | None = field(default=None, repr=False)


def erasable(*, user_id: str, limit: int, after: Erasable | None = None) -> list[Erasable]:
    """Return notifications for a user that are not erased yet, the newest first, behind ``after``.

    Raises PyMongoError.
    """
    wanted: dict[str, Any] = {"user_id": user_id, "erased_at": None}
    if after is not None:
        wanted["created_at"] = {"$lte": after.created_at}
        wanted["$or"] = [
            {"created_at": {"$lt": after.created_at}},
            {"created_at": after.created_at, "_id": {"$lt": after.id}},
        ]
    found = notifications().find(wanted, ERASABLE_FIELDS).sort(NEWEST_FIRST).limit(limit)
    return [_erasable(document) for document in found]


def erasable_at(channel: Channel, address: str, *, limit: int) -> list[Erasable]:
    """Return notifications to an address that name no user. Raises PyMongoError.

    Once they are erased they are at this address no longer.
    """
    path = "recipient.email" if channel is Channel.EMAIL else "recipient.phone"
    found = notifications().find({path: address, "user_id": None}, ERASABLE_FIELDS).limit(limit)
    return [_erasable(document) for document in found]


def erase(erasables: Sequence[Erasable], *, user_id: str, now: datetime) -> int:
    """Erase notifications and what is kept of their attempts; return how many that were.

    What is pending is cancelled in the same write. What a worker is just sending goes; what would
    be tried again after that finds no address. Raises PyMongoError; may be repeated.
    """
    ids = [one.id for one in erasables]
    if not ids:
        return 0
    erased = (
        notifications().update_many({"_id": {"$in": ids}}, _erasure_pipeline(now)).matched_count
    )
    response_fields = {"platform_response": "", "error_message": ""}
    attempts().update_many({"notification_id": {"$in": ids}}, {"$unset": response_fields})
    keys = {Inbox(client_id, user_id).key for client_id in {one.client_id for one in erasables}}
    visits().delete_many({"_id": {"$in": sorted(keys)}})
    return erased


def _erasure_pipeline(now: datetime) -> Pipeline:
    cancelled = update(
        condition={"$eq": ["$$d.status", S.PENDING.value]},
        changes=cancelled_changes(ERASURE_REASON, now=now),
        now=now,
    )
    kept = {name: {"$ifNull": [f"$content.{name}", "$$REMOVE"]} for name in TEMPLATE_FIELDS}
    return [
        *cancelled,
        {
            "$set": {
                **without_reasons(),
                "recipient": {"$literal": ERASED_RECIPIENT},
                "content": {"$mergeObjects": [kept]},
                "data": {"$literal": {}},
                "is_active": False,
                "erased_at": {"$ifNull": ["$erased_at", now]},
            }
        },
        {"$unset": ["error", "sealed", "sealed_until"]},
    ]


def without_reasons() -> dict[str, Expression]:
    """Return deliveries and error history without what providers said: codes and times stay.

    It may quote whom, and what, it was about.
    """
    line = {"timestamp": "$$e.timestamp", "channel": "$$e.channel", "code": "$$e.code", "error": ""}
    history = {"$map": {"input": "$error_history", "as": "e", "in": line}}
    return {
        "delivery": {"$map": {"input": "$delivery", "as": "d", "in": _without_reason()}},
        "error_history": {"$ifNull": [history, []]},
    }


def _without_reason() -> Expression:
    """Return the delivery, of one that a provider may have had a say in without what it said."""
    own_statuses = [S.CANCELLED.value, S.SUPPRESSED.value, S.EXPIRED.value]
    bare = {"$unsetField": {"field": "failure_reason", "input": "$$d"}}
    return {"$cond": [{"$in": ["$$d.status", own_statuses]}, "$$d", bare]}


def _erasable(document: Any) -> Erasable:
    recipient = document.get("recipient") or {}
    return Erasable(
        id=document["_id"],
        created_at=document["created_at"],
        client_id=document["client_id"],
        email=recipient.get("email"),
        phone=recipient.get("phone"),
    )


INBOX_CONTENT_FIELDS = (
    *TEMPLATE_FIELDS,
    "subject",
    "body",
    "is_masked",
    "image_url",
    "deep_link",
    "payload",
)
"""What stays of the content while its owner finds it in their inbox."""
ANONYMOUS_FIELDS = ("locale", "timezone")
"""What stays of the recipient, beside the devices: it explains the language and the time."""
SAFE_RESPONSE_FIELDS = ("status", "code")
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
    over = {**wanted, **match_ended_before(before), "erased_at": None}
    changed = notifications().update_many(over, _removal_pipeline(now), hint="_id_").modified_count
    bare = {**wanted, "content_removed_at": {"$exists": True}}
    gone = [document["_id"] for document in notifications().find(bare, {"_id": 1}, hint="_id_")]
    found = attempts().update_many({"notification_id": {"$in": gone}}, _attempts_removal_pipeline())
    return Removed(notifications=changed, attempts=found.modified_count)


def _removal_pipeline(now: datetime) -> Pipeline:
    is_in_inbox = {"$and": [{"$gt": ["$inbox_at", None]}, "$is_active"]}
    content = {
        "$cond": [
            is_in_inbox,
            _fields("$content", INBOX_CONTENT_FIELDS),
            _fields("$content", TEMPLATE_FIELDS),
        ]
    }
    devices = {"device_ids": {"$ifNull": ["$recipient.device_ids", []]}}
    return [
        {
            "$set": {
                **without_reasons(),
                "content": content,
                "recipient": {"$mergeObjects": [devices, _fields("$recipient", ANONYMOUS_FIELDS)]},
                "data": {"$literal": {}},
                "content_removed_at": {"$ifNull": ["$content_removed_at", now]},
            }
        },
        {"$unset": ["error", "sealed", "sealed_until"]},
    ]


def _attempts_removal_pipeline() -> Pipeline:
    has_answer = {"$eq": [{"$type": "$platform_response"}, "object"]}
    answer = {
        "$cond": [has_answer, _fields("$platform_response", SAFE_RESPONSE_FIELDS), "$$REMOVE"]
    }
    return [{"$set": {"platform_response": answer}}, {"$unset": "error_message"}]


def _fields(path: str, names: Sequence[str]) -> Expression:
    """Return an object with these fields of another, as far as they are there."""
    fields: dict[str, Any] = {name: {"$ifNull": [f"{path}.{name}", "$$REMOVE"]} for name in names}
    return {"$mergeObjects": [fields]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """How much was deleted."""

    notifications: int
    attempts: int


def match_ended_before(before: datetime) -> Document:
    """Return what holds for a notification with nothing open that nobody touched since."""
    return {"updated_at": {"$lt": before}, "due_at": None}


def purge(*, ids: Sequence[ObjectId], before: datetime) -> Purged:
    """Delete those of these notifications that are over since ``before``, and their attempts.

    One that is re-opened meanwhile stays, with its attempts. Attempts that a crash leaves behind
    are deleted by MongoDB when their own time comes.
    """
    wanted = {"_id": {"$in": list(ids)}}
    over = {**wanted, **match_ended_before(before)}
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


def set_purge_dates(*, ids: Sequence[ObjectId], metadata: timedelta) -> int:
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
