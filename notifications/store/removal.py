"""Deletion by clients, erasure of a recipient's data, and retention.

A deletion only marks a notification, and can be undone. Retention removes the content of old
notifications, and later purges their documents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument, UpdateMany

from domain.channels import Channel, addresses_in
from domain.states import Category, DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.store.search_keys import address_search_key

from . import sent_tests
from .collections import attempts, events, notifications, visits
from .digests import erase_digests
from .inbox import Inbox
from .pipelines import (
    MILLISECOND,
    Expression,
    Pipeline,
    cancelled_changes,
    is_cancellable,
    update,
)
from .search_keys import SEARCH_INDEX, search_keys

S = DeliveryStatus
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
ERASURE_REASON = "Recipient erased."
DELETION_REASON = "Deleted by the client."
TEMPLATE_FIELDS = ("template_id", "template_version", "look")
"""Content fields that an erasure keeps, since they contain no personal data."""
ERASED_RECIPIENT: dict[str, Any] = {"device_ids": []}
ERASABLE_FIELDS = ("created_at", "client_id", "recipient.email", "recipient.phone")
INBOX_CONTENT_FIELDS = (
    *TEMPLATE_FIELDS,
    "subject",
    "body",
    "is_masked",
    "image_url",
    "deep_link",
    "payload",
)
"""Content fields that stay while the inbox still shows the notification."""
ANONYMOUS_FIELDS = ("locale", "timezone", "given")
"""Recipient fields that content removal keeps, since they explain the language and the time."""
SAFE_RESPONSE_FIELDS = ("status", "code")
"""Fields of a provider response that content removal keeps, since they contain no text."""


def delete(
    *, notification_id: ObjectId, client_id: ObjectId, now: datetime
) -> NotificationDocument | None:
    """Mark a client's notification as deleted and cancel its pending deliveries, in one write.

    Return the notification, or None if the client has no such one. The console still shows it, and
    :func:`restore` undoes the deletion. A send in progress completes but isn't retried.
    """
    pipeline = update(
        condition=is_cancellable(),
        changes=cancelled_changes(DELETION_REASON, now=now),
        now=now,
        extra_fields={"is_active": False, "deleted_at": now},
    )
    return notifications().find_one_and_update(
        {"_id": notification_id, "client_id": client_id, "is_active": True},
        pipeline,
        return_document=ReturnDocument.AFTER,
    )


def restore(*, notification_id: ObjectId, now: datetime) -> NotificationDocument | None:
    """Undo a deletion. Return the notification, or None if it isn't deleted or was erased.

    Deliveries that the deletion cancelled stay cancelled.
    """
    deleted = {"_id": notification_id, "deleted_at": {"$exists": True}, "erased_at": None}
    undo: Pipeline = [
        {"$set": {"is_active": True, "deleted_at": "$$REMOVE", "updated_at": now}},
        {"$set": {"search_keys": search_keys()}},
    ]
    return notifications().find_one_and_update(deleted, undo, return_document=ReturnDocument.AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasable:
    """A notification to erase, and the addresses in it."""

    id: ObjectId
    created_at: datetime
    client_id: ObjectId
    addresses: tuple[tuple[Channel, str], ...] = field(default=(), repr=False)
    """Each with a channel that sends to it."""


def erasable(*, user_id: str, limit: int, after: Erasable | None = None) -> list[Erasable]:
    """Return the next notifications of a user to erase, newest first, after ``after``."""
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
    """Return notifications to an address, without a user ID, to erase. Raises PyMongoError."""
    wanted = {"search_keys": address_search_key(channel.address_kind, address), "user_id": None}
    found = notifications().find(wanted, ERASABLE_FIELDS, hint=SEARCH_INDEX).limit(limit)
    return [_erasable(document) for document in found]


def erase(erasables: Sequence[Erasable], *, user_id: str, now: datetime) -> int:
    """Erase the content of notifications and of their attempts. Return how many. Idempotent."""
    ids = [erasable.id for erasable in erasables]
    if not ids:
        return 0
    erase_digests(user_id=user_id, ids=_digests_of(ids), now=now)
    count = erase_content(ids, now=now)
    keys = {
        Inbox(client_id, user_id).key
        for client_id in {erasable.client_id for erasable in erasables}
    }
    visits().delete_many({"_id": {"$in": sorted(keys)}})
    return count


def erase_content(ids: Sequence[ObjectId], *, now: datetime) -> int:
    """Erase notifications and what providers said of them. Return how many. Idempotent."""
    # The same write cancels pending deliveries. A send in progress completes, but a retry finds no
    # address.
    erased = notifications().update_many({"_id": {"$in": list(ids)}}, _erasure_pipeline(now))
    response_fields = {"platform_response": "", "error_message": ""}
    attempts().update_many({"notification_id": {"$in": list(ids)}}, {"$unset": response_fields})
    _remove_receipt_reasons(ids)
    sent_tests.remove(ids)
    return erased.matched_count


def _digests_of(ids: Sequence[ObjectId]) -> list[ObjectId]:
    wanted = {"_id": {"$in": list(ids)}, "delivery.digest_id": {"$exists": True}}
    found = notifications().find(wanted, {"delivery.digest_id": 1}, hint="_id_")
    deliveries = [delivery for document in found for delivery in document["delivery"]]
    return list({id_ for delivery in deliveries if (id_ := delivery.get("digest_id")) is not None})


def _remove_receipt_reasons(ids: Sequence[ObjectId]) -> None:
    events().update_many({"notification_id": {"$in": list(ids)}}, {"$unset": {"reason": ""}})


def _erasure_pipeline(now: datetime) -> Pipeline:
    erased = {
        "recipient": {"$literal": ERASED_RECIPIENT},
        "content": _fields("$content", TEMPLATE_FIELDS),
        "is_active": False,
        "erased_at": {"$ifNull": ["$erased_at", now]},
    }
    return [
        *update(
            condition=is_cancellable(),
            changes=cancelled_changes(ERASURE_REASON, now=now),
            now=now,
        ),
        *_without_content(erased),
    ]


def _without_content(fields: Mapping[str, Expression]) -> Pipeline:
    own = {**_without_reasons(), "data": {"$literal": {}}, **fields}
    return [
        {"$set": own},
        {"$unset": ["error", "encrypted_content", "encrypted_until"]},
        {"$set": {"search_keys": search_keys()}},
    ]


def _without_reasons() -> dict[str, Expression]:
    """Return deliveries and errors without provider messages, which may contain personal data."""
    line = {"timestamp": "$$e.timestamp", "channel": "$$e.channel", "code": "$$e.code", "error": ""}
    history = {"$map": {"input": "$error_history", "as": "e", "in": line}}
    # The reasons of these statuses are the service's own.
    own_statuses = [S.CANCELLED.value, S.SUPPRESSED.value, S.EXPIRED.value]
    bare = {"$unsetField": {"field": "failure_reason", "input": "$$d"}}
    delivery = {"$cond": [{"$in": ["$$d.status", own_statuses]}, "$$d", bare]}
    return {
        "delivery": {"$map": {"input": "$delivery", "as": "d", "in": delivery}},
        "error_history": {"$ifNull": [history, []]},
    }


def _erasable(document: Any) -> Erasable:
    return Erasable(
        id=document["_id"],
        created_at=document["created_at"],
        client_id=document["client_id"],
        addresses=tuple(addresses_in(document.get("recipient") or {})),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Number of notifications and attempts that were purged or whose content was removed."""

    notifications: int
    attempts: int


