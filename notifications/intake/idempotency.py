"""Reserves idempotency keys before a write, and finds what a key was used for."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from notifications.documents.records import (
    IDEMPOTENCY_KEYS,
    IdempotencyKeyDocument,
    StoredRefusal,
)
from notifyproject.db.trips import find_few, insert_shared
from notifyproject.platform import encryption

from .requests import Caller, KeyReusedError

KEY_LIFETIME = timedelta(hours=24)


def record_id(caller: Caller) -> str:
    """Return the ID of a key's record, which is different for each client."""
    return hashlib.sha256(f"{caller.client_id}|{caller.idempotency_key}".encode()).hexdigest()


def fingerprint_of(request: msgspec.Struct, *, kind: bytes = b"") -> str:
    """Return a digest that is equal for equal requests of the same kind.

    Only a keyed digest of it is stored. From a plain digest, sensitive variables could be guessed.
    """
    return hashlib.sha256(kind + msgspec.json.encode(request, order="sorted")).hexdigest()


def find(*, caller: Caller, fingerprint: str) -> IdempotencyKeyDocument | None:
    """Return the record of a key, or None for a new key. Raises KeyReusedError, PyMongoError."""
    found = find_few(IDEMPOTENCY_KEYS, {"_id": record_id(caller)}, limit=1)
    if not found:
        return None
    (record,) = found
    if not _is_of(record, fingerprint):
        raise KeyReusedError
    return record


def find_any(*, caller: Caller) -> IdempotencyKeyDocument | None:
    """Return the record of a key, whatever it was used for. Raises PyMongoError."""
    return next(iter(find_few(IDEMPOTENCY_KEYS, {"_id": record_id(caller)}, limit=1)), None)


def _is_of(record: IdempotencyKeyDocument, fingerprint: str) -> bool:
    return encryption.is_digest_of(
        record["fingerprint"], fingerprint.encode(), associated_data=record["_id"]
    )


def reserve(
    *,
    caller: Caller,
    fingerprint: str,
    notification_ids: Sequence[ObjectId] = (),
    refusals: Sequence[StoredRefusal] | None = None,
    broadcast_id: ObjectId | None = None,
    now: datetime,
) -> IdempotencyKeyDocument | None:
    """Reserve a key. Return the earlier record if there is one.

    The IDs are those of the documents to store next. A repeated request, concurrent or after a
    crash, finds these IDs and stores the same documents.

    Raises KeyReusedError if the key was used with another request, and PyMongoError.
    """
    key = record_id(caller)
    record: IdempotencyKeyDocument = {
        "_id": key,
        "fingerprint": encryption.keyed_digest(fingerprint.encode(), associated_data=key),
        "notification_ids": list(notification_ids),
        "created_at": now,
        "expires_at": now + KEY_LIFETIME,
    }
    if refusals is not None:
        record["refusals"] = list(refusals)
    if broadcast_id is not None:
        record["broadcast_id"] = broadcast_id
    while True:
        try:
            insert_shared(IDEMPOTENCY_KEYS, record)
        except DuplicateKeyError:
            existing = find(caller=caller, fingerprint=fingerprint)
            if existing is not None:
                return existing
            # The earlier record expired between the insert and the read.
        else:
            return None
