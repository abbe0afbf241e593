"""Applies inbound WhatsApp messages and marketing opt-outs."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from domain.states import Channel
from notifyproject.db.collections import collection
from notifyproject.platform import encryption
from providers.registry import whatsapp
from providers.whatsapp.webhooks import MarketingPreference
from recipients import service_windows
from recipients.models import SuppressionReason
from recipients.suppressions import lift, suppress

log = structlog.get_logger(__name__)
EVENT_RETENTION = timedelta(days=30)
"""Time for which applied opt-outs are remembered: providers repeat events for days."""


def apply_inbound(raw: bytes, *, provider: str, now: datetime) -> None:
    """Record service windows and opt-outs from a WhatsApp webhook. Raises ValueError."""
    number = whatsapp()
    messages, preferences = number.parse_inbound(raw), number.parse_opt_outs(raw)
    service_windows.record_inbound([(one.phone, one.at) for one in messages], now=now)
    apply_opt_outs(preferences, provider=provider, now=now)


def apply_opt_outs(
    preferences: Sequence[MarketingPreference], *, provider: str, now: datetime
) -> int:
    """Apply recipients' WhatsApp marketing preferences. Return how many were new. Idempotent."""
    # Each is applied once: a repeated event does not bring back a preference that was changed
    # since. An opt-in lifts only the recipient's own opt-out. An opt-out that arrives after a newer
    # opt-in still applies, which errs on the safe side.
    keys = {_event_keys(preference, provider): preference for preference in preferences}
    every = sorted(one for some in keys for one in some)
    found = collection("provider_events").find({"_id": {"$in": every}}, {"_id": 1})
    seen = {document["_id"] for document in found}
    events = {some[0]: one for some, one in keys.items() if seen.isdisjoint(some)}
    for key, preference in sorted(events.items(), key=lambda event: event[1].at):
        _apply_opt_out(preference, provider=provider, at=min(preference.at, now))
        collection("provider_events").update_one(
            {"_id": key}, {"$setOnInsert": {"expires_at": now + EVENT_RETENTION}}, upsert=True
        )
    if events:
        log.info("opt_outs_applied", provider=provider, count=len(events))
    return len(events)


def _apply_opt_out(preference: MarketingPreference, *, provider: str, at: datetime) -> None:
    channel, reason = Channel.WHATSAPP.value, SuppressionReason.UNSUBSCRIBED
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


def _event_keys(preference: MarketingPreference, provider: str) -> tuple[str, ...]:
    """Return the keys that identify a repeated event. They don't reveal the phone number.

    New events have the first. The last is the unkeyed one of older versions.
    """
    identity = f"{preference.phone}:{preference.is_wanted}:{preference.at.isoformat()}".encode()
    keyed = encryption.keyed_digests(identity, associated_data=f"{provider} wish")
    digests = (*keyed, hashlib.sha256(identity).hexdigest())
    return tuple(f"{provider}:wish:{digest}" for digest in digests)
