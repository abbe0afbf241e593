"""Addresses that a provider has called undeliverable: a few times in a row are proof."""

from datetime import datetime, timedelta

from pymongo import ReturnDocument

from notifyproject.db.collections import collection

from .addresses import address_key

MAX_STRIKES = 3
"""So many in a row, and the address is not written to any more."""
MEMORY = timedelta(days=30)
"""A strike that no other follows for so long is forgotten."""


def strike(*, channel: str, address: str, event: str, now: datetime) -> int:
    """Count one more against an address; return how many there are now. Raises PyMongoError.

    ``event`` names what counts: told twice, or by two at once, it counts once.
    """
    stored = collection("suspicions").find_one_and_update(
        {"_id": address_key(channel, address)},
        {"$addToSet": {"events": event}, "$set": {"expires_at": now + MEMORY}},
        upsert=True,
        return_document=ReturnDocument.AFTER,
    )
    return len(stored["events"]) if stored is not None else 1


def clear(*, channel: str, address: str) -> None:
    """Forget what was counted: something has reached the person. Raises PyMongoError."""
    collection("suspicions").delete_one({"_id": address_key(channel, address)})
