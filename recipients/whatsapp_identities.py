"""Other identifiers by which WhatsApp reports a person: another form of the number, or a user ID.

A number that WhatsApp writes differently leads to WhatsApp's form, and a user ID to a number. All
identifiers that lead to one another are one person. ``whatsapp_learning`` stores them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from domain.addresses import fold_phone

from .documents import WHATSAPP_IDENTITIES

RETENTION = timedelta(days=365)
"""Time for which an identifier is remembered after it was last seen."""
MAX_STEPS = 5
"""From an identifier to the farthest of the same person, in reads. Two are usual."""


def is_number(identifier: str) -> bool:
    """Return whether an identifier is a number in E.164, and not a user ID."""
    return identifier.startswith("+")


def identifiers_of(identifiers: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return all identifiers of each person, by the given one.

    A user ID or number in E.164 comes first, normalized, and then what is nearest to it. One read
    for people without another identifier. Raises PyMongoError.
    """
    given = {identifier: fold_phone(identifier) for identifier in identifiers}
    links: dict[str, set[str]] = {}
    known: set[str] = set()
    unread = {*given.values()}
    for _ in range(MAX_STEPS):
        if not unread:
            break
        wanted = sorted(unread)
        match = {"$or": [{"_id": {"$in": wanted}}, {"phone": {"$in": wanted}}]}
        known |= unread
        for found in WHATSAPP_IDENTITIES().find(match, {"phone": 1}):
            links.setdefault(found["_id"], set()).add(found["phone"])
            links.setdefault(found["phone"], set()).add(found["_id"])
        unread = links.keys() - known
    return {identifier: _reach(key, links) for identifier, key in given.items()}


def numbers_of(identifiers: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the known numbers of each person, by the given identifier, the nearest first.

    A number is its own. A user ID may have none. Raises PyMongoError.
    """
    found = identifiers_of(identifiers)
    return {identifier: tuple(filter(is_number, every)) for identifier, every in found.items()}


def outdated(phones: Mapping[str, str], *, now: datetime) -> dict[str, tuple[str, str | None]]:
    """Return which numbers by identifier aren't known, or were last stored half a year ago.

    With each comes the number that is stored, if any. All are normalized. Raises PyMongoError.
    """
    normal = {fold_phone(identifier): fold_phone(phone) for identifier, phone in phones.items()}
    pairs = {identifier: phone for identifier, phone in normal.items() if identifier != phone}
    if not pairs:
        return {}
    found = [*WHATSAPP_IDENTITIES().find({"_id": {"$in": sorted(pairs)}})]
    stored = {link["_id"]: link["phone"] for link in found}
    fresh = {link["_id"] for link in found if link["expires_at"] > now + RETENTION / 2}
    return {
        identifier: (phone, stored.get(identifier))
        for identifier, phone in pairs.items()
        if identifier not in fresh or stored[identifier] != phone
    }


def remember(identifier: str, phone: str, *, expires_at: datetime) -> None:
    """Store that a normalized identifier leads to a number. Idempotent. Raises PyMongoError."""
    stored = {"phone": phone, "expires_at": expires_at}
    WHATSAPP_IDENTITIES().update_one({"_id": identifier}, {"$set": stored}, upsert=True)


def delete(identifiers: Iterable[str]) -> None:
    """Forget these identifiers, and those that lead to them. Idempotent. Raises PyMongoError."""
    if keys := sorted({fold_phone(identifier) for identifier in identifiers}):
        match = {"$or": [{"phone": {"$in": keys}}, {"_id": {"$in": keys}}]}
        WHATSAPP_IDENTITIES().delete_many(match)


def _reach(start: str, links: Mapping[str, set[str]]) -> tuple[str, ...]:
    found = [start]
    for identifier in found:
        found += sorted(links.get(identifier, set()).difference(found))
    return tuple(found)