def is_content_removed(document: NotificationDocument) -> bool:
    """Return whether retention has removed the content of a stored notification."""
    return document.get("content_removed_at") is not None


def remove_content(*, ids: Sequence[ObjectId], before: datetime, now: datetime) -> Removed:
    """Remove the content of those notifications that ended before ``before``. Idempotent."""
    # Open and reopened notifications stay unchanged. The next call completes one that was
    # interrupted between the collections. ``updated_at`` stays the time of the last state change.
    wanted = {"_id": {"$in": list(ids)}}
    over = {**wanted, **match_ended_before(before), "erased_at": None}
    changed = notifications().update_many(over, _removal_pipeline(now), hint="_id_").modified_count
    bare = {**wanted, "content_removed_at": {"$exists": True}}
    gone = [document["_id"] for document in notifications().find(bare, {"_id": 1}, hint="_id_")]
    has_answer = {"$eq": [{"$type": "$platform_response"}, "object"]}
    safe = _fields("$platform_response", SAFE_RESPONSE_FIELDS)
    answer = {"$cond": [has_answer, safe, "$$REMOVE"]}
    found = attempts().update_many(
        {"notification_id": {"$in": gone}},
        [{"$set": {"platform_response": answer}}, {"$unset": "error_message"}],
    )
    _remove_receipt_reasons(gone)
    sent_tests.remove(gone)
    return Removed(notifications=changed, attempts=found.modified_count)


