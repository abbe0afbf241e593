"""Search of notifications by any key: ID, recipient, address, entity, or provider's message ID.

Each kind of key has its own index; one query for all of them would scan the collection.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bson import ObjectId

from notifications.store import AttemptReference
from notifyproject.db.collections import collection

MAX_RESULTS = 1_000
"""Maximum results for each kind of key, newest first."""
_PHONE = re.compile(r"\+\d{6,15}", re.ASCII)
_SEPARATORS = re.compile(r"[\s().-]+")


@dataclass(frozen=True, slots=True)
class _LookUp:
    """A lookup of one kind of key by its index."""

    path: str
    value: Any
    index: str
    newest_first: bool = False


def find_ids(text: str, *, cap: int = MAX_RESULTS) -> list[ObjectId]:
    """Return the IDs of the notifications that ``text`` may mean, the newest ``cap`` of each kind.

    The text is a whole key: the ID of a notification, a broadcast, or an attempt, a user ID, an
    address, an entity, external, or idempotency key, or a provider's message ID.
    """
    found: dict[ObjectId, None] = dict.fromkeys(_own_ids(text))
    for look_up in _look_ups(text):
        cursor = collection("notifications").find({look_up.path: look_up.value}, {"_id": 1})
        if look_up.newest_first:
            cursor = cursor.sort("created_at", -1)
        found |= dict.fromkeys(row["_id"] for row in cursor.hint(look_up.index).limit(cap))
    return list(found)


def _own_ids(text: str) -> Iterator[ObjectId]:
    reference = AttemptReference.parse(text)
    if reference is not None:
        yield reference.notification_id
    elif ObjectId.is_valid(text):
        yield ObjectId(text)


def _look_ups(text: str) -> Iterator[_LookUp]:
    yield _LookUp("user_id", text, "ntf_user_feed", newest_first=True)
    yield _LookUp("entity_id", text, "ntf_entity", newest_first=True)
    yield _LookUp("external_id", text, "ntf_external")
    if ObjectId.is_valid(text):
        yield _LookUp("broadcast_id", ObjectId(text), "ntf_broadcast")
    yield _LookUp("idempotency_key", text, "ntf_idempotency_key")
    yield _LookUp("delivery.provider_message_id", text, "ntf_provider_message")
    if "@" in text:
        # Stored as the client sent it, with the domain in lower case.
        local, _, domain = text.rpartition("@")
        spellings = sorted({text, f"{local}@{domain.lower()}", text.lower()})
        for spelling in spellings:
            yield _LookUp("recipient.email", spelling, "ntf_email", newest_first=True)
    number = _SEPARATORS.sub("", text)
    if _PHONE.fullmatch(number):
        yield _LookUp("recipient.phone", number, "ntf_phone", newest_first=True)
