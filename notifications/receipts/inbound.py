"""Applies inbound WhatsApp messages and marketing opt-outs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from domain.states import Channel
from notifications.documents.records import PROVIDER_EVENTS
from notifications.store.documents import AttemptReference
from notifyproject.platform import encryption
from providers.whatsapp.webhooks import Identity, MarketingPreference, WebhookContents
from recipients import service_windows, whatsapp_identities, whatsapp_learning
from recipients.models import SuppressionReason
from recipients.suppressions import lift, suppress

from .. import queries

log = structlog.get_logger(__name__)
EVENT_RETENTION = timedelta(days=30)
"""Time for which applied opt-outs are remembered: providers repeat events for days."""


def apply_inbound(contents: WebhookContents, *, provider: str, now: datetime) -> int:
    """Record identifiers, service windows, and opt-outs. Return how many people are unknown.

    What an unknown person wrote is stored under the user ID, until the number is known. Idempotent.
    """
    _learn(contents.identities, now)
    changes = [(one.previous, one.current) for one in contents.changes]
    whatsapp_learning.carry_over(changes, now=now)
    people = [one.phone or one.user_id or "" for one in contents.messages]
    chosen = [one.phone or one.user_id or "" for one in contents.preferences]
    refused = [one.phone or one.user_id or "" for one in contents.closed_windows]
    numbers = whatsapp_identities.numbers_of({*people, *chosen, *refused})
    service_windows.record_inbound(
        [
            (number, message.at)
            for person, message in zip(people, contents.messages, strict=True)
            for number in numbers[person] or (person,)
        ],
        now=now,
    )
    service_windows.close(
        (number, closed.at)
        for person, closed in zip(refused, contents.closed_windows, strict=True)
        for number in numbers[person] or (person,)
    )
    preferences = [
        replace(one, phone=next(iter(numbers[person]), person))
        for person, one in zip(chosen, contents.preferences, strict=True)
    ]
    apply_opt_outs(preferences, provider=provider, now=now)
    unknown = {one for one in (*people, *chosen) if not numbers[one]}
    if unknown:
        log.warning("whatsapp_users_unknown", provider=provider, count=len(unknown))
    return len(unknown)


def _learn(identities: Sequence[Identity], now: datetime) -> None:
    """Remember the numbers of user IDs; of a status without a number, that of its message.

    Receipts of test messages say nothing about a person: the sandbox's user IDs are not people's.
    """
    references = {one.user_id: one.reference for one in identities if one.reference is not None}
    parsed = {user: AttemptReference.parse(text) for user, text in references.items()}
    ids = {user: one.notification_id for user, one in parsed.items() if one is not None}
    known = queries.phones(sorted(set(ids.values()))) if ids else {}
    told = {user: known[one] for user, one in ids.items() if one in known}
    reported = {
        one.user_id: one.phone
        for one in identities
        if one.phone is not None and (one.user_id not in ids or one.user_id in told)
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
    every = sorted(one for some in keys for one in some)
    found = PROVIDER_EVENTS().find({"_id": {"$in": every}}, {"_id": 1})
    seen = {document["_id"] for document in found}
    events = {some[0]: one for some, one in keys.items() if seen.isdisjoint(some)}
    for key, preference in sorted(events.items(), key=lambda event: event[1].at):
        _apply_opt_out(preference, provider=provider, at=min(preference.at, now))
        PROVIDER_EVENTS().update_one(
            {"_id": key}, {"$setOnInsert": {"expires_at": now + EVENT_RETENTION}}, upsert=True
        )
    if events:
        log.info("opt_outs_applied", provider=provider, count=len(events))
    return len(events)


def _apply_opt_out(preference: MarketingPreference, *, provider: str, at: datetime) -> None:
    channel, reason = Channel.WHATSAPP.value, SuppressionReason.UNSUBSCRIBED
    address = preference.phone or preference.user_id or ""
    if preference.is_wanted:
        lift(
            channel=channel,
            address=address,
            reasons=[reason],
            before=at,
            marketing_only=True,
        )
        return
    suppress(
        channel=channel,
        address=address,
        reason=reason,
        source=provider,
        marketing_only=True,
        now=at,
    )


def _event_keys(preference: MarketingPreference, provider: str) -> tuple[str, ...]:
    """Return the keys that identify a repeated event. They don't reveal the phone number.

    New events have the first.
    """
    identity = f"{preference.phone}:{preference.is_wanted}:{preference.at.isoformat()}".encode()
    digests = encryption.keyed_digests(identity, associated_data=f"{provider} wish")
    return tuple(f"{provider}:wish:{digest}" for digest in digests)
