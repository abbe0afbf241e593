"""Stores accepted notifications. Idempotent by ID."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

from bson import ObjectId
from pymongo.errors import BulkWriteError, DuplicateKeyError

from domain.content import Content, Look, PushOptions, Recipient
from domain.states import OPEN, SUCCEEDED, DeliveryStatus, overall_status
from notifications.documents.notification import (
    ContentDocument,
    DeliveryDocument,
    NotificationDocument,
    RecipientCopyDocument,
    StoredLook,
    StoredPushOptions,
)
from notifyproject.db.collections import is_duplicate
from notifyproject.db.trips import insert_shared

from . import encrypted_content, sent_tests
from .collections import notifications
from .new_notifications import NewDelivery, NewNotification
from .pipelines import OPEN_RETENTION
from .search_keys import search_keys_of

ONCE_PER_ENTITY = "ntf_once_per_entity_client"
_RECIPIENT_FIELDS = [field.name for field in fields(Recipient)]
_CONTENT_FIELDS = [
    field.name for field in fields(Content) if field.name not in ("attachments", "push", "look")
]
_recipient_values, _content_values = attrgetter(*_RECIPIENT_FIELDS), attrgetter(*_CONTENT_FIELDS)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A stored notification. ``repeated`` if an earlier call with the same ID stored it."""

    document: NotificationDocument
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class DuplicateEntity:
    """A refusal: the client has already notified this recipient, with this type, of this entity."""

    notification_id: ObjectId | None
    """None if that notification has just been deleted."""


class _EntityKey(NamedTuple):
    """Key by which a client notifies a recipient of an entity only once, per mode and type."""

    user_id: str
    type: str
    entity_id: str
    client_id: ObjectId
    is_test: bool | None


def accept(new: Sequence[NewNotification], *, now: datetime) -> list[Accepted | DuplicateEntity]:
    """Store notifications and return the result of each, in order. Raises PyMongoError."""
    # An ID that is already stored counts as accepted, so that a call may be repeated after a lost
    # response.
    documents = [document_of(notification, now=now) for notification in new]
    if not documents:
        return []
    results = _insert(documents)
    if any(notification.is_test for notification in new):
        stored = [result.document for result in results if isinstance(result, Accepted)]
        sent_tests.add_delivered(stored)
    return results


def _insert(documents: Sequence[NotificationDocument]) -> list[Accepted | DuplicateEntity]:
    try:
        if len(documents) == 1:
            # It costs a third less than a bulk write of one.
            with suppress(DuplicateKeyError):
                insert_shared(notifications, documents[0])
                return [Accepted(documents[0])]
        notifications().insert_many(documents, ordered=False)
    except BulkWriteError as error:
        return _resolve_conflicts(documents, error)
    return [Accepted(document) for document in documents]


def _resolve_conflicts(
    documents: Sequence[NotificationDocument], error: BulkWriteError
) -> list[Accepted | DuplicateEntity]:
    """Tell repeated notifications from duplicates. Raises ``error`` if it has another cause."""
    if not is_duplicate(error):
        raise error
    problems = error.details["writeErrors"]
    results: list[Accepted | DuplicateEntity] = [Accepted(document) for document in documents]
    refused = [documents[problem["index"]] for problem in problems]
    found = notifications().find({"_id": {"$in": [document["_id"] for document in refused]}})
    stored = {document["_id"]: document for document in found}
    existing = _existing_by_entity(
        [d for d in refused if d["_id"] not in stored and d.get("user_id") and d.get("entity_id")]
    )
    for problem, document in zip(problems, refused, strict=True):
        if document["_id"] in stored:
            results[problem["index"]] = Accepted(stored[document["_id"]], repeated=True)
        elif ONCE_PER_ENTITY in problem["errmsg"]:
            unknown = DuplicateEntity(notification_id=None)
            results[problem["index"]] = existing.get(_entity_of(document), unknown)
        else:
            raise error
    return results


def find_duplicate(document: NotificationDocument) -> DuplicateEntity:
    """Return which notification has the entity of a document that MongoDB refused."""
    found = _existing_by_entity([document])
    return found.get(_entity_of(document), DuplicateEntity(notification_id=None))


def _existing_by_entity(
    documents: Sequence[NotificationDocument],
) -> dict[_EntityKey, DuplicateEntity]:
    if not documents:
        return {}
    keys = [_entity_of(document) for document in documents]
    found = notifications().find(
        {
            "user_id": {"$in": sorted({key.user_id for key in keys})},
            "type": {"$in": sorted({key.type for key in keys})},
            "entity_id": {"$in": sorted({key.entity_id for key in keys})},
            "client_id": {"$in": sorted({key.client_id for key in keys})},
            "is_test": {"$in": list({key.is_test for key in keys})},
            "resent_from": None,
        },
        dict.fromkeys(_EntityKey._fields, 1),
    )
    return {_entity_of(document): DuplicateEntity(document["_id"]) for document in found}


def _entity_of(document: NotificationDocument) -> _EntityKey:
    return _EntityKey(
        user_id=document["user_id"],
        type=document["type"],
        entity_id=document["entity_id"],
        client_id=document["client_id"],
        is_test=document.get("is_test"),
    )


class _NewState(NamedTuple):
    status: DeliveryStatus
    attempt_count: int
    is_waiting: bool


