"""Searches notifications by any key, in queries that each have an index in the order of time."""

import re
from typing import Any

from bson import ObjectId

from notifications.documents.notification import NOTIFICATIONS
from notifications.store.inbox import FEED_INDEX
from notifications.store.references import AttemptReference
from notifications.store.search_keys import SEARCH_INDEX, KeyKind, search_key

from ..widgets.search import searched_addresses

MAX_RESULTS = 1_000  # Maximum results of each query, newest first
_HEX = re.compile(r"[0-9a-fA-F]{8,23}", re.ASCII)
_SAME_TEXT = (
    KeyKind.ENTITY_ID,
    KeyKind.EXTERNAL_ID,
    KeyKind.IDEMPOTENCY_KEY,
    KeyKind.PROVIDER_MESSAGE_ID,
)


def find_ids(text: str, *, user: Any, cap: int = MAX_RESULTS) -> list[ObjectId]:
    """Return the IDs of notifications with this key, the newest ``cap`` of each query."""
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
    if ObjectId.is_valid(text):
        # In no order: its index has none of time.
        rows = NOTIFICATIONS().find({"broadcast_id": ObjectId(text)}, {"_id": 1})
        found |= dict.fromkeys(row["_id"] for row in rows.hint("ntf_broadcast").limit(cap))
    for wanted, index in (
        ({"user_id": text}, FEED_INDEX),
        ({"search_keys": {"$in": _search_keys(text, user)}}, SEARCH_INDEX),
    ):
        rows = NOTIFICATIONS().find(wanted, {"_id": 1}).sort("created_at", -1)
        found |= dict.fromkeys(row["_id"] for row in rows.hint(index).limit(cap))
    return list(found)


def _search_keys(text: str, user: Any) -> list[str]:
    keys = [search_key(kind, text) for kind in _SAME_TEXT]
    addresses = searched_addresses(text, user=user)
    keys += [search_key(KeyKind.EMAIL, spelling) for spelling in addresses.emails]
    if addresses.phone:
        keys.append(search_key(KeyKind.PHONE, addresses.phone))
    return keys
