"""Suppressions: one document for each reason, and the soft bounces that lead to one.

Lifting one reason leaves the others; of all that stand, the strictest holds.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page

from .addresses import ADDRESS_CHANNELS, address_digest, address_key
from .models import SuppressionReason

MAX_SOFT_BOUNCES = 3
"""So many in a row, and the address is not written to any more."""
SOFT_BOUNCE_TTL = timedelta(days=30)
"""A strike that no other follows for so long is forgotten."""


def record_soft_bounce(*, channel: str, address: str, event: str, now: datetime) -> int:
    """Count one more against an address; return how many there are now. Raises PyMongoError.

    ``event`` names what counts: told twice, or by two at once, it counts once.
    """
    stored = collection("suspicions").find_one_and_update(
        {"_id": address_key(channel, address)},
        {"$addToSet": {"events": event}, "$set": {"expires_at": now + SOFT_BOUNCE_TTL}},
        upsert=True,
        return_document=ReturnDocument.AFTER,
    )
    return len(stored["events"]) if stored is not None else 1


def record_bounce(
    *,
    channel: str,
    address: str,
    reason: SuppressionReason,
    marketing_only: bool,
    source: str,
    soft_bounce: str | None,
    now: datetime,
) -> None:
    """Suppress an address or, for a soft bounce, count it and suppress at MAX_SOFT_BOUNCES.

    ``soft_bounce`` is the event ID of a soft bounce, None for any other reason. Raises
    PyMongoError.
    """
    if soft_bounce is not None:
        count = record_soft_bounce(channel=channel, address=address, event=soft_bounce, now=now)
        if count < MAX_SOFT_BOUNCES:
            return
    suppress(
        channel=channel,
        address=address,
        reason=reason,
        source=source,
        marketing_only=marketing_only,
        now=now,
    )


def clear_soft_bounces(*, channel: str, address: str) -> None:
    """Forget what was counted: something has reached the person. Raises PyMongoError."""
    collection("suspicions").delete_one({"_id": address_key(channel, address)})


Document = Mapping[str, Any]
Expression = Any
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
RECIPIENT_REASONS = frozenset({SuppressionReason.UNSUBSCRIBED, SuppressionReason.COMPLAINT})
"""What the person wants. Nobody lifts it by the way: whoever does names it."""


def suppression_key(channel: str, address: str) -> str:
    """Return what all the reasons why an address is held back have in common."""
    return f"{channel}:{address_digest(channel, address)}"


def suppression_id(channel: str, address: str, reason: SuppressionReason) -> str:
    """Return the id of one reason why an address is held back."""
    return f"{suppression_key(channel, address)}:{reason.value}"


def suppress(
    *,
    channel: str,
    address: str,
    reason: SuppressionReason,
    source: str,
    marketing_only: bool,
    now: datetime,
    expires_at: datetime | None = None,
) -> Document:
    """Send nothing more, or no marketing, to an address, and return what stands for this reason.

    Twice for the same reason, the stricter stays: everything before marketing, then the later end.
    Raises PyMongoError; may be repeated.
    """
    values: dict[str, Any] = {
        "source": source,
        "marketing_only": marketing_only,
        "expires_at": expires_at,
        "created_at": now,
        "address": address.lower(),
    }
    match = {"_id": suppression_id(channel, address, reason)}
    identity = {
        "key": suppression_key(channel, address),
        "channel": channel,
        "reason": reason.value,
    }
    change = [*_keep_stricter(values, now), {"$set": identity}]
    try:
        return _upsert(match, change)
    except DuplicateKeyError:
        # Somebody else has just added it.
        return _upsert(match, change)


def lift(
    *,
    channel: str,
    address: str,
    reasons: Iterable[SuppressionReason],
    before: datetime | None = None,
    marketing_only: bool = False,
) -> tuple[SuppressionReason, ...]:
    """Hold an address back for these reasons no longer; return those that there were.

    ``before``: only what is not newer; ``marketing_only``: only what holds back nothing else. Who
    lifted it, and when, is the caller's to log. What was not sent stays unsent. Raises
    PyMongoError; may be repeated.
    """
    guard: dict[str, Any] = {"marketing_only": True} if marketing_only else {}
    if before is not None:
        guard["created_at"] = {"$lte": before}
    lifted = []
    for reason in reasons:
        match = {"_id": suppression_id(channel, address, reason), **guard}
        if collection("suppressions").delete_one(match).deleted_count:
            lifted.append(reason)
    if SuppressionReason.HARD_BOUNCE in lifted:
        clear_soft_bounces(channel=channel, address=address)
    return tuple(lifted)


def lift_one(suppression_id: str) -> bool:
    """Lift one suppression by its id; return False if there is none. Raises PyMongoError."""
    found = collection("suppressions").find_one_and_delete({"_id": suppression_id})
    if found is None:
        return False
    if found["reason"] == SuppressionReason.HARD_BOUNCE and found.get("address"):
        clear_soft_bounces(channel=found["channel"], address=found["address"])
    return True


def list_for_address(*, channel: str, address: str) -> list[Document]:
    """Return every reason why an address is held back, the newest first. Raises PyMongoError."""
    found = collection("suppressions").find({"key": suppression_key(channel, address)})
    return sorted(found, key=lambda one: (one["created_at"], one["_id"]), reverse=True)


def page(
    *,
    channel: str | None = None,
    reason: SuppressionReason | None = None,
    limit: int,
    cursor: Cursor | None = None,
) -> Page:
    """Return up to ``limit`` suppressions, newest first. Raises PyMongoError."""
    match: dict[str, Any] = {}
    if channel is not None or reason is not None:
        # Both are named, as all there are if need be: so one index serves each of them alone.
        match["channel"] = channel if channel is not None else {"$in": list(ADDRESS_CHANNELS)}
        known = [one.value for one in SuppressionReason]
        match["reason"] = reason.value if reason is not None else {"$in": known}
    return paging.page("suppressions", match, order=NEWEST_FIRST, limit=limit, cursor=cursor)


def anonymise(addresses: Iterable[tuple[str, str]]) -> int:
    """Forget these (channel, address) pairs, and go on holding them back; return how many.

    What is kept of an address is its digest: it is recognised if somebody gives it again. Raises
    PyMongoError; may be repeated.
    """
    keys = sorted({suppression_key(*pair) for pair in addresses})
    if not keys:
        return 0
    known = {"key": {"$in": keys}, "address": {"$exists": True}}
    result = collection("suppressions").update_many(known, {"$unset": {"address": ""}})
    return result.modified_count


def _upsert(match: Mapping[str, Any], change: list[dict[str, Any]]) -> Document:
    stored: Any = collection("suppressions").find_one_and_update(
        match, change, upsert=True, return_document=ReturnDocument.AFTER
    )
    return stored


def _keep_stricter(values: Mapping[str, Any], now: datetime) -> list[dict[str, Any]]:
    """Return the pipeline that puts what is given in place of what is less strict, or over.

    One that is over holds nothing back any more, though MongoDB may not have removed it yet.
    """
    later = now + timedelta(milliseconds=1)
    is_expired = {"$lte": [{"$ifNull": ["$expires_at", later]}, now]}
    is_new = {"$or": [{"$eq": [{"$type": "$created_at"}, "missing"]}, is_expired]}
    is_stricter = {"$and": ["$marketing_only", not values["marketing_only"]]}
    is_equal = {"$eq": ["$marketing_only", values["marketing_only"]]}
    is_longer: Expression = {"$ne": [{"$ifNull": ["$expires_at", None]}, None]}
    if values["expires_at"] is not None:
        is_longer = {"$and": [is_longer, {"$lt": ["$expires_at", values["expires_at"]]}]}
    replaces = {"$or": ["$__is_new", is_stricter, {"$and": [is_equal, is_longer]}]}

    def chosen(when: str, name: str) -> Expression:
        value = values[name]
        new_value = {"$literal": value} if value is not None else "$$REMOVE"
        return {"$cond": [when, new_value, f"${name}"]}

    return [
        {"$set": {"__is_new": is_new}},
        {"$set": {"__wins": replaces}},
        {
            "$set": {
                **{
                    name: chosen("$__wins", name)
                    for name in ("source", "marketing_only", "expires_at")
                },
                # Whom it is about stays forgotten once it is.
                **{name: chosen("$__is_new", name) for name in ("created_at", "address")},
            }
        },
        {"$unset": ["__is_new", "__wins"]},
    ]
