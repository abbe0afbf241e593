"""Keys by which notifications are found, all in one array with one index.

A key is a letter for its kind, a colon, and a value, so that equal values of two kinds are two
keys. The store derives the keys in each write that changes a value.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from bson import ObjectId

from domain.addresses import AddressKind

SEARCH_INDEX = "ntf_search"
"""The index on the keys, newest first."""


class KeyKind(StrEnum):
    """What a search key has the value of."""

    EMAIL = "e"
    PHONE = "p"
    EXTERNAL_ID = "x"
    ENTITY_ID = "n"
    SOURCE = "s"
    IDEMPOTENCY_KEY = "k"
    PROVIDER_MESSAGE_ID = "m"
    DIGEST_ID = "g"
    INACTIVE = "d"


_FIELDS: Mapping[KeyKind, str] = {
    KeyKind.EMAIL: "recipient.email",
    KeyKind.PHONE: "recipient.phone",
    KeyKind.EXTERNAL_ID: "external_id",
    KeyKind.ENTITY_ID: "entity_id",
    KeyKind.IDEMPOTENCY_KEY: "idempotency_key",
}
_KINDS = {name: kind for kind, name in _FIELDS.items()}
_DELIVERY_FIELDS: Mapping[KeyKind, str] = {
    KeyKind.PROVIDER_MESSAGE_ID: "provider_message_id",
    KeyKind.DIGEST_ID: "digest_id",
}


def search_key(kind: KeyKind, value: str | ObjectId) -> str:
    """Return the key of a value."""
    return f"{kind}:{value}"


def address_search_key(kind: AddressKind, address: str) -> str:
    """Return the key of a recipient's address."""
    return search_key(_KINDS[f"recipient.{kind.field}"], address)


def source_key(client_id: ObjectId, source: str) -> str:
    """Return the key of a client's source. Clients name their sources alike."""
    return search_key(KeyKind.SOURCE, f"{client_id}:{source}")


INACTIVE_KEY = search_key(KeyKind.INACTIVE, "")
"""The key of all deleted and erased notifications."""


def search_keys_of(document: Mapping[str, Any]) -> list[str]:
    """Return the search keys of a notification's document. :func:`search_keys` has the same."""
    fields = {**document, **{f"recipient.{k}": v for k, v in document["recipient"].items()}}
    found = [(kind, fields.get(name)) for kind, name in _FIELDS.items()]
    found += [
        (kind, delivery.get(name))
        for kind, name in _DELIVERY_FIELDS.items()
        for delivery in document["delivery"]
    ]
    keys = [search_key(kind, value) for kind, value in found if value is not None]
    if (source := document.get("source")) is not None:
        keys.append(source_key(document["client_id"], source))
    if not document["is_active"]:
        keys.append(INACTIVE_KEY)
    return list(dict.fromkeys(keys))


def search_keys() -> dict[str, Any]:
    """Return :func:`search_keys_of` as a MongoDB expression."""
    # A key of a missing value is null.
    keys = [{"$concat": [search_key(kind, ""), f"${name}"]} for kind, name in _FIELDS.items()]
    source = {
        "$concat": [search_key(KeyKind.SOURCE, ""), {"$toString": "$client_id"}, ":", "$source"]
    }
    inactive = {"$cond": ["$is_active", None, INACTIVE_KEY]}
    of_deliveries = [
        {
            "$map": {
                "input": "$delivery",
                "in": {"$concat": [search_key(kind, ""), {"$toString": f"$$this.{name}"}]},
            }
        }
        for kind, name in _DELIVERY_FIELDS.items()
    ]
    all_keys = {"$concatArrays": [[*keys, source, inactive], *of_deliveries]}
    return {"$setDifference": [all_keys, [None]]}