def _removal_pipeline(now: datetime) -> Pipeline:
    has_place = {"$or": [{"$gt": ["$inbox_at", None]}, {"$gt": ["$snoozed_until", None]}]}
    is_in_inbox = {"$and": [has_place, "$is_active"]}
    content = {
        "$cond": [
            is_in_inbox,
            _fields("$content", INBOX_CONTENT_FIELDS),
            _fields("$content", TEMPLATE_FIELDS),
        ]
    }
    devices = {"device_ids": {"$ifNull": ["$recipient.device_ids", []]}}
    removed = {
        "content": content,
        "recipient": {"$mergeObjects": [devices, _fields("$recipient", ANONYMOUS_FIELDS)]},
        "content_removed_at": {"$ifNull": ["$content_removed_at", now]},
    }
    return _without_content(removed)


def _fields(path: str, names: Sequence[str]) -> Expression:
    return {
        "$mergeObjects": [{name: {"$ifNull": [f"{path}.{name}", "$$REMOVE"]} for name in names}]
    }


def match_ended_before(before: datetime) -> dict[str, Any]:
    """Return a query for notifications without open deliveries, unchanged since ``before``."""
    return {"updated_at": {"$lt": before}, "due_at": None}


def purge(*, ids: Sequence[ObjectId], before: datetime) -> Removed:
    """Delete those notifications that ended before ``before``, with their attempts."""
    # A notification that is reopened meanwhile stays, with its attempts. Attempts that a crash
    # leaves behind are deleted by MongoDB at their own purge date.
    wanted = {"_id": {"$in": list(ids)}}
    over = {**wanted, **match_ended_before(before)}
    # The hint prevents MongoDB from choosing the index on ``updated_at``.
    deleted = notifications().delete_many(over, hint="_id_").deleted_count
    gone = list(ids)
    if deleted < len(ids):
        left = {document["_id"] for document in notifications().find(wanted, {"_id": 1})}
        gone = [notification_id for notification_id in ids if notification_id not in left]
    found = attempts().delete_many({"notification_id": {"$in": gone}}).deleted_count
    _remove_receipt_reasons(gone)
    sent_tests.remove(gone)
    return Removed(notifications=deleted, attempts=found)


def purged_at(metadata: Mapping[Category, timedelta]) -> Expression:
    """Return an expression for the purge date: the send time plus its category's retention."""
    send_at = {"$ifNull": ["$scheduled_at", "$created_at"]}
    lengths = [
        {"case": {"$eq": ["$category", category.value]}, "then": length // MILLISECOND}
        for category, length in metadata.items()
    ]
    return {"$add": [send_at, {"$switch": {"branches": lengths}}]}


def set_purge_dates(*, ids: Sequence[ObjectId], metadata: Mapping[Category, timedelta]) -> int:
    """Set the purge dates of ended notifications and their attempts, by each category's retention.

    Return how many changed.
    """
    wanted: dict[str, Any] = {"_id": {"$in": list(ids)}, "due_at": None}
    pipeline = [{"$set": {"purge_at": purged_at(metadata)}}]
    changed = notifications().update_many(wanted, pipeline, hint="_id_").modified_count
    times = [
        UpdateMany(
            {"notification_id": document["_id"]}, {"$set": {"purge_at": document["purge_at"]}}
        )
        for document in notifications().find(wanted, {"purge_at": 1}, hint="_id_")
    ]
    if times:
        attempts().bulk_write(times, ordered=False)
    return changed
