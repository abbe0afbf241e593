"""Suppressions, one per address and reason. The strictest applies. Writes are idempotent."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from domain.channels import (
    ADDRESS_CHANNELS,
    IDENTITY_CHANNELS,
    Channel,
    address_digest,
    address_key,
)
from domain.states import Category
from notifyproject.db import paging
from notifyproject.db.paging import Cursor, Page
from notifyproject.platform import encryption

from . import whatsapp_identities
from .documents import SOFT_BOUNCES, SUPPRESSIONS, SuppressionDocument
from .models import SuppressionReason

MAX_SOFT_BOUNCES = 3
SOFT_BOUNCE_TTL = timedelta(days=30)  # How long a soft bounce counts if no other follows
Expression = Any
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
RECIPIENT_REASONS = frozenset({SuppressionReason.UNSUBSCRIBED, SuppressionReason.COMPLAINT})
"""The recipient's own opt-outs. Only a request that names the reason lifts them."""
OPERATOR_REASONS = frozenset(SuppressionReason) - RECIPIENT_REASONS  # Staff can lift them to resend
PERSONAL_REASONS = frozenset(SuppressionReason) - {SuppressionReason.HARD_BOUNCE}
"""They concern a person, and stand at each form of the number. A bounce concerns one form."""


def record_soft_bounce(
    *, channel: str, address: str, event: str, now: datetime, weight: int = 1
) -> int:
    """Count a soft bounce, once per ``event``. Return how many in a row. Raises PyMongoError.

    ``weight``: as how many it counts.
    """
    events = [event, *(f"{event}+{more}" for more in range(1, weight))]
    stored = SOFT_BOUNCES().find_one_and_update(
        {"_id": address_key(channel, address)},
        {"$addToSet": {"events": {"$each": events}}, "$set": {"expires_at": now + SOFT_BOUNCE_TTL}},
        upsert=True,
        return_document=ReturnDocument.AFTER,
    )
    return len(stored["events"]) if stored is not None else weight


def clear_soft_bounces(*, channel: str, address: str) -> None:
    """Reset the soft bounces of an address after a delivery. Raises PyMongoError."""
    SOFT_BOUNCES().delete_one({"_id": address_key(channel, address)})


def with_soft_bounces(keys: Collection[str]) -> set[str]:
    """Return which of these addresses have soft bounces, by address key. Raises PyMongoError."""
    if not keys:
        return set()
    found = SOFT_BOUNCES().find({"_id": {"$in": sorted(set(keys))}}, {"_id": 1})
    return {document["_id"] for document in found}


def record_bounce(
    *,
    channel: str,
    address: str,
    reason: SuppressionReason,
    soft_bounces: int | None,
    event: str,
    source: str,
    now: datetime,
) -> None:
    """Suppress an address for a hard bounce, or for MAX_SOFT_BOUNCES soft bounces in a row.

    ``soft_bounces``: as how many it counts, None for any other reason. ``event`` identifies it, see
    :func:`record_soft_bounce`.
    """
    if soft_bounces is not None:
        count = record_soft_bounce(
            channel=channel, address=address, event=event, now=now, weight=soft_bounces
        )
        if count < MAX_SOFT_BOUNCES:
            return
    suppress(
        channel=channel,
        address=address,
        reason=reason,
        source=source,
        marketing_only=is_marketing_only(channel, reason),
        now=now,
    )


def is_marketing_only(channel: str, reason: SuppressionReason) -> bool:
    """Return whether what a provider reports suppresses marketing alone: most opt-outs."""
    is_opt_out = reason is SuppressionReason.UNSUBSCRIBED
    return is_opt_out and not Channel(channel).spec.opt_out_is_total


def suppression_keys(channel: str, address: str) -> list[str]:
    """Return the keys that suppressions of an address may have. New ones have the first.

    There is one for each of ``FIELD_ENCRYPTION_KEYS``.
    """
    digests = encryption.keyed_digests(
        address_digest(channel, address).encode(), associated_data=f"suppression {channel}"
    )
    return [f"{channel}:{digest}" for digest in digests]


def suppression_id(channel: str, address: str, reason: SuppressionReason) -> str:
    """Return the ID of a new suppression of an address for one reason."""
    return f"{suppression_keys(channel, address)[0]}:{reason.value}"


