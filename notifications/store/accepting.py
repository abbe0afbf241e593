"""Accepting a notification: one insert, and it is ours to deliver."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId
from pymongo.errors import BulkWriteError

from notifyproject.db.collections import DUPLICATE_KEY

from ..states import OPEN, SUCCEEDED, Channel, DeliveryStatus, summary
from .collections import notifications
from .contents import Content
from .documents import Document, NewDelivery, NewNotification

ONCE_PER_ENTITY = "ntf_once_per_entity"


@dataclass(frozen=True, slots=True)
class Accepted:
    """It is stored. ``repeated``: it was already, by an earlier try with the same id."""

    document: Document
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class DuplicateEntity:
    """The person has already been told about this entity, by a notification of this type."""

    notification_id: ObjectId | None
    client_id: ObjectId | None


def accept(new: Sequence[NewNotification], *, now: datetime) -> list[Accepted | DuplicateEntity]:
    """Store notifications and return what became of each, in their order.

    An id that is stored already stands for itself: accepting may be repeated after a lost answer.
    Raises PyMongoError when the store cannot promise that it keeps them.
    """
    documents = [_document(one, now) for one in new]
    try:
        notifications().insert_many(documents, ordered=False)
    except BulkWriteError as error:
        return _sort_out(documents, error)
    return [Accepted(document) for document in documents]


def _sort_out(
    documents: Sequence[dict[str, Any]], error: BulkWriteError
) -> list[Accepted | DuplicateEntity]:
    """Tell repeated documents from duplicates; raise ``error`` if anything else went wrong."""
    problems = error.details["writeErrors"]
    if error.details["writeConcernErrors"] or any(p["code"] != DUPLICATE_KEY for p in problems):
        raise error
    results: list[Accepted | DuplicateEntity] = [Accepted(document) for document in documents]
    for problem in problems:
        document = documents[problem["index"]]
        stored = notifications().find_one({"_id": document["_id"]})
        if stored is not None:
            results[problem["index"]] = Accepted(stored, repeated=True)
        elif ONCE_PER_ENTITY in problem["errmsg"]:
            results[problem["index"]] = _first_about_entity(document)
        else:
            raise error
    return results


def _first_about_entity(document: Mapping[str, Any]) -> DuplicateEntity:
    first = notifications().find_one(
        {
            "user_id": document["user_id"],
            "type": document["type"],
            "entity_id": document["entity_id"],
            "resent_from": None,
        },
        {"client_id": 1},
    )
    if first is None:
        return DuplicateEntity(notification_id=None, client_id=None)
    return DuplicateEntity(notification_id=first["_id"], client_id=first["client_id"])


@dataclass(frozen=True, slots=True)
class _NewState:
    """What the overall status of a new notification is computed from."""

    status: DeliveryStatus
    attempt_count: int
    is_waiting: bool


def _document(new: NewNotification, now: datetime) -> dict[str, Any]:
    """Return the document as it is stored. A field that is None is left out: indexes rely on it."""
    deliveries = [_delivery(new, one, now) for one in new.deliveries]
    open_deliveries = [d for d in deliveries if d["status"] in OPEN]
    states = [
        _NewState(DeliveryStatus(d["status"]), 0, is_waiting=_is_after(d, now)) for d in deliveries
    ]
    fields: dict[str, Any] = {
        "_id": new.id,
        "client_id": new.client_id,
        "external_id": new.external_id,
        "idempotency_key": new.idempotency_key,
        "request_id": new.request_id,
        "user_id": new.user_id,
        "recipient": _present(asdict(new.recipient)),
        "type": new.type,
        "category": new.category.value,
        "priority": new.priority.value,
        "entity_id": new.entity_id,
        "channels": [d.channel.value for d in new.deliveries],
        "content": _content(new.content),
        "data": dict(new.data),
        "delivery": deliveries,
        "status": summary(states).value,
        "due_at": min((d["next_attempt_at"] for d in open_deliveries), default=None),
        "scheduled_at": new.scheduled_at,
        "expires_at": new.expires_at,
        "purge_at": new.purge_at,
        "error_history": [],
        "is_read": False,
        "is_active": True,
        "resent_from": new.resent_from,
        "resent_as": [],
        "sent_at": min((d["sent_at"] for d in deliveries if "sent_at" in d), default=None),
        "created_at": new.created_at,
        "updated_at": now,
    }
    return _present(fields)


def _delivery(new: NewNotification, one: NewDelivery, now: datetime) -> dict[str, Any]:
    """Return one delivery. In-app is delivered by being stored, unless it is scheduled."""
    status = one.status
    if one.channel is Channel.IN_APP and status is DeliveryStatus.PENDING and new.send_at <= now:
        status = DeliveryStatus.DELIVERED
    fields: dict[str, Any] = {
        "channel": one.channel.value,
        "status": status.value,
        "attempt_count": 0,
        "excused_count": 0,
        "max_attempts": new.max_attempts,
        "claim_count": 0,
        "instead_of": one.instead_of.value if one.instead_of else None,
        "first_due_at": new.send_at + one.delay,
        "next_attempt_at": new.send_at + one.delay if status in OPEN else None,
        "failure_code": one.failure_code.value if one.failure_code else None,
        "failure_reason": one.failure_reason,
        "accepted_targets": [],
    }
    if status in SUCCEEDED:
        fields |= {"provider": "inbox", "sent_at": now, "delivered_at": now}
    return _present(fields)


def _content(content: Content) -> dict[str, Any]:
    fields = asdict(content)
    return _present(fields | {"attachments": fields["attachments"] or None})


def _is_after(delivery: Mapping[str, Any], now: datetime) -> bool:
    return delivery.get("next_attempt_at", now) > now


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
