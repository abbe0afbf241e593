"""Frequent reads of notifications. A test checks that each is an index scan without a sort."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from bson import ObjectId

from domain.states import Channel, DeliveryStatus
from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Page

from .store import MATCH_SENT, AttemptReference, Document

S = DeliveryStatus
MAX_SCHEDULED_LOCAL = 1_000
_notifications = partial(collection, "notifications")
COUNT_CAP = 10_000  # Upper limit of displayed counts
NEWEST_FIRST = (("created_at", -1), ("_id", -1))


class Position(NamedTuple):
    """A position in a list ordered newest first."""

    created_at: datetime
    id: ObjectId


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Filter of a client's notification list. Fields that are None don't filter."""

    client_id: ObjectId
    user_id: str | None = None
    type: str | None = None
    category: str | None = None
    channel: str | None = None
    status: str | None = None
    delivery_status: str | None = None
    entity_id: str | None = None
    external_id: str | None = None
    source: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    unread: bool = False
    is_active: bool = True
    """False selects only deleted or erased notifications."""

    def match(self) -> dict[str, Any]:
        """Return the filter as a MongoDB query."""
        fields = ("user_id", "type", "category", "status", "entity_id", "external_id", "source")
        match: dict[str, Any] = {"client_id": self.client_id, "is_active": self.is_active}
        match |= {name: value for name in fields if (value := getattr(self, name)) is not None}
        channel, status = self.channel, self.delivery_status
        if self.unread:
            match |= {"is_read": False, **MATCH_SENT}
        if channel is not None or status is not None:
            # Always both fields, so that one index serves every combination in order of creation.
            wanted: dict[str, Any] = {
                "channel": {"$in": [one.value for one in Channel]} if channel is None else channel,
                "status": {"$in": [one.value for one in S]} if status is None else status,
            }
            match["delivery"] = {"$elemMatch": wanted}
        created = {"$gte": self.created_after, "$lt": self.created_before}
        if created := {name: at for name, at in created.items() if at is not None}:
            match["created_at"] = created
        return match


def get(*, notification_id: ObjectId, client_id: ObjectId | None = None) -> Document | None:
    """Return a notification, with ``client_id`` only if it is that client's."""
    wanted: dict[str, Any] = {"_id": notification_id}
    if client_id is not None:
        wanted["client_id"] = client_id
    return _notifications().find_one(wanted)


def get_many(ids: Sequence[ObjectId]) -> list[Document]:
    """Return notifications by ID, in no particular order."""
    return list(_notifications().find({"_id": {"$in": list(ids)}}))


def existing_ids(ids: Sequence[ObjectId]) -> set[ObjectId]:
    """Return which of these IDs exist."""
    found = _notifications().find({"_id": {"$in": list(ids)}}, {"_id": 1})
    return {document["_id"] for document in found}


def traceparents(ids: Collection[ObjectId]) -> dict[ObjectId, str]:
    """Return the trace context of these notifications' acceptance, for those that were traced."""
    found = _notifications().find({"_id": {"$in": list(ids)}}, {"traceparent": 1})
    return {one["_id"]: one["traceparent"] for one in found if "traceparent" in one}


def scheduled_local_of(user_id: str) -> list[Document]:
    """Return up to 1,000 open notifications that follow a recipient's local time."""
    wanted = {"user_id": user_id, "scheduled_local": {"$exists": True}, "due_at": {"$exists": True}}
    found = _notifications().find(wanted, {"scheduled_local": 1, "scheduled_at": 1})
    return list(found.hint("ntf_own_clock").limit(MAX_SCHEDULED_LOCAL))


def page(
    filters: Filter, *, limit: int, after: Position | None = None, before: Position | None = None
) -> Page:
    """Return up to ``limit`` notifications, newest first, after ``after`` or before ``before``."""
    return paging.page(
        "notifications",
        filters.match(),
        order=NEWEST_FIRST,
        limit=limit,
        cursor=paging.cursor_of(after=after, before=before),
    )


def by_provider_message(provider_ids: Sequence[str]) -> dict[str, AttemptReference]:
    """Return attempts by the provider's message ID, for IDs that identify one attempt."""
    if not provider_ids:
        return {}
    found = _notifications().find(
        {"delivery.provider_message_id": {"$in": list(provider_ids)}},
        {"delivery.channel": 1, "delivery.provider_message_id": 1, "delivery.attempt_count": 1},
    )
    references: dict[str, set[AttemptReference]] = {}
    for document in found:
        for delivery in document["delivery"]:
            if (provider_id := delivery.get("provider_message_id")) in provider_ids:
                channel, attempt = Channel(delivery["channel"]), delivery["attempt_count"]
                one = AttemptReference(document["_id"], channel, attempt)
                references.setdefault(provider_id, set()).add(one)
    # Emails of one send batch share the ID, which then identifies none of them.
    return {provider_id: ones.pop() for provider_id, ones in references.items() if len(ones) == 1}


def attempts_of(notification_id: ObjectId) -> list[Document]:
    """Return all attempts of a notification, oldest first."""
    found = collection("delivery_attempts").find({"notification_id": notification_id})
    return sorted(found, key=lambda attempt: (attempt["attempted_at"], attempt["_id"]))
