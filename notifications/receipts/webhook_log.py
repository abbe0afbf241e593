"""Records, processes, and replays verified provider webhooks."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from bson import ObjectId

from domain.channels import Channel, address_digest
from notifications.documents.records import WEBHOOK_LOG, WebhookLogDocument
from notifications.store.references import AttemptReference
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from providers.contract import Receipt
from providers.labels import channel_of
from providers.registry import whatsapp
from providers.sendgrid import webhooks
from providers.whatsapp.webhooks import InboundMessage, MarketingPreference, WebhookContents
from recipients.whatsapp_identities import is_number

from .inbound import apply_inbound
from .processor import Applied, apply_receipts

LOG_RETENTION = timedelta(days=30)
PARSERS: Mapping[str, Callable[[bytes], Sequence[Receipt]]] = {
    "sendgrid": webhooks.parse_receipts,
    "sandbox-sendgrid": webhooks.parse_receipts,
}
WHATSAPP = frozenset({"whatsapp", "sandbox-whatsapp"})
"""Names of a provider whose webhooks have messages and opt-outs, too."""


def process_webhook(
    receipts: Sequence[Receipt],
    *,
    provider: str,
    body: str,
    now: datetime,
    unreadable_count: int = 0,
    contents: WebhookContents | None = None,
) -> Applied:
    """Store a verified webhook and apply its receipts. Idempotent, as providers may repeat it.

    ``contents`` has what a webhook of WhatsApp contains besides them.
    """
    entry: WebhookLogDocument = {
        "_id": ObjectId(),
        "provider": provider,
        "received_at": now,
        "body": body,
        "search_keys": [
            *search_keys(receipts, channel_of(provider)),
            *(_people_keys(contents, channel_of(provider)) if contents else ()),
        ],
        "event_count": len(receipts) + (_other_count(contents) if contents else 0),
        "applied_count": 0,
        "unmatched_count": 0,
        "unreadable_count": unreadable_count,
        "purge_at": now + LOG_RETENTION,
    }
    WEBHOOK_LOG().insert_one(entry)
    crash_points.reach(Boundary.WEBHOOK_LOGGED)
    return _apply_logged(entry["_id"], receipts, contents, provider=provider, now=now)


def _other_count(contents: WebhookContents) -> int:
    return len(contents.messages) + len(contents.preferences) + len(contents.changes)


def _people_keys(contents: WebhookContents, channel: Channel) -> list[str]:
    people: list[InboundMessage | MarketingPreference] = [*contents.messages, *contents.preferences]
    told = [name for person in people for name in (person.user_id, person.phone) if name]
    changed = [name for change in contents.changes for name in (change.previous, change.current)]
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
    contents: WebhookContents | None,
    *,
    provider: str,
    now: datetime,
) -> Applied:
    applied = apply_receipts(receipts, provider=provider, now=now)
    unknown = apply_inbound(contents, provider=provider, now=now) if contents else 0
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
    provider, raw = entry["provider"], entry["body"].encode()
    if provider not in WHATSAPP and provider not in PARSERS:
        raise UnreadableWebhookError(f"No parser for webhooks of {provider}.")
    try:
        contents = whatsapp().parse_webhook(raw) if provider in WHATSAPP else None
        receipts = contents.receipts if contents else PARSERS[provider](raw)
    except ValueError as error:
        raise UnreadableWebhookError("The stored webhook can't be parsed.") from error
    return _apply_logged(entry["_id"], receipts, contents, provider=provider, now=now)
