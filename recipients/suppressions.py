"""Adding and lifting suppressions."""

from datetime import datetime

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
    """Send nothing more, or no marketing, to an address. Suppressing twice keeps the stricter."""
    stricter = {} if marketing_only else {"marketing_only": False, "reason": reason.value}
    first = {
        "channel": channel,
        "address": address.lower(),
        "source": source,
        "created_at": now,
        **({"marketing_only": True, "reason": reason.value} if marketing_only else {}),
    }
    collection("suppressions").update_one(
        {"_id": suppression_key(channel, address)},
        {"$setOnInsert": first} | ({"$set": stricter} if stricter else {}),
        upsert=True,
    )
