"""Clients' callback endpoints and secrets, and the cache of clients that have an endpoint."""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from domain import signing
from notifyproject.platform import endpoints
from notifyproject.platform.cache import SharedCache
from notifyproject.platform.encryption import decrypt, encrypt, reencrypt

from .documents import CALLBACKS, CallbackDocument, CallbackSecretDocument
from .events import CallbackState, DisabledReason, EventType

SECRET_OVERLAP = timedelta(hours=24)
"""How long a replaced secret still signs, beside the new one."""
MAX_SECRETS = 5
"""Maximum of secrets that sign at the same time. It limits rotations within SECRET_OVERLAP."""
_ACTIVE = {"state": CallbackState.ACTIVE.value, "failures": 0, "claim_count": 0}
_FAILURE_FIELDS = ("failing_since", "open_until", "disabled_at", "disabled_reason", "last_error")


def encrypt_secret(secret: str, *, client_id: ObjectId, now: datetime) -> CallbackSecretDocument:
    """Return a new secret in encrypted form, as stored. Raises NoEncryptionKeyError."""
    return {
        "encrypted": encrypt(secret.encode(), associated_data=_associated_data(client_id)),
        "created_at": now,
    }


def signing_secrets(
    secrets: Sequence[CallbackSecretDocument], *, client_id: ObjectId, now: datetime
) -> list[str]:
    """Decrypt and return the secrets that haven't expired, newest first. Raises DecryptionError."""
    return [
        decrypt(secret["encrypted"], associated_data=_associated_data(client_id)).decode()
        for secret in secrets
        if secret.get("until") is None or secret["until"] > now
    ]


def encrypted_secrets() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each stored secret, and a function that re-encrypts it: False if it changed."""
    for document in CALLBACKS().find({}, {"secrets.encrypted": 1}):
        for secret in document["secrets"]:
            yield secret["encrypted"], partial(_reencrypt, document["_id"], secret["encrypted"])


def _reencrypt(client_id: ObjectId, stored: str) -> bool:
    changed = reencrypt(stored, associated_data=_associated_data(client_id))
    result = CALLBACKS().update_one(
        {"_id": client_id, "secrets.encrypted": stored}, {"$set": {"secrets.$.encrypted": changed}}
    )
    return result.modified_count == 1


def _associated_data(client_id: ObjectId) -> str:
    return f"callback:{client_id}"


def has_subscribers() -> bool:
    """Return whether any client has an endpoint. Raises PyMongoError."""
    return bool(_subscribers.get())


def is_subscribed(client_id: ObjectId) -> bool:
    """Return whether a client has an endpoint, enabled or not. Raises PyMongoError."""
    return client_id in _subscribers.get()


def invalidate_subscribers() -> None:
    """Invalidate the subscriber cache of every process. Raises PyMongoError."""
    _subscribers.invalidate()


_subscribers: SharedCache[AbstractSet[ObjectId]] = SharedCache(
    "callbacks",
    lambda: frozenset(callback["_id"] for callback in CALLBACKS().find({}, {"_id": 1})),
)


class NoCallbackError(LookupError):
    """The client has no callback endpoint."""


class TooManySecretsError(Exception):
    """The secret was rotated too often within SECRET_OVERLAP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCallback:
    """A stored endpoint. ``secret`` is set for a new endpoint and can't be shown again."""

    document: CallbackDocument
    secret: str | None = None


def put(
    *,
    client_id: ObjectId,
    url: str,
    events: Sequence[EventType],
    allow_loopback: bool,
    now: datetime,
) -> SavedCallback:
    """Create or change a client's endpoint. Raises InvalidUrlError.

    A disabled endpoint is enabled again, unless an operator disabled it.
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
            # Also on update: the creating call may have failed before this line.
            invalidate_subscribers()
            return SavedCallback(document=updated)
        secret = signing.new_secret()
        document: CallbackDocument = {
            "_id": client_id,
            "url": url,
            "host": endpoint.authority,
            "events": [event.value for event in events],
            "state": CallbackState.ACTIVE.value,
            "failures": 0,
            "secrets": [encrypt_secret(secret, client_id=client_id, now=now)],
            "backfill_from": now,
            "created_at": now,
            "updated_at": now,
        }
        try:
            CALLBACKS().insert_one(document)
        except DuplicateKeyError:
            # A concurrent call created the endpoint, and only its response has the secret.
            continue
        invalidate_subscribers()
        return SavedCallback(document=document, secret=secret)


def get(client_id: ObjectId) -> CallbackDocument:
    """Return a client's endpoint. Raises NoCallbackError."""
    document = CALLBACKS().find_one({"_id": client_id})
    if document is None:
        raise NoCallbackError
    return document


