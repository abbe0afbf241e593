"""Where apps want to be called back: made, changed and removed by the app itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from notifyproject.db.collections import collection

from . import interest, keys, signing, targets
from .events import EventType
from .states import CallbackState, DisabledReason

Document = Mapping[str, Any]

_FRESH = {"failures": 0}
_TROUBLES = ("failing_since", "open_until", "disabled_at", "disabled_reason", "last_error")


class NoCallback(LookupError):
    """The app has no callback."""


class TooManySecrets(Exception):
    """The secret has been replaced too often within a day: all of them still sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A callback as it is stored, and its secret if it is new: it is never told again."""

    document: Document
    secret: str | None = None


def put(
    *,
    client_id: ObjectId,
    url: str,
    events: Sequence[EventType],
    loopback: bool,
    now: datetime,
) -> Made:
    """Make an app's callback, or change it; one that was switched off is switched on again.

    Not so what an operator has switched off. Raises BadTarget.
    """
    target = targets.parse(url, loopback=loopback)
    wanted = {
        "url": url,
        "host": target.authority,
        "events": [event.value for event in events],
        "updated_at": now,
    }
    while True:
        changed = _change(client_id, url, wanted)
        if changed is not None:
            # Also here: the answer of the call that made it may have been lost before this.
            interest.invalidate()
            return Made(document=changed)
        secret = signing.new_secret()
        document = {
            "_id": client_id,
            **wanted,
            "state": CallbackState.ACTIVE.value,
            "secrets": [keys.sealed(secret, client_id=client_id, now=now)],
            "enrols_from": now,
            **_FRESH,
            "created_at": now,
        }
        try:
            collection("callbacks").insert_one(document)
        except DuplicateKeyError:
            # The app made it twice at once, and only one answer may hold the secret.
            continue
        interest.invalidate()
        return Made(document=document, secret=secret)


def get(client_id: ObjectId) -> Document:
    """Return an app's callback; raises NoCallback."""
    document = collection("callbacks").find_one({"_id": client_id})
    if document is None:
        raise NoCallback
    return document


def of_clients(client_ids: Sequence[ObjectId]) -> dict[ObjectId, Document]:
    """Return the callbacks of these apps, of those that have one."""
    found = collection("callbacks").find({"_id": {"$in": list(client_ids)}})
    return {document["_id"]: document for document in found}


def remove(client_id: ObjectId) -> None:
    """Remove an app's callback; raises NoCallback. What waits for it fails in its turn."""
    removed = collection("callbacks").delete_one({"_id": client_id})
    interest.invalidate()
    if not removed.deleted_count:
        raise NoCallback


def rotate(client_id: ObjectId, *, now: datetime) -> str:
    """Give a callback a new secret and return it; the old one signs along for a day.

    Raises NoCallback, TooManySecrets.
    """
    secret = signing.new_secret()
    ends = {"$ifNull": ["$$one.until", now + keys.OVERLAP]}
    valid = {"$filter": {"input": "$secrets", "as": "one", "cond": {"$gt": [ends, now]}}}
    ending = {"$mergeObjects": ["$$one", {"until": ends}]}
    old = {"$map": {"input": valid, "as": "one", "in": ending}}
    new = {"$literal": [keys.sealed(secret, client_id=client_id, now=now)]}
    changed = collection("callbacks").find_one_and_update(
        {"_id": client_id, "$expr": {"$lt": [{"$size": valid}, keys.MOST]}},
        [{"$set": {"secrets": {"$concatArrays": [new, old]}, "updated_at": now}}],
    )
    if changed is None:
        get(client_id)
        raise TooManySecrets
    return secret


def disable(
    *, client_id: ObjectId, reason: DisabledReason, now: datetime, url: str | None = None
) -> bool:
    """Switch a callback off; return whether it was on, and still led to ``url`` if one is named."""
    on = {"_id": client_id, "state": CallbackState.ACTIVE.value}
    changes = {
        "state": CallbackState.DISABLED.value,
        "disabled_at": now,
        "disabled_reason": reason.value,
        "updated_at": now,
    }
    wanted = on if url is None else {**on, "url": url}
    return collection("callbacks").update_one(wanted, {"$set": changes}).modified_count == 1


def enable(*, client_id: ObjectId, now: datetime) -> bool:
    """Switch a callback on again; return whether it was off."""
    result = collection("callbacks").update_one(
        {"_id": client_id, "state": CallbackState.DISABLED.value},
        {"$set": {**_on_again(), "updated_at": now}, "$unset": dict.fromkeys(_TROUBLES, "")},
    )
    return result.modified_count == 1


def to_enrol(*, before: datetime) -> list[Document]:
    """Return new callbacks whose apps' notifications may not all know of them yet."""
    return list(collection("callbacks").find({"enrols_from": {"$lte": before}}))


def enrolled(client_id: ObjectId, *, since: datetime) -> None:
    """Note that they do by now."""
    collection("callbacks").update_one(
        {"_id": client_id, "enrols_from": since}, {"$unset": {"enrols_from": ""}}
    )


def _change(client_id: ObjectId, url: str, wanted: Document) -> Document | None:
    """Change a callback there is; None if there is none."""
    operators = DisabledReason.BY_OPERATOR.value
    by_operator = {"_id": client_id, "disabled_reason": operators}
    same_and_on = {"_id": client_id, "state": CallbackState.ACTIVE.value, "url": url}
    keep = {"$or": [by_operator, same_and_on]}
    after = ReturnDocument.AFTER
    kept = collection("callbacks").find_one_and_update(
        keep, {"$set": wanted}, return_document=after
    )
    if kept is not None:
        return kept
    # Another receiver, or one that is to have another chance: what was is forgotten.
    anew = {"$set": {**wanted, **_on_again()}, "$unset": dict.fromkeys(_TROUBLES, "")}
    others = {"_id": client_id, "disabled_reason": {"$ne": operators}}
    return collection("callbacks").find_one_and_update(others, anew, return_document=after)


def _on_again() -> dict[str, Any]:
    return {"state": CallbackState.ACTIVE.value, **_FRESH}
