"""Applying what a provider sent once more, from the log of its calls."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from bson import ObjectId

from notifyproject.db.collections import collection
from providers.contract import Receipt
from providers.registry import whatsapp
from providers.sendgrid import webhooks
from providers.whatsapp import webhooks as whatsapp_webhooks
from recipients import service_windows

from . import receipts, unsubscribing
from .receipts import Applied

READERS: Mapping[str, Callable[[bytes], Sequence[Receipt]]] = {
    "sendgrid": webhooks.parse_receipts,
    "sandbox-sendgrid": webhooks.parse_receipts,
    "whatsapp": whatsapp_webhooks.parse_receipts,
    "sandbox-whatsapp": whatsapp_webhooks.parse_receipts,
}
"""What reads the stored bodies, by the provider that sent them."""


class Unreadable(ValueError):
    """What is stored is not what this provider sends, or nobody here reads it any more."""


def replay(log_id: ObjectId, *, now: datetime) -> Applied:
    """Apply the events of a logged call again; what was applied before is passed over.

    It helps where a call was logged and not finished, or came before its message was known. The
    signature was verified when it came. Raises LookupError if there is no such entry, Unreadable,
    PyMongoError; may be repeated.
    """
    entry = collection("webhook_log").find_one({"_id": log_id})
    if entry is None:
        raise LookupError("no such call")
    reader = READERS.get(entry["provider"])
    if reader is None:
        raise Unreadable(f"Nobody reads what {entry['provider']} sent.")
    raw = entry["body"].encode()
    try:
        events = reader(raw)
        if reader is whatsapp_webhooks.parse_receipts:
            _heed_people(raw, provider=entry["provider"], now=now)
    except ValueError as error:
        raise Unreadable("What is stored cannot be read.") from error
    applied = receipts.apply(events, provider=entry["provider"], now=now)
    collection("webhook_log").update_one(
        {"_id": log_id},
        {
            "$set": {"unmatched_count": applied.unmatched, "processed_at": now},
            "$inc": {"applied_count": applied.changed},
        },
    )
    return applied


def _heed_people(raw: bytes, *, provider: str, now: datetime) -> None:
    """Note who had written, and what they wished; raises ValueError."""
    number = whatsapp()
    written, wishes = number.parse_inbound(raw), number.parse_wishes(raw)
    service_windows.record_inbound([(one.phone, one.at) for one in written], now=now)
    unsubscribing.heed(wishes, provider=provider, now=now)