def _possible_ids(channel: str, address: str, reason: SuppressionReason) -> list[str]:
    return [f"{key}:{reason.value}" for key in suppression_keys(channel, address)]


def suppress(
    *,
    channel: str,
    address: str,
    reason: SuppressionReason,
    source: str,
    marketing_only: bool,
    now: datetime,
    expires_at: datetime | None = None,
) -> SuppressionDocument:
    """Suppress an address, for marketing only or for everything, and return the suppression.

    For PERSONAL_REASONS, the other known forms of a WhatsApp number are suppressed, too.
    """
    # Of two suppressions for the same reason, the wider or else the longer one stays.
    values: dict[str, Any] = {
        "source": source,
        "marketing_only": marketing_only,
        "expires_at": expires_at,
        "created_at": now,
    }
    stored = _suppress(channel, address, reason, values)
    for other in _other_identifiers(channel, address, [reason]):
        if whatsapp_identities.is_number(other):
            _suppress(channel, other, reason, values)
    return stored


def _suppress(
    channel: str, address: str, reason: SuppressionReason, values: Mapping[str, Any]
) -> SuppressionDocument:
    ids = _possible_ids(channel, address, reason)
    stored = SUPPRESSIONS().find_one({"_id": {"$in": ids}}, {"_id": 1})
    match = {"_id": stored["_id"] if stored else ids[0]}
    key = match["_id"].removesuffix(f":{reason.value}")
    identity = {"key": key, "channel": channel, "reason": reason.value}
    # A user ID has capital letters.
    own = {**values, "address": address if channel in IDENTITY_CHANNELS else address.lower()}
    change: list[dict[str, Any]] = [*_keep_stricter(own, values["created_at"]), {"$set": identity}]
    if reason in RECIPIENT_REASONS:
        # The last wish counts: an opt-in that is older, and arrives later, doesn't lift it.
        change.append({"$set": {"created_at": {"$max": ["$created_at", values["created_at"]]}}})
    try:
        return _upsert(match, change)
    except DuplicateKeyError:
        # A concurrent call inserted it.
        return _upsert(match, change)


def _other_identifiers(
    channel: str, address: str, reasons: Iterable[SuppressionReason]
) -> tuple[str, ...]:
    """Return what else a provider calls the person, if one of the reasons concerns a person."""
    if channel not in IDENTITY_CHANNELS or PERSONAL_REASONS.isdisjoint(reasons):
        return ()
    return whatsapp_identities.identifiers_of([address])[address][1:]


def lift(
    *,
    channel: str,
    address: str,
    reasons: Iterable[SuppressionReason],
    before: datetime | None = None,
    marketing_only: bool = False,
) -> tuple[SuppressionReason, ...]:
    """Lift the suppressions of an address for these reasons. Return the reasons lifted.

    Those for PERSONAL_REASONS are lifted at all identifiers of a WhatsApp number's person.
    ``before`` selects suppressions created by then, and ``marketing_only`` those of marketing
    alone. The caller writes the audit log. Suppressed deliveries stay suppressed. Idempotent.
    Raises PyMongoError.
    """
    guard: dict[str, Any] = {"marketing_only": True} if marketing_only else {}
    if before is not None:
        guard["created_at"] = {"$lte": before}
    lifted = []
    wanted = list(reasons)
    others = _other_identifiers(channel, address, wanted)
    for reason in wanted:
        every = (address, *others) if reason in PERSONAL_REASONS else (address,)
        ids = [possible for name in every for possible in _possible_ids(channel, name, reason)]
        match = {"_id": {"$in": ids}, **guard}
        if SUPPRESSIONS().delete_many(match).deleted_count:
            lifted.append(reason)
    if SuppressionReason.HARD_BOUNCE in lifted:
        clear_soft_bounces(channel=channel, address=address)
    return tuple(lifted)


def lift_one(suppression_id: str) -> bool:
    """Lift the suppression with this ID, as :func:`lift` does. Return False if there is none.

    Raises PyMongoError.
    """
    found = SUPPRESSIONS().find_one({"_id": suppression_id})
    if found is None:
        return False
    if found.get("address"):
        reason = SuppressionReason(found["reason"])
        lift(channel=found["channel"], address=found["address"], reasons=[reason])
    # One whose key isn't of a current form, or without an address.
    SUPPRESSIONS().delete_one({"_id": suppression_id})
    return True


