"""Other identifiers by which WhatsApp reports a person: another form of the number, or a user ID.

A window or an opt-out that arrives under an unknown identifier is stored under it, and moved to the
number once a send, a status, or a message tells both.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from domain.addresses import normalize_phone
from domain.states import Channel
from notifyproject.db.collections import collection

from . import service_windows, suppressions
from .models import SuppressionReason

RETENTION = timedelta(days=365)
"""Time for which an identifier is remembered after it was last seen."""
_WHATSAPP = Channel.WHATSAPP.value


def resolve(identifiers: Iterable[str]) -> Mapping[str, str]:
    """Return the known numbers by identifier, which is a user ID or a number in E.164."""
    keys = {one: normalize_phone(one) for one in identifiers}
    if not keys:
        return {}
    wanted = sorted({*keys.values()})
    found = collection("whatsapp_identities").find({"_id": {"$in": wanted}}, {"phone": 1})
    phones = {document["_id"]: document["phone"] for document in found}
    return {one: phones[key] for one, key in keys.items() if key in phones}


def learn(phones: Mapping[str, str], *, now: datetime) -> int:
    """Remember numbers by identifier, and move what is stored under one. Return how many are new.

    Idempotent. Raises PyMongoError.
    """
    normal = {normalize_phone(one): normalize_phone(phone) for one, phone in phones.items()}
    pairs = {one: phone for one, phone in normal.items() if one != phone}
    if not pairs:
        return 0
    found = collection("whatsapp_identities").find({"_id": {"$in": sorted(pairs)}})
    known = {document["_id"]: document for document in found}
    fresh = now + RETENTION / 2
    changed = {
        one: phone
        for one, phone in pairs.items()
        if one not in known or known[one]["phone"] != phone or known[one]["expires_at"] < fresh
    }
    if not changed:
        return 0
    new = {one for one in changed if one not in known or known[one]["phone"] != changed[one]}
    for one, phone in sorted(changed.items()):
        if one in new:
            _move(one, phone, now)
        stored = {"phone": phone, "expires_at": now + RETENTION}
        collection("whatsapp_identities").update_one({"_id": one}, {"$set": stored}, upsert=True)
    return len(new)


def delete(phones: Iterable[str]) -> None:
    """Forget the identifiers of these numbers. Idempotent. Raises PyMongoError."""
    if keys := sorted({normalize_phone(phone) for phone in phones}):
        match = {"$or": [{"phone": {"$in": keys}}, {"_id": {"$in": keys}}]}
        collection("whatsapp_identities").delete_many(match)


def _move(identifier: str, phone: str, now: datetime) -> None:
    # The number gets it first: a crash in between leaves both, and the next call ends it.
    if (at := service_windows.last_inbound(identifier)) is not None:
        service_windows.record_inbound([(phone, at)], now=now)
        service_windows.delete([identifier])
    for one in suppressions.find_by_address(channel=_WHATSAPP, address=identifier):
        reason = SuppressionReason(one["reason"])
        if suppressions.is_active(one, now=now):
            suppressions.suppress(
                channel=_WHATSAPP,
                address=phone,
                reason=reason,
                source=one["source"],
                marketing_only=one["marketing_only"],
                now=one["created_at"],
                expires_at=one.get("expires_at"),
            )
        suppressions.lift(channel=_WHATSAPP, address=identifier, reasons=[reason])
