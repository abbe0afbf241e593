"""Applies inbound WhatsApp messages and marketing opt-outs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from notifications.documents.records import PROVIDER_EVENTS
from notifications.store.references import AttemptReference
from notifyproject.platform import encryption
from providers.accounts import spec_of
from providers.inbound import Identity, Inbound, MarketingPreference
from recipients import service_windows, whatsapp_identities, whatsapp_learning
from recipients.models import SuppressionReason
from recipients.suppressions import is_marketing_only, lift, suppress

from .. import queries

log = structlog.get_logger(__name__)
EVENT_RETENTION = timedelta(days=30)
"""Time for which applied opt-outs are remembered: providers repeat events for days."""


def apply_inbound(inbound: Inbound, *, provider: str, now: datetime) -> int:
    """Record identifiers, service windows, and opt-outs. Return how many people are unknown.

    What an unknown person wrote is stored under the user ID, until the number is known. Idempotent.
    """
    _learn(inbound.identities, now)
    changes = [(change.previous, change.current) for change in inbound.changes]
    whatsapp_learning.carry_over(changes, now=now)
    people = [message.phone or message.user_id or "" for message in inbound.messages]
    chosen = [preference.phone or preference.user_id or "" for preference in inbound.preferences]
    refused = [window.phone or window.user_id or "" for window in inbound.closed_windows]
    numbers = whatsapp_identities.numbers_of({*people, *chosen, *refused})
    service_windows.record_inbound(
        [
            (number, message.at)
            for person, message in zip(people, inbound.messages, strict=True)
            for number in numbers[person] or (person,)
        ],
        now=now,
    )
    service_windows.close(
        (number, closed.at)
        for person, closed in zip(refused, inbound.closed_windows, strict=True)
        for number in numbers[person] or (person,)
    )
    preferences = [
        replace(preference, phone=next(iter(numbers[person]), person))
        for person, preference in zip(chosen, inbound.preferences, strict=True)
    ]
    apply_opt_outs(preferences, provider=provider, now=now)
    unknown = {person for person in (*people, *chosen) if not numbers[person]}
    if unknown:
        log.warning("whatsapp_users_unknown", provider=provider, count=len(unknown))
    return len(unknown)


def _learn(identities: Sequence[Identity], now: datetime) -> None:
    """Remember the numbers of user IDs; of a status without a number, that of its message.

    Receipts of test messages say nothing about a person: the sandbox's user IDs are not people's.
    """
    references = {
        identity.user_id: identity.reference
        for identity in identities
        if identity.reference is not None
    }
    parsed = {user: AttemptReference.parse(text) for user, text in references.items()}
    ids = {
        user: reference.notification_id
        for user, reference in parsed.items()
        if reference is not None
    }
    known = queries.phones(sorted(set(ids.values()))) if ids else {}
    told = {
        user: known[notification_id]
        for user, notification_id in ids.items()
        if notification_id in known
    }
    reported = {
        identity.user_id: identity.phone
        for identity in identities
        if identity.phone is not None and (identity.user_id not in ids or identity.user_id in told)
    }
    whatsapp_learning.learn(told | reported, now=now)


def apply_opt_outs(
    preferences: Sequence[MarketingPreference], *, provider: str, now: datetime
) -> int:
    """Apply recipients' WhatsApp marketing preferences. Return how many were new. Idempotent."""
    # Each is applied once: a repeated event does not bring back a preference that was changed
    # since. An opt-in lifts only the recipient's own opt-out. An opt-out that arrives after a newer
    # opt-in still applies, which errs on the safe side.
    keys = {_event_keys(preference, provider): preference for preference in preferences}
    every = sorted(event_id for some in keys for event_id in some)
    found = PROVIDER_EVENTS().find({"_id": {"$in": every}}, {"_id": 1})
    seen = {document["_id"] for document in found}
    events = {some[0]: key for some, key in keys.items() if seen.isdisjoint(some)}
    for key, preference in sorted(events.items(), key=lambda event: event[1].at):
        _apply_opt_out(preference, provider=provider, at=min(preference.at, now))
        PROVIDER_EVENTS().update_one(
            {"_id": key}, {"$setOnInsert": {"expires_at": now + EVENT_RETENTION}}, upsert=True
        )
    if events:
        log.info("opt_outs_applied", provider=provider, count=len(events))
    return len(events)


def _apply_opt_out(preference: MarketingPreference, *, provider: str, at: datetime) -> None:
    channel, reason = spec_of(provider).channel.value, SuppressionReason.UNSUBSCRIBED
    address = preference.phone or preference.user_id or ""
    marketing_only = is_marketing_only(channel, reason)
    if preference.is_wanted:
        lift(
            channel=channel,
            address=address,
            reasons=[reason],
            before=at,
            marketing_only=marketing_only,
        )
        return
    suppress(
        channel=channel,
        address=address,
        reason=reason,
        source=provider,
        marketing_only=marketing_only,
        now=at,
    )


def _event_keys(preference: MarketingPreference, provider: str) -> tuple[str, ...]:
    """Return the keys that identify a repeated event. They don't reveal the phone number.

    New events have the first.
    """
    event = preference.event_id or preference.at.isoformat()
    identity = f"{preference.phone}:{preference.is_wanted}:{event}".encode()
    digests = encryption.keyed_digests(identity, associated_data=f"{provider} wish")
    return tuple(f"{provider}:wish:{digest}" for digest in digests)
