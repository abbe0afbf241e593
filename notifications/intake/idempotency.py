"""Reserves idempotency keys before a write, and finds what a key was used for."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from pymongo.errors import DuplicateKeyError

from notifications.store.documents import Document
from notifyproject.db.collections import collection
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


def find(*, caller: Caller, fingerprint: str) -> Document | None:
    """Return the record of a key, or None for a new key. Raises KeyReusedError, PyMongoError."""
    record = collection("idempotency_keys").find_one({"_id": record_id(caller)})
    if record is not None and not _is_of(record, fingerprint):
        raise KeyReusedError
    return record


def _is_of(record: Document, fingerprint: str) -> bool:
    return encryption.is_digest_of(
        record["fingerprint"], fingerprint.encode(), associated_data=record["_id"]
    )


def reserve(
    fields: Mapping[str, Any], *, caller: Caller, fingerprint: str, now: datetime
) -> Document | None:
    """Reserve a key and store ``fields`` with it. Return the earlier record if there is one.

    ``fields`` contain the IDs of the documents to store next. A repeated request, concurrent or
    after a crash, finds these IDs and stores the same documents.

    Raises KeyReusedError if the key was used with another request, and PyMongoError.
    """
    key = record_id(caller)
    record = {
        "_id": key,
        "fingerprint": encryption.keyed_digest(fingerprint.encode(), associated_data=key),
        **fields,
        "created_at": now,
        "expires_at": now + KEY_LIFETIME,
    }
    while True:
        try:
            collection("idempotency_keys").insert_one(record)
        except DuplicateKeyError:
            existing = find(caller=caller, fingerprint=fingerprint)
            if existing is not None:
                return existing
            # The earlier record expired between the insert and the read.
        else:
            return None
