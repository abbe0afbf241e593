"""Finds when a provider's newest receipts were applied, and how long they take at the moment."""

from collections.abc import Collection
from datetime import datetime, timedelta

from bson import ObjectId

from notifications.documents.notification import NOTIFICATIONS
from notifications.documents.records import PROVIDER_EVENTS
from providers.contract import ReceiptKind

from .processor import EVENT_RETENTION

LOOKED_AT = timedelta(minutes=1)
"""Receipts that were applied in this time count. Older ones say nothing about now."""
MAX_EVENTS = 500
"""Of each provider."""
FIRST_KINDS = [kind.value for kind in (ReceiptKind.QUEUED, ReceiptKind.SENT, ReceiptKind.DELIVERED)]
"""What a provider reports first. What a person does later says nothing."""


def newest_receipt_at(provider: str) -> datetime | None:
    """Return when the last receipt of a provider was applied. None: no longer known."""
    found = PROVIDER_EVENTS().find_one(
        {"provider": provider}, {"expires_at": 1}, sort=[("expires_at", -1)], hint="evt_provider"
    )
    return found["expires_at"] - EVENT_RETENTION if found else None


def shortest_lags(providers: Collection[str], *, now: datetime) -> dict[str, timedelta]:
    """Return how long the fastest of a provider's newest receipts took from its send.

    One that was fast shows that receipts aren't late: others may be about phones that are off. A
    provider without a new receipt isn't in the result. Raises PyMongoError.
    """
    applied: dict[tuple[str, ObjectId, str], datetime] = {}
    # One query each, since those of a busy provider would hide those of another.
    for provider in providers:
        events = PROVIDER_EVENTS().find(
            {
                "provider": provider,
                "expires_at": {"$gte": now + EVENT_RETENTION - LOOKED_AT},
                "kind": {"$in": FIRST_KINDS},
                "notification_id": {"$exists": True},
            },
            {"notification_id": 1, "channel": 1, "expires_at": 1},
            sort=[("expires_at", -1)],
            limit=MAX_EVENTS,
            hint="evt_provider",
        )
        for event in events:
            # The oldest counts, which comes last.
            key = (provider, event["notification_id"], event["channel"])
            applied[key] = event["expires_at"] - EVENT_RETENTION
    if not applied:
        return {}
    ids = list({key[1] for key in applied})
    lags: dict[str, timedelta] = {}
    for document in NOTIFICATIONS().find({"_id": {"$in": ids}}, {"delivery": 1}):
        for delivery in document["delivery"]:
            provider, sent_at = delivery.get("provider") or "", delivery.get("last_attempt_at")
            at = applied.get((provider, document["_id"], delivery["channel"]))
            # A repeat has a newer time than the attempt that the receipt may be about.
            if at is not None and sent_at is not None and delivery["attempt_count"] == 1:
                lags[provider] = min(lags.get(provider, at - sent_at), at - sent_at)
    return lags