def remove_all(*, channel: str, addresses: Iterable[str]) -> None:
    """Delete the suppressions of exactly these addresses. Idempotent. Raises PyMongoError."""
    if keys := [key for address in addresses for key in suppression_keys(channel, address)]:
        SUPPRESSIONS().delete_many({"key": {"$in": keys}})


def find_by_address(*, channel: str, address: str) -> list[SuppressionDocument]:
    """Return an address's suppressions, expired ones too, newest first. Raises PyMongoError."""
    keys = suppression_keys(channel, address)
    found = SUPPRESSIONS().find({"key": {"$in": keys}})
    return sorted(
        found, key=lambda suppression: (suppression["created_at"], suppression["_id"]), reverse=True
    )


def is_active(suppression: SuppressionDocument, *, now: datetime) -> bool:
    """Return whether a stored suppression hasn't expired. MongoDB removes expired ones later."""
    return suppression.get("expires_at") is None or suppression["expires_at"] > now


def is_category_blocked(category: str, *, marketing_only: bool) -> bool:
    """Return whether a suppression with this scope blocks a category."""
    return not marketing_only or category == Category.MARKETING


def page(
    *,
    channel: str | None = None,
    reason: SuppressionReason | None = None,
    limit: int,
    cursor: Cursor | None = None,
) -> Page[SuppressionDocument]:
    """Return up to ``limit`` suppressions, newest first. Raises PyMongoError."""
    match: dict[str, Any] = {}
    if channel is not None or reason is not None:
        # Both fields are always filtered, so that one index serves each filter alone.
        match["channel"] = channel if channel is not None else {"$in": list(ADDRESS_CHANNELS)}
        known = [known_reason.value for known_reason in SuppressionReason]
        match["reason"] = reason.value if reason is not None else {"$in": known}
    return paging.page(SUPPRESSIONS, match, order=NEWEST_FIRST, limit=limit, cursor=cursor)


def anonymize(addresses: Iterable[tuple[str, str]]) -> int:
    """Remove these (channel, address) pairs but keep them suppressed. Return how many changed."""
    # The digest remains, so that the address is recognized again. Idempotent.
    keys = sorted({key for pair in addresses for key in suppression_keys(*pair)})
    if not keys:
        return 0
    known = {"key": {"$in": keys}, "address": {"$exists": True}}
    return SUPPRESSIONS().update_many(known, {"$unset": {"address": ""}}).modified_count


def _upsert(match: Mapping[str, Any], change: list[dict[str, Any]]) -> SuppressionDocument:
    stored: Any = SUPPRESSIONS().find_one_and_update(
        match, change, upsert=True, return_document=ReturnDocument.AFTER
    )
    return stored


def _keep_stricter(values: Mapping[str, Any], now: datetime) -> list[dict[str, Any]]:
    """Return the pipeline that replaces a suppression if it is less strict or has expired."""
    # MongoDB may not have removed an expired one yet.
    later = now + timedelta(milliseconds=1)
    is_expired = {"$lte": [{"$ifNull": ["$expires_at", later]}, now]}
    is_new = {"$or": [{"$eq": [{"$type": "$created_at"}, "missing"]}, is_expired]}
    is_stricter = {"$and": ["$marketing_only", not values["marketing_only"]]}
    is_equal = {"$eq": ["$marketing_only", values["marketing_only"]]}
    is_longer: Expression = {"$ne": [{"$ifNull": ["$expires_at", None]}, None]}
    if values["expires_at"] is not None:
        is_longer = {"$and": [is_longer, {"$lt": ["$expires_at", values["expires_at"]]}]}
    replaces = {"$or": ["$__is_new", is_stricter, {"$and": [is_equal, is_longer]}]}

    conditions = dict.fromkeys(("source", "marketing_only", "expires_at"), "$__wins")
    # An anonymized address stays anonymized.
    conditions |= dict.fromkeys(("created_at", "address"), "$__is_new")
    chosen: dict[str, Expression] = {}
    for name, condition in conditions.items():
        value = {"$literal": values[name]} if values[name] is not None else "$$REMOVE"
        chosen[name] = {"$cond": [condition, value, f"${name}"]}
    return [
        {"$set": {"__is_new": is_new}},
        {"$set": {"__wins": replaces}},
        {"$set": chosen},
        {"$unset": ["__is_new", "__wins"]},
    ]
