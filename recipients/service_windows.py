"""Who has written to us on WhatsApp within a day, and so may be sent more than approved words."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from pymongo.errors import BulkWriteError

from notifyproject.db.collections import Document, collection, is_duplicate

from .addresses import normalize_phone

WINDOW = timedelta(hours=24)
"""From a person's last message on; Meta's rule."""
MARGIN = timedelta(minutes=1)
"""A window that closes within this time is taken for closed: the message has a way to go."""
RETENTION = timedelta(days=30)
"""For how long it is known when somebody last wrote."""


def record_inbound(messages: Iterable[tuple[str, datetime]], *, now: datetime) -> None:
    """Note when people (E.164) wrote to us; an older message never moves the time back.

    One write for any number of people, three if some are new. Raises PyMongoError; may be repeated.
    """
    latest: dict[str, datetime] = {}
    for phone, written_at in messages:
        key = normalize_phone(phone)
        # The provider's clock may be ahead of ours; a window is not longer for that.
        at = min(written_at, now)
        latest[key] = max(latest.get(key, at), at)
    if latest and _advance(latest) < len(latest):
        _add_missing(latest)
        # Somebody else may have added one with an older message in the meantime.
        _advance(latest)


def open_windows(phones: Iterable[str], *, now: datetime) -> frozenset[str]:
    """Return those among these numbers whose owners wrote within a day: one read for all.

    Raises PyMongoError.
    """
    keys = {phone: normalize_phone(phone) for phone in phones}
    if not keys:
        return frozenset()
    recent = {"$gt": now - WINDOW + MARGIN}
    found = collection("conversations").find(
        {"_id": {"$in": sorted({*keys.values()})}, "last_inbound_at": recent}, {"_id": 1}
    )
    is_open = {document["_id"] for document in found}
    return frozenset(phone for phone, key in keys.items() if key in is_open)


def delete(phones: Iterable[str]) -> None:
    """Forget when these people wrote to us. Raises PyMongoError; may be repeated."""
    keys = sorted({normalize_phone(phone) for phone in phones})
    if keys:
        collection("conversations").delete_many({"_id": {"$in": keys}})


def last_inbound(phone: str) -> datetime | None:
    """Return when the owner of a number last wrote to us, as far as it is known still."""
    found = collection("conversations").find_one({"_id": normalize_phone(phone)})
    return found["last_inbound_at"] if found else None


def _advance(latest: Mapping[str, datetime]) -> int:
    """Move the times of known conversations on; return how many are known."""
    phones = sorted(latest)
    times = [latest[phone] for phone in phones]
    index = {"$indexOfArray": [{"$literal": phones}, "$_id"]}
    own_time = {"$arrayElemAt": [{"$literal": times}, index]}
    later = {"$max": ["$last_inbound_at", own_time]}
    retention = RETENTION // timedelta(milliseconds=1)
    pipeline: list[Document] = [
        {"$set": {"last_inbound_at": later}},
        {"$set": {"expires_at": {"$add": ["$last_inbound_at", retention]}}},
    ]
    result = collection("conversations").update_many({"_id": {"$in": phones}}, pipeline)
    return result.matched_count


def _add_missing(latest: Mapping[str, datetime]) -> None:
    documents = [
        {"_id": phone, "last_inbound_at": at, "expires_at": at + RETENTION}
        for phone, at in latest.items()
    ]
    try:
        collection("conversations").insert_many(documents, ordered=False)
    except BulkWriteError as error:
        if not is_duplicate(error):
            raise
