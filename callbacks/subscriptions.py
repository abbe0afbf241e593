"""Callback subscriptions, their secrets, and the cache of subscribers."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from notifyproject.db.collections import collection
from notifyproject.platform.cache import SharedCache
from notifyproject.platform.encryption import decrypt, encrypt

from . import endpoints, signing
from .events import CallbackState, DisabledReason, EventType

SECRET_OVERLAP = timedelta(hours=24)
"""How long a secret signs along after it was replaced."""
MAX_SECRETS = 5
"""Secrets that sign at the same time, each replaced by the next within a day."""


def encrypt_secret(secret: str, *, client_id: ObjectId, now: datetime) -> dict[str, Any]:
    """Return a new secret as it is kept; raises NoEncryptionKeyError."""
    return {
        "sealed": encrypt(secret.encode(), associated_data=_associated_data(client_id)),
        "created_at": now,
    }


def signing_secrets(
    secrets: Sequence[Mapping[str, Any]], *, client_id: ObjectId, now: datetime
) -> list[str]:
    """Return the secrets that sign now, the newest first; raises DecryptionError."""
    return [
        decrypt(one["sealed"], associated_data=_associated_data(client_id)).decode()
        for one in secrets
        if one.get("until") is None or one["until"] > now
    ]


def _associated_data(client_id: ObjectId) -> str:
    return f"callback:{client_id}"


def has_subscribers() -> bool:
    """Return whether any app has a callback. Raises PyMongoError."""
    return bool(_subscribers.get())


def is_subscribed(client_id: ObjectId) -> bool:
    """Return whether an app has a callback, switched off or not. Raises PyMongoError."""
    return client_id in _subscribers.get()


def invalidate_subscribers() -> None:
    """Make every process read them again: a callback was made or removed. Raises PyMongoError."""
    _subscribers.invalidate()


def _read_subscribers() -> AbstractSet[ObjectId]:
    found = collection("callbacks").find({}, {"_id": 1})
    return frozenset(document["_id"] for document in found)


_subscribers = SharedCache("callbacks", _read_subscribers)
Document = Mapping[str, Any]
_INITIAL_HEALTH = {"failures": 0}
_FAILURE_FIELDS = ("failing_since", "open_until", "disabled_at", "disabled_reason", "last_error")


class NoCallbackError(LookupError):
    """The app has no callback."""


class TooManySecretsError(Exception):
    """The secret has been replaced too often within a day: all of them still sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCallback:
    """A callback as it is stored, and its secret if it is new: it is never told again."""

    document: Document
    secret: str | None = None


def put(
    *,
    client_id: ObjectId,
    url: str,
    events: Sequence[EventType],
    allow_loopback: bool,
    now: datetime,
) -> SavedCallback:
    """Make an app's callback, or change it; one that was switched off is switched on again.

    Not so what an operator has switched off. Raises InvalidUrlError.
    """
    endpoint = endpoints.parse_url(url, allow_loopback=allow_loopback)
    fields = {
        "url": url,
        "host": endpoint.authority,
        "events": [event.value for event in events],
        "updated_at": now,
    }
    while True:
        updated = _update(client_id, url, fields)
        if updated is not None:
            # Also here: the answer of the call that made it may have been lost before this.
            invalidate_subscribers()
            return SavedCallback(document=updated)
        secret = signing.new_secret()
        document = {
            "_id": client_id,
            **fields,
            "state": CallbackState.ACTIVE.value,
            "secrets": [encrypt_secret(secret, client_id=client_id, now=now)],
            "enrols_from": now,
            **_INITIAL_HEALTH,
            "created_at": now,
        }
        try:
            collection("callbacks").insert_one(document)
        except DuplicateKeyError:
            # The app made it twice at once, and only one answer may hold the secret.
            continue
        invalidate_subscribers()
        return SavedCallback(document=document, secret=secret)


def get(client_id: ObjectId) -> Document:
    """Return an app's callback; raises NoCallbackError."""
    document = collection("callbacks").find_one({"_id": client_id})
    if document is None:
        raise NoCallbackError
    return document