def get_many(client_ids: Sequence[ObjectId]) -> dict[ObjectId, CallbackDocument]:
    """Return these clients' endpoints by client ID."""
    found = CALLBACKS().find({"_id": {"$in": list(client_ids)}})
    return {document["_id"]: document for document in found}


def remove(client_id: ObjectId) -> None:
    """Remove a client's endpoint. Raises NoCallbackError. The next sweep fails pending messages."""
    removed = CALLBACKS().delete_one({"_id": client_id})
    invalidate_subscribers()
    if not removed.deleted_count:
        raise NoCallbackError


def rotate(client_id: ObjectId, *, now: datetime) -> str:
    """Create and return a new secret. The old one also signs until SECRET_OVERLAP is over.

    Raises NoCallbackError or TooManySecretsError.
    """
    secret = signing.new_secret()
    expires_at = {"$ifNull": ["$$one.until", now + SECRET_OVERLAP]}
    valid = {"$filter": {"input": "$secrets", "as": "one", "cond": {"$gt": [expires_at, now]}}}
    expiring = {"$mergeObjects": ["$$one", {"until": expires_at}]}
    replaced = {"$map": {"input": valid, "as": "one", "in": expiring}}
    created = {"$literal": [encrypt_secret(secret, client_id=client_id, now=now)]}
    changed = CALLBACKS().find_one_and_update(
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
    """Disable an endpoint. Return False if it is disabled already or no longer has this ``url``."""
    active = {"_id": client_id, "state": CallbackState.ACTIVE.value}
    changes = {
        "state": CallbackState.DISABLED.value,
        "disabled_at": now,
        "disabled_reason": reason.value,
        "updated_at": now,
    }
    match = active if url is None else {**active, "url": url}
    return CALLBACKS().update_one(match, {"$set": changes}).modified_count == 1


def enable(*, client_id: ObjectId, now: datetime) -> bool:
    """Enable an endpoint. Return False if it is enabled already."""
    result = CALLBACKS().update_one(
        {"_id": client_id, "state": CallbackState.DISABLED.value},
        {"$set": {**_ACTIVE, "updated_at": now}, "$unset": dict.fromkeys(_FAILURE_FIELDS, "")},
    )
    return result.modified_count == 1


def pending_backfills(*, before: datetime) -> list[CallbackDocument]:
    """Return endpoints created by ``before`` that still need a backfill of events."""
    return list(CALLBACKS().find({"backfill_from": {"$lte": before}}))


def mark_backfilled(client_id: ObjectId, *, since: datetime) -> None:
    """Record that an endpoint's backfill is complete."""
    CALLBACKS().update_one(
        {"_id": client_id, "backfill_from": since}, {"$unset": {"backfill_from": ""}}
    )


def _update(client_id: ObjectId, url: str, fields: dict[str, Any]) -> CallbackDocument | None:
    by_operator_value = DisabledReason.BY_OPERATOR.value
    disabled_by_operator = {"_id": client_id, "disabled_reason": by_operator_value}
    unchanged_and_active = {"_id": client_id, "state": CallbackState.ACTIVE.value, "url": url}
    keep_health = {"$or": [disabled_by_operator, unchanged_and_active]}
    update = partial(CALLBACKS().find_one_and_update, return_document=ReturnDocument.AFTER)
    updated = update(keep_health, {"$set": fields})
    if updated is not None:
        return updated
    # Another URL, or a disabled endpoint enabled again: reset its health.
    reset = {"$set": {**fields, **_ACTIVE}, "$unset": dict.fromkeys(_FAILURE_FIELDS, "")}
    not_disabled_by_operator = {"_id": client_id, "disabled_reason": {"$ne": by_operator_value}}
    return update(not_disabled_by_operator, reset)
