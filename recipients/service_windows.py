"""WhatsApp service windows, the 24 hours after a recipient's message that allow free-form text."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from pymongo.errors import BulkWriteError

from domain.addresses import fold_phone
from notifyproject.db.collections import is_duplicate
from notifyproject.db.trips import MAX_FEW, find_few

from .documents import SERVICE_WINDOWS, ServiceWindowDocument

WINDOW = timedelta(hours=24)
"""Length of a window from the recipient's last message, as set by Meta."""
MARGIN = timedelta(minutes=1)
"""A window that closes within this time counts as closed, because sending takes time."""
RETENTION = timedelta(days=30)  # How long the time of the last message is kept


def record_inbound(messages: Iterable[tuple[str, datetime]], *, now: datetime) -> None:
    """Record inbound messages as (E.164 number, time). An older message has no effect."""
    # One write for any number of recipients, three if some are new.
    latest: dict[str, datetime] = {}
    for phone, written_at in messages:
        key = fold_phone(phone)
        # The provider's clock may be ahead; that doesn't extend the window.
        at = min(written_at, now)
        latest[key] = max(latest.get(key, at), at)
    if latest and _advance(latest) < len(latest):
        _add_missing(latest)
        # A concurrent call may have inserted one with an older message.
        _advance(latest)


def open_windows(phones: Iterable[str], *, now: datetime) -> frozenset[str]:
    """Return the numbers with an open service window, in one read. Raises PyMongoError."""
    keys = {phone: fold_phone(phone) for phone in phones}
    if not keys:
        return frozenset()
    wanted = sorted({*keys.values()})
    match = {"_id": {"$in": wanted}}
    found: Iterable[ServiceWindowDocument] = (
        find_few(SERVICE_WINDOWS, match, limit=len(wanted))
        if len(wanted) <= MAX_FEW
        else SERVICE_WINDOWS().find(match)
    )
    earliest = now - WINDOW + MARGIN
    is_open = {window["_id"] for window in found if window["last_inbound_at"] > earliest}
    return frozenset(phone for phone, key in keys.items() if key in is_open)


def delete(phones: Iterable[str]) -> None:
    """Delete the windows of these numbers. Idempotent. Raises PyMongoError."""
    keys = sorted({fold_phone(phone) for phone in phones})
    if keys:
        SERVICE_WINDOWS().delete_many({"_id": {"$in": keys}})


def close(refused: Iterable[tuple[str, datetime]]) -> None:
    """Close the windows of numbers that WhatsApp refused a text to, unless they wrote since.

    Idempotent. Raises PyMongoError.
    """
    for phone, at in refused:
        SERVICE_WINDOWS().delete_one({"_id": fold_phone(phone), "last_inbound_at": {"$lte": at}})


def last_inbound(phone: str) -> datetime | None:
    """Return when a number last wrote on WhatsApp, or None if unknown or no longer stored."""
    found = SERVICE_WINDOWS().find_one({"_id": fold_phone(phone)})
    return found["last_inbound_at"] if found else None


def _advance(latest: Mapping[str, datetime]) -> int:
    phones = sorted(latest)
    times = [latest[phone] for phone in phones]
    index = {"$indexOfArray": [{"$literal": phones}, "$_id"]}
    own_time = {"$arrayElemAt": [{"$literal": times}, index]}
    later = {"$max": ["$last_inbound_at", own_time]}
    retention = RETENTION // timedelta(milliseconds=1)
    pipeline: list[dict[str, Any]] = [
        {"$set": {"last_inbound_at": later}},
        {"$set": {"expires_at": {"$add": ["$last_inbound_at", retention]}}},
    ]
    result = SERVICE_WINDOWS().update_many({"_id": {"$in": phones}}, pipeline)
    return result.matched_count


def _add_missing(latest: Mapping[str, datetime]) -> None:
    documents: list[ServiceWindowDocument] = [
        {"_id": phone, "last_inbound_at": at, "expires_at": at + RETENTION}
        for phone, at in latest.items()
    ]
    try:
        SERVICE_WINDOWS().insert_many(documents, ordered=False)
    except BulkWriteError as error:
        if not is_duplicate(error):
            raise
