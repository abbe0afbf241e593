"""Records, processes, and replays verified provider webhooks."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from bson import ObjectId

from domain.addresses import address_digest
from domain.states import Channel
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from providers.contract import Receipt
from providers.sendgrid import webhooks
from providers.whatsapp import webhooks as whatsapp_webhooks

from ..store import AttemptReference
from .inbound import apply_inbound
from .processor import Applied, apply_receipts

LOG_RETENTION = timedelta(days=30)
PARSERS: Mapping[str, Callable[[bytes], Sequence[Receipt]]] = {
    "sendgrid": webhooks.parse_receipts,
    "sandbox-sendgrid": webhooks.parse_receipts,
    "whatsapp": whatsapp_webhooks.parse_receipts,
    "sandbox-whatsapp": whatsapp_webhooks.parse_receipts,
}


def process_webhook(
    receipts: Sequence[Receipt],
    *,
    provider: str,
    body: str,
    now: datetime,
    unreadable_count: int = 0,
) -> Applied:
    """Store a verified webhook and apply its receipts. Idempotent, as providers may repeat it."""
    entry = {
        "provider": provider,
        "received_at": now,
        "body": body,
        "search_keys": search_keys(receipts),
        "event_count": len(receipts),
        "applied_count": 0,
        "unmatched_count": 0,
        "unreadable_count": unreadable_count,
        "purge_at": now + LOG_RETENTION,
    }
    log_id = collection("webhook_log").insert_one(entry).inserted_id
    crash_points.reach(Boundary.WEBHOOK_LOGGED)
    return _apply_logged(log_id, receipts, provider=provider, now=now)


def search_keys(receipts: Sequence[Receipt]) -> list[str]:
    """Return the keys by which staff find a webhook: its messages, and digests of its addresses.

    A message is its notification's ID, or the provider's ID if the provider returned no reference.
    """
    keys: dict[str, None] = {}
    for receipt in receipts:
        reference = AttemptReference.parse(receipt.reference or "")
        if reference is not None:
            keys[str(reference.notification_id)] = None
        elif receipt.provider_id:
            keys[receipt.provider_id] = None
        if receipt.address:
            channel = Channel.EMAIL if "@" in receipt.address else Channel.WHATSAPP
            keys[address_digest(channel.value, receipt.address)] = None
    return list(keys)


def find_logged(keys: Sequence[str], *, cap: int) -> list[ObjectId]:
    """Return the IDs of the newest webhooks with one of these keys."""
    found = collection("webhook_log").find({"search_keys": {"$in": list(keys)}}, {"_id": 1})
    return [row["_id"] for row in found.sort("_id", -1).limit(cap)]


def _apply_logged(
    log_id: ObjectId, receipts: Sequence[Receipt], *, provider: str, now: datetime
) -> Applied:
    applied = apply_receipts(receipts, provider=provider, now=now)
    collection("webhook_log").update_one(
        {"_id": log_id},
        {
            "$set": {"unmatched_count": applied.unmatched, "processed_at": now},
            "$inc": {"applied_count": applied.changed},
        },
    )
    return applied


class UnreadableWebhookError(ValueError):
    """A stored webhook can't be parsed, or its provider has no parser."""


def replay(log_id: ObjectId, *, now: datetime) -> Applied:
    """Apply a stored webhook again. Raises LookupError or UnreadableWebhookError."""
    # Its signature was verified on arrival.
    entry = collection("webhook_log").find_one({"_id": log_id})
    if entry is None:
        raise LookupError("no such webhook")
    parse = PARSERS.get(entry["provider"])
    if parse is None:
        raise UnreadableWebhookError(f"No parser for webhooks of {entry['provider']}.")
    raw = entry["body"].encode()
    try:
        events = parse(raw)
        if parse is whatsapp_webhooks.parse_receipts:
            apply_inbound(raw, provider=entry["provider"], now=now)
    except ValueError as error:
        raise UnreadableWebhookError("The stored webhook can't be parsed.") from error
    return _apply_logged(log_id, events, provider=entry["provider"], now=now)