def get_many(client_ids: Sequence[ObjectId]) -> dict[ObjectId, Document]:
    """Return the callbacks of these apps, of those that have one."""
    found = collection("callbacks").find({"_id": {"$in": list(client_ids)}})
    return {document["_id"]: document for document in found}


def remove(client_id: ObjectId) -> None:
    """Remove an app's callback; raises NoCallbackError. What waits for it fails in its turn."""
    removed = collection("callbacks").delete_one({"_id": client_id})
    invalidate_subscribers()
    if not removed.deleted_count:
        raise NoCallbackError


def rotate(client_id: ObjectId, *, now: datetime) -> str:
    """Give a callback a new secret and return it; the old one signs along for a day.

    Raises NoCallbackError, TooManySecretsError.
    """
    secret = signing.new_secret()
    expires_at = {"$ifNull": ["$$one.until", now + SECRET_OVERLAP]}
    valid = {"$filter": {"input": "$secrets", "as": "one", "cond": {"$gt": [expires_at, now]}}}
    expiring = {"$mergeObjects": ["$$one", {"until": expires_at}]}
    replaced = {"$map": {"input": valid, "as": "one", "in": expiring}}
    created = {"$literal": [encrypt_secret(secret, client_id=client_id, now=now)]}
    changed = collection("callbacks").find_one_and_update(
        {"_id": client_id, "$expr": {"$lt": [{"$size": valid}, MAX_SECRETS]}},
        [{"$set": {"secrets": {"$concatArrays": [created, replaced]}, "updated_at": now}}],
    )
    if changed is None:
        get(client_id)
        raise TooManySecretsError
    return secret


def disable(
    *, client_id: ObjectId, reason: DisabledReason, now: datetime, url: str | None = None
) -> bool:
    """Switch a callback off; return whether it was on, and still led to ``url`` if one is named."""
    active = {"_id": client_id, "state": CallbackState.ACTIVE.value}
    changes = {
        "state": CallbackState.DISABLED.value,
        "disabled_at": now,
        "disabled_reason": reason.value,
        "updated_at": now,
    }
    match = active if url is None else {**active, "url": url}
    return collection("callbacks").update_one(match, {"$set": changes}).modified_count == 1


def enable(*, client_id: ObjectId, now: datetime) -> bool:
    """Switch a callback on again; return whether it was off."""
    result = collection("callbacks").update_one(
        {"_id": client_id, "state": CallbackState.DISABLED.value},
        {
            "$set": {**_reactivation(), "updated_at": now},
            "$unset": dict.fromkeys(_FAILURE_FIELDS, ""),
        },
    )
    return result.modified_count == 1


def pending_backfills(*, before: datetime) -> list[Document]:
    """Return new callbacks whose apps' notifications may not all know of them yet."""
    return list(collection("callbacks").find({"enrols_from": {"$lte": before}}))


def mark_backfilled(client_id: ObjectId, *, since: datetime) -> None:
    """Note that they do by now."""
    collection("callbacks").update_one(
        {"_id": client_id, "enrols_from": since}, {"$unset": {"enrols_from": ""}}
    )


def _update(client_id: ObjectId, url: str, fields: Document) -> Document | None:
    """Change a callback there is; None if there is none."""
    by_operator_value = DisabledReason.BY_OPERATOR.value
    disabled_by_operator = {"_id": client_id, "disabled_reason": by_operator_value}
    unchanged_and_active = {"_id": client_id, "state": CallbackState.ACTIVE.value, "url": url}
    keep_health = {"$or": [disabled_by_operator, unchanged_and_active]}
    after = ReturnDocument.AFTER
    updated = collection("callbacks").find_one_and_update(
        keep_health, {"$set": fields}, return_document=after
    )
    if updated is not None:
        return updated
    # Another receiver, or one that is to have another chance: what was is forgotten.
    reset = {"$set": {**fields, **_reactivation()}, "$unset": dict.fromkeys(_FAILURE_FIELDS, "")}
    not_disabled_by_operator = {"_id": client_id, "disabled_reason": {"$ne": by_operator_value}}
    return collection("callbacks").find_one_and_update(
        not_disabled_by_operator, reset, return_document=after
    )


def _reactivation() -> dict[str, Any]:
    return {"state": CallbackState.ACTIVE.value, **_INITIAL_HEALTH}
