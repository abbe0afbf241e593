"""Searches notifications by any key. Each kind of key has a query, so that an index serves it."""

import re
from collections.abc import Iterator
from typing import Any

from bson import ObjectId

from notifications.documents.notification import NOTIFICATIONS
from notifications.store.references import AttemptReference

from ..widgets.search import searched_addresses

MAX_RESULTS = 1_000  # Maximum results for each kind of key, newest first
_HEX = re.compile(r"[0-9a-fA-F]{8,23}", re.ASCII)
_NEWEST_FIRST = frozenset({"ntf_user_feed", "ntf_entity", "ntf_email", "ntf_phone"})
"""Indexes that also serve the order by time."""


def find_ids(text: str, *, user: Any, cap: int = MAX_RESULTS) -> list[ObjectId]:
    """Return the IDs of notifications with this key, the newest ``cap`` for each kind of key."""
    found: dict[ObjectId, None] = {}
    reference = AttemptReference.parse(text)
    if reference is not None:
        found[reference.notification_id] = None
    elif ObjectId.is_valid(text):
        found[ObjectId(text)] = None
    elif _HEX.fullmatch(text):
        # The beginning of an ID, while it is typed or as it is cut off in a log.
        ids = {"$gte": ObjectId(text.ljust(24, "0")), "$lte": ObjectId(text.ljust(24, "f"))}
        rows = NOTIFICATIONS().find({"_id": ids}, {"_id": 1}).sort("_id", -1)
        found |= dict.fromkeys(row["_id"] for row in rows.limit(cap))
    for path, value, index in _look_ups(text, user):
        cursor = NOTIFICATIONS().find({path: value}, {"_id": 1})
        if index in _NEWEST_FIRST:
            cursor = cursor.sort("created_at", -1)
        found |= dict.fromkeys(row["_id"] for row in cursor.hint(index).limit(cap))
    return list(found)


def _look_ups(text: str, user: Any) -> Iterator[tuple[str, Any, str]]:
    yield "user_id", text, "ntf_user_feed"
    yield "entity_id", text, "ntf_entity"
    yield "external_id", text, "ntf_external"
    if ObjectId.is_valid(text):
        yield "broadcast_id", ObjectId(text), "ntf_broadcast"
    yield "idempotency_key", text, "ntf_idempotency_key"
    yield "delivery.provider_message_id", text, "ntf_provider_message"
    addresses = searched_addresses(text, user=user)
    for spelling in addresses.emails:
        yield "recipient.email", spelling, "ntf_email"
    if addresses.phone:
        yield "recipient.phone", addresses.phone, "ntf_phone"
