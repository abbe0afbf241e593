"""Idempotency records: reserve a key, replay an answer."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from bson import ObjectId
from pymongo.errors import DuplicateKeyError, PyMongoError

from notifyproject.db.collections import collection

from ..queueing.backlog import RETRY_AFTER
from ..validation import FieldProblem, InvalidRequestError
from .requests import (
    AlreadyNotifiedError,
    Caller,
    KeyReusedError,
    OverloadedError,
    RepeatedItemError,
)

KEY_LIFETIME = timedelta(hours=24)
"""How long a repeated request is recognised."""


def record_id(caller: Caller) -> str:
    """Return the id under which a caller's key is kept: nobody else's key has it."""
    return hashlib.sha256(f"{caller.client_id}|{caller.idempotency_key}".encode()).hexdigest()


log = structlog.get_logger(__name__)
Refusal = InvalidRequestError | AlreadyNotifiedError | RepeatedItemError | OverloadedError
"""Why an item of a call was not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """What becomes of each item of a call, by its place: an id, or a refusal."""

    ids: Mapping[int, ObjectId]
    refusals: Mapping[int, Refusal]
    created_at: datetime
    is_complete: bool = False
    """All of it is stored."""

    def outcomes(self) -> list[ObjectId | Refusal]:
        """Return what became of each item, in the order of the items."""
        outcomes: dict[int, ObjectId | Refusal] = {**self.ids, **self.refusals}
        return [outcomes[index] for index in range(len(outcomes))]


def find(*, caller: Caller, fingerprint: str) -> IdempotencyRecord | None:
    """Return what the same call was promised before; None if its key is a new one.

    Raises KeyReusedError if the key came with another body.
    """
    document = collection("idempotency_keys").find_one({"_id": record_id(caller)})
    if document is None:
        return None
    if document["fingerprint"] != fingerprint:
        raise KeyReusedError
    return _load_record(document)


def reserve(
    record: IdempotencyRecord, *, caller: Caller, fingerprint: str
) -> tuple[IdempotencyRecord, bool]:
    """Write a promise down; return the one that holds, and whether that is this one.

    Raises KeyReusedError if the key has been taken for another body.
    """
    try:
        collection("idempotency_keys").insert_one(
            {
                "_id": record_id(caller),
                "fingerprint": fingerprint,
                **_dump_record(record),
                "created_at": record.created_at,
                "expires_at": record.created_at + KEY_LIFETIME,
            }
        )
    except DuplicateKeyError:
        existing = find(caller=caller, fingerprint=fingerprint)
        if existing is None:
            # It ran out between the two calls.
            return reserve(record, caller=caller, fingerprint=fingerprint)
        return existing, False
    return record, True


def complete(record: IdempotencyRecord, *, caller: Caller, now: datetime) -> IdempotencyRecord:
    """Note that all of a promise is stored: a repeated call is answered from it alone.

    Return what was noted first, by this call or by the same one at the same time. Should it not be
    written, whoever repeats the call finds out again.
    """
    completed = replace(record, is_complete=True)
    try:
        result = collection("idempotency_keys").update_one(
            {"_id": record_id(caller), "kept_at": None},
            {"$set": {**_dump_record(completed), "kept_at": now}},
        )
        if result.matched_count:
            return completed
        existing = collection("idempotency_keys").find_one({"_id": record_id(caller)})
    except PyMongoError as error:
        log.warning("idempotency_record_not_completed", reason=type(error).__name__)
        return completed
    return completed if existing is None else _load_record(existing)


def _dump_record(record: IdempotencyRecord) -> dict[str, Any]:
    return {
        "notification_ids": [record.ids[index] for index in sorted(record.ids)],
        "refusals": [
            {"place": index, **_dump_refusal(refusal)} for index, refusal in record.refusals.items()
        ],
    }


def _load_record(document: Mapping[str, Any]) -> IdempotencyRecord:
    refusals = {one["place"]: _load_refusal(one) for one in document["refusals"]}
    ids: list[ObjectId] = document["notification_ids"]
    accepted = (index for index in range(len(ids) + len(refusals)) if index not in refusals)
    return IdempotencyRecord(
        ids=dict(zip(accepted, ids, strict=True)),
        refusals=refusals,
        created_at=document["created_at"],
        is_complete=document.get("kept_at") is not None,
    )


def _dump_refusal(refusal: Refusal) -> dict[str, Any]:
    """Return a refusal as it is stored."""
    match refusal:
        case InvalidRequestError():
            problems = [[p.pointer, p.code, p.detail] for p in refusal.problems]
            return {"why": "invalid", "problems": problems}
        case AlreadyNotifiedError():
            return {"why": "already_notified", "notification_id": refusal.notification_id}
        case RepeatedItemError():
            return {"why": "repeated", "first": refusal.first_index}
        case OverloadedError():
            return {"why": "overloaded"}


def _load_refusal(stored: Mapping[str, Any]) -> Refusal:
    match stored["why"]:
        case "invalid":
            return InvalidRequestError([FieldProblem(*problem) for problem in stored["problems"]])
        case "already_notified":
            return AlreadyNotifiedError(stored["notification_id"])
        case "repeated":
            return RepeatedItemError(stored["first"])
    return OverloadedError(RETRY_AFTER)
