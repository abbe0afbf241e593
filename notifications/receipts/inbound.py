"""Applies inbound WhatsApp messages and marketing opt-outs."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from domain.states import Channel
from notifyproject.db.collections import collection
from providers.registry import whatsapp
from providers.whatsapp.webhooks import MarketingPreference
from recipients import service_windows
from recipients.models import SuppressionReason
from recipients.suppressions import lift, suppress

log = structlog.get_logger(__name__)


def apply_inbound(raw: bytes, *, provider: str, now: datetime) -> None:
    """Note who had written, and what they wished; raises ValueError."""
    number = whatsapp()
    messages, preferences = number.parse_inbound(raw), number.parse_opt_outs(raw)
    service_windows.record_inbound([(one.phone, one.at) for one in messages], now=now)
    apply_opt_outs(preferences, provider=provider, now=now)


EVENT_RETENTION = timedelta(days=30)
"""How long a wish told by a provider is remembered: providers repeat events for days."""


def apply_opt_outs(
    preferences: Sequence[MarketingPreference], *, provider: str, now: datetime
) -> int:
    """Do what people have told WhatsApp about our marketing; return how many wishes were news.

    Each is heeded once, so that Meta may repeat what it has sent before: a wish that was taken back
    does not return. Who wants it again gets marketing, unless something else than their wish
    holds the number back. One that comes late, behind a newer one, errs on the side of silence.
    Raises PyMongoError; may be repeated.
    """
    events = {_event_key(preference, provider): preference for preference in preferences}
    seen = collection("provider_events").find({"_id": {"$in": sorted(events)}}, {"_id": 1})
    for document in seen:
        del events[document["_id"]]
    for key, preference in sorted(events.items(), key=lambda event: event[1].at):
        _apply_opt_out(preference, provider=provider, at=min(preference.at, now))
        collection("provider_events").update_one(
            {"_id": key}, {"$setOnInsert": {"expires_at": now + EVENT_RETENTION}}, upsert=True
        )
    if events:
        log.info("marketing_wishes_heeded", provider=provider, count=len(events))
    return len(events)


def _apply_opt_out(preference: MarketingPreference, *, provider: str, at: datetime) -> None:
    channel = Channel.WHATSAPP.value
    reason = SuppressionReason.UNSUBSCRIBED
    if preference.is_wanted:
        lift(
            channel=channel,
            address=preference.phone,
            reasons=[reason],
            before=at,
            marketing_only=True,
        )
        return
    suppress(
        channel=channel,
        address=preference.phone,
        reason=reason,
        source=provider,
        marketing_only=True,
        now=at,
    )


def _event_key(preference: MarketingPreference, provider: str) -> str:
    """Return what a wish is recognised by when it is told again; no number is in it."""
    identity = f"{preference.phone}:{preference.is_wanted}:{preference.at.isoformat()}"
    return f"{provider}:wish:{hashlib.sha256(identity.encode()).hexdigest()}"