def document_of(new: NewNotification, *, now: datetime) -> NotificationDocument:
    """Return the document of a new notification."""
    deliveries = [_delivery(new, delivery, now) for delivery in new.deliveries]
    states = tuple([(d["status"], (d.get("next_attempt_at") or now) > now) for d in deliveries])
    has_event = any(d["status"] != DeliveryStatus.PENDING for d in deliveries)
    inbox_at = _earliest("delivered_at", deliveries)
    document: NotificationDocument = {
        "_id": new.id,
        "client_id": new.client_id,
        "recipient": recipient_document(new.recipient),
        "type": new.type,
        "category": new.category.value,
        "priority": new.priority.value,
        "channels": [d.channel.value for d in new.deliveries],
        "content": _content(new.content),
        "data": new.data,
        "delivery": deliveries,
        "status": _status(states),
        "error_history": [],
        "is_read": False,
        "is_archived": False,
        "is_active": True,
        "search_keys": [],
        "resent_as": [],
        "created_at": new.created_at,
        "updated_at": now,
    }
    optional: dict[str, Any] = {
        "external_id": new.external_id,
        "source": new.source,
        "idempotency_key": new.idempotency_key,
        "request_id": new.request_id,
        "traceparent": new.traceparent,
        "is_test": new.is_test or None,
        "broadcast_id": new.broadcast_id,
        "user_id": new.user_id,
        "entity_id": new.entity_id,
        **encrypted_content.encrypted_fields(
            new.secret,
            notification_id=new.id,
            statuses=[d["status"] for d in deliveries],
            inbox_at=inbox_at,
            expires_at=new.expires_at,
        ),
        "digest_id": new.digest_id,
        "ignores_limits": new.ignores_limits or None,
        "plan_until": new.plan_until.value if new.plan_until is not None else None,
        "due_at": _earliest("next_attempt_at", deliveries),
        "scheduled_at": new.scheduled_at,
        "scheduled_local": new.scheduled_local,
        "expires_at": new.expires_at,
        "ttl_seconds": new.ttl_seconds,
        "purge_at": _purge_at(new, deliveries),
        "inbox_at": inbox_at,
        "resent_from": new.resent_from,
        "sent_at": _earliest("sent_at", deliveries),
        "callback_revision": 1 if new.has_callback else None,
        "callback_due_at": now if new.has_callback and has_event else None,
    }
    given = {name: value for name, value in optional.items() if value is not None}
    document.update(cast("NotificationDocument", given))
    document["search_keys"] = search_keys_of(document)
    return document


def _purge_at(new: NewNotification, deliveries: Sequence[DeliveryDocument]) -> datetime | None:
    """Return the purge date. A later step of a plan may begin after the retention."""
    if new.purge_at is None:
        return None
    due = [at for delivery in deliveries if (at := delivery.get("next_attempt_at"))]
    return max([new.purge_at, *(at + OPEN_RETENTION for at in due)])


def _delivery(new: NewNotification, given: NewDelivery, now: datetime) -> DeliveryDocument:
    """Return a delivery to store. In-app is delivered at once unless it is due later."""
    status, due_at = given.status, new.send_at + given.delay
    if given.channel.is_inbox and status is DeliveryStatus.PENDING and due_at <= now:
        status = DeliveryStatus.DELIVERED
    delivery: DeliveryDocument = {
        "channel": given.channel.value,
        "status": status.value,
        "attempt_count": 0,
        "uncounted_attempts": 0,
        "max_attempts": new.max_attempts,
        "claim_count": 0,
        "first_due_at": due_at,
        "accepted_targets": [],
    }
    if status in OPEN:
        delivery["next_attempt_at"] = due_at
    if given.step is not None:
        delivery["step"] = given.step
    if given.skip_if_late is not None:
        delivery["skip_if_late"] = int(given.skip_if_late.total_seconds())
    if given.failure_code is not None:
        delivery["failure_code"] = given.failure_code.value
    if given.failure_reason is not None:
        delivery["failure_reason"] = given.failure_reason
    if status in SUCCEEDED:
        delivery |= {"provider": "inbox", "sent_at": now, "delivered_at": now}
    return delivery


def _stored(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    # Not asdict(), which costs as much as the rest of the acceptance.
    pairs = zip(names, values, strict=True)
    return {name: value for name, value in pairs if value is not None}


def recipient_document(recipient: Recipient) -> RecipientCopyDocument:
    """Return a recipient as a notification stores it."""
    return cast("RecipientCopyDocument", _stored(_RECIPIENT_FIELDS, _recipient_values(recipient)))


def _content(content: Content) -> ContentDocument:
    stored = cast("ContentDocument", _stored(_CONTENT_FIELDS, _content_values(content)))
    if content.attachments:
        stored["attachments"] = [
            {
                "url": attachment.url,
                "filename": attachment.filename,
                "content_type": attachment.content_type,
            }
            for attachment in content.attachments
        ]
    if content.push:
        stored["push"] = _push_options(content.push)
    if content.look:
        stored["look"] = _look(content.look)
    return stored


def _look(look: Look) -> StoredLook:
    stored: StoredLook = {"design": look.design}
    if look.brand is not None:
        stored["brand"] = look.brand
    if look.layout is not None:
        stored["layout"] = look.layout
    return stored


def _push_options(options: PushOptions) -> StoredPushOptions:
    stored: StoredPushOptions = {}
    if options.sound is not None:
        stored["sound"] = options.sound
    if options.badge is not None:
        stored["badge"] = options.badge
    if options.interruption_level is not None:
        stored["interruption_level"] = options.interruption_level.value
    if options.android_channel_id is not None:
        stored["android_channel_id"] = options.android_channel_id
    return stored


@lru_cache(maxsize=1024)
def _status(deliveries: tuple[tuple[str, bool], ...]) -> str:
    states = [_NewState(DeliveryStatus(s), 0, is_waiting=waits) for s, waits in deliveries]
    return overall_status(states).value


def _earliest(
    name: Literal["next_attempt_at", "delivered_at", "sent_at"],
    deliveries: Sequence[DeliveryDocument],
) -> datetime | None:
    return min([at for delivery in deliveries if (at := delivery.get(name))], default=None)
