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
    refused: Mapping[int, Refusal]
    made_at: datetime
    is_kept: bool = False
    """All of it is stored."""

    def outcomes(self) -> list[ObjectId | Refusal]:
        """Return what became of each item, in the order of the items."""
        both: dict[int, ObjectId | Refusal] = {**self.ids, **self.refused}
        return [both[place] for place in range(len(both))]


def find(*, caller: Caller, fingerprint: str) -> IdempotencyRecord | None:
    """Return what the same call was promised before; None if its key is a new one.

    Raises KeyReused if the key came with another body.
    """
    document = collection("idempotency_keys").find_one({"_id": record_id(caller)})
    if document is None:
        return None
    if document["fingerprint"] != fingerprint:
        raise KeyReusedError
    return _promise(document)


def reserve(
    promise: IdempotencyRecord, *, caller: Caller, fingerprint: str
) -> tuple[IdempotencyRecord, bool]:
    """Write a promise down; return the one that holds, and whether that is this one.

    Raises KeyReused if the key has been taken for another body.
    """
    try:
        collection("idempotency_keys").insert_one(
            {
                "_id": record_id(caller),
                "fingerprint": fingerprint,
                **_fields(promise),
                "created_at": promise.made_at,
                "expires_at": promise.made_at + KEY_LIFETIME,
            }
        )
    except DuplicateKeyError:
        first = find(caller=caller, fingerprint=fingerprint)
        if first is None:
            # It ran out between the two calls.
            return reserve(promise, caller=caller, fingerprint=fingerprint)
        return first, False
    return promise, True


def complete(promise: IdempotencyRecord, *, caller: Caller, now: datetime) -> IdempotencyRecord:
    """Note that all of a promise is stored: a repeated call is answered from it alone.

    Return what was noted first, by this call or by the same one at the same time. Should it not be
    written, whoever repeats the call finds out again.
    """
    kept = replace(promise, is_kept=True)
    try:
        noted = collection("idempotency_keys").update_one(
            {"_id": record_id(caller), "kept_at": None},
            {"$set": {**_fields(kept), "kept_at": now}},
        )
        if noted.matched_count:
            return kept
        first = collection("idempotency_keys").find_one({"_id": record_id(caller)})
    except PyMongoError as error:
        log.warning("promise_not_noted", reason=type(error).__name__)
        return kept
    return kept if first is None else _promise(first)


def _fields(promise: IdempotencyRecord) -> dict[str, Any]:
    return {
        "notification_ids": [promise.ids[place] for place in sorted(promise.ids)],
        "refusals": [{"place": place, **_kept(why)} for place, why in promise.refused.items()],
    }


def _promise(document: Mapping[str, Any]) -> IdempotencyRecord:
    refused = {one["place"]: _refusal(one) for one in document["refusals"]}
    ids: list[ObjectId] = document["notification_ids"]
    accepted = (place for place in range(len(ids) + len(refused)) if place not in refused)
    return IdempotencyRecord(
        ids=dict(zip(accepted, ids, strict=True)),
        refused=refused,
        made_at=document["created_at"],
        is_kept=document.get("kept_at") is not None,
    )


def _kept(refusal: Refusal) -> dict[str, Any]:
    """Return a refusal as it is stored."""
    match refusal:
        case InvalidRequestError():
            problems = [[p.pointer, p.code, p.detail] for p in refusal.problems]
            return {"why": "invalid", "problems": problems}
        case AlreadyNotifiedError():
            return {"why": "already_notified", "notification_id": refusal.notification_id}
        case RepeatedItemError():
            return {"why": "repeated", "first": refusal.first}
        case OverloadedError():
            return {"why": "overloaded"}


def _refusal(stored: Mapping[str, Any]) -> Refusal:
    match stored["why"]:
        case "invalid":
            return InvalidRequestError([FieldProblem(*problem) for problem in stored["problems"]])
        case "already_notified":
            return AlreadyNotifiedError(stored["notification_id"])
        case "repeated":
            return RepeatedItemError(stored["first"])
    return OverloadedError(RETRY_AFTER)
