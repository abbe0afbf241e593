"""Records, processes, and replays verified provider webhooks."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bson import ObjectId

from domain.channels import Channel, address_digest
from notifications.documents.records import WEBHOOK_LOG, WebhookLogDocument
from notifications.store.references import AttemptReference
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from providers.accounts import spec_of
from providers.contract import Receipt
from providers.inbound import Inbound, InboundMessage, MarketingPreference
from providers.registry import webhook_provider
from recipients.whatsapp_identities import is_number

from .inbound import apply_inbound
from .processor import Applied, apply_receipts

LOG_RETENTION = timedelta(days=30)


def process_webhook(
    receipts: Sequence[Receipt],
    *,
    provider: str,
    body: str,
    now: datetime,
    unreadable_count: int = 0,
    inbound: Inbound | None = None,
) -> Applied:
    """Store a verified webhook and apply its receipts. Idempotent, as providers may repeat it.

    ``inbound`` has what a webhook contains besides them.
    """
    channel = spec_of(provider).channel
    entry: WebhookLogDocument = {
        "_id": ObjectId(),
        "provider": provider,
        "received_at": now,
        "body": body,
        "search_keys": [
            *search_keys(receipts, channel),
            *(_people_keys(inbound, channel) if inbound else ()),
        ],
        "event_count": len(receipts) + (_other_count(inbound) if inbound else 0),
        "applied_count": 0,
        "unmatched_count": 0,
        "unreadable_count": unreadable_count,
        "purge_at": now + LOG_RETENTION,
    }
    WEBHOOK_LOG().insert_one(entry)
    crash_points.reach(Boundary.WEBHOOK_LOGGED)
    return _apply_logged(entry["_id"], receipts, inbound, provider=provider, now=now)


def _other_count(inbound: Inbound) -> int:
    return len(inbound.messages) + len(inbound.preferences) + len(inbound.changes)


def _people_keys(inbound: Inbound, channel: Channel) -> list[str]:
    people: list[InboundMessage | MarketingPreference] = [*inbound.messages, *inbound.preferences]
    told = [name for person in people for name in (person.user_id, person.phone) if name]
    changed = [name for change in inbound.changes for name in (change.previous, change.current)]
    return [
        address_digest(channel.value, name) if is_number(name) else name
        for name in dict.fromkeys((*told, *changed))
    ]


def search_keys(receipts: Sequence[Receipt], channel: Channel) -> list[str]:
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
            keys[address_digest(channel.value, receipt.address)] = None
    return list(keys)


def find_logged(keys: Sequence[str], *, cap: int) -> list[ObjectId]:
    """Return the IDs of the newest webhooks with one of these keys."""
    found = WEBHOOK_LOG().find({"search_keys": {"$in": list(keys)}}, {"_id": 1})
    return [row["_id"] for row in found.sort("_id", -1).limit(cap)]


def _apply_logged(
    log_id: ObjectId,
    receipts: Sequence[Receipt],
    inbound: Inbound | None,
    *,
    provider: str,
    now: datetime,
) -> Applied:
    applied = apply_receipts(receipts, provider=provider, now=now)
    unknown = apply_inbound(inbound, provider=provider, now=now) if inbound else 0
    WEBHOOK_LOG().update_one(
        {"_id": log_id},
        {
            "$set": {"unmatched_count": applied.unmatched + unknown, "processed_at": now},
            "$inc": {"applied_count": applied.changed},
        },
    )
    return applied


class UnreadableWebhookError(ValueError):
    """A stored webhook can't be parsed, or its provider has no parser."""


def replay(log_id: ObjectId, *, now: datetime) -> Applied:
    """Apply a stored webhook again. Raises LookupError or UnreadableWebhookError."""
    # Its signature was verified on arrival.
    entry = WEBHOOK_LOG().find_one({"_id": log_id})
    if entry is None:
        raise LookupError("no such webhook")
    name = entry["provider"]
    try:
        parser = webhook_provider(name)
    except LookupError as error:
        raise UnreadableWebhookError(f"No parser for webhooks of {name}.") from error
    try:
        found = parser.parse_logged(entry["body"].encode())
    except ValueError as error:
        raise UnreadableWebhookError("The stored webhook can't be parsed.") from error
    return _apply_logged(entry["_id"], found.receipts, found.inbound, provider=name, now=now)
