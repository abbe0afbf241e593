"""Adding and lifting suppressions."""

from datetime import datetime
from typing import Any

from notifyproject.db.collections import collection

from .models import SuppressionReason
from .queries import suppression_key


def suppress(
    *,
    channel: str,
    address: str,
    reason: SuppressionReason,
    source: str,
    marketing_only: bool,
    now: datetime,
) -> None:
    """Send nothing more, or no marketing, to an address, until it is lifted.

    Suppressing twice keeps the stricter, and one that was for a time gets no end. Raises
    PyMongoError; may be repeated.
    """
    key = suppression_key(channel, address)
    # One that is over holds nothing back any more, though MongoDB may not have removed it yet.
    collection("suppressions").delete_one({"_id": key, "expires_at": {"$lte": now}})
    why = {"marketing_only": marketing_only, "reason": reason.value, "source": source}
    first = {"channel": channel, "address": address.lower(), "created_at": now}
    change: dict[str, Any] = {"$setOnInsert": first, "$unset": {"expires_at": ""}}
    if marketing_only:
        change["$setOnInsert"] = first | why
    else:
        change["$set"] = why
    collection("suppressions").update_one({"_id": key}, change, upsert=True)


def lift(*, channel: str, address: str) -> bool:
    """Send to an address again; return False if nothing held it back.

    Who lifted it, and when, is the caller's to log. What was not sent stays unsent. Raises
    PyMongoError; may be repeated.
    """
    key = suppression_key(channel, address)
    return collection("suppressions").delete_one({"_id": key}).deleted_count > 0
