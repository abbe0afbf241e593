"""What would still hold or end a delivery if staff sent it now."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bson import ObjectId
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery import accounts, circuit_breaker, eligibility, provider_pauses
from delivery.accounts import BatchProviders
from delivery.circuit_breaker import CircuitState, State
from delivery.provider_pauses import Pause
from delivery.targets import resolve_targets
from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import Category, DeliveryStatus, Priority
from domain.wait_reasons import WaitReason, wait_reason
from notifications.catalog import limits
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.store.claims import ClaimedDelivery, NotSent, claimed_delivery_of
from notifications.store.reading import recipient_of
from providers.contract import Provider
from providers.labels import provider_name
from providers.registry import providers_for

from ..widgets.formats import clock
from ..widgets.waits import pause_text

S = DeliveryStatus
Providers = Mapping[tuple[Channel, bool], BatchProviders]
"""What may send deliveries, by their channel and whether they are tests."""
Obstacles = Mapping[tuple[ObjectId, Channel], SafeString | str]
ENDS: Mapping[DeliveryStatus, str] = {
    S.SUPPRESSED: "suppressed",
    S.EXPIRED: "expired",
    S.CANCELLED: "cancelled",
    S.FAILED: "failed",
    S.SENT: "complete",
}
"""How the engine ends a delivery that it doesn't send."""


def find_obstacles(documents: Sequence[NotificationDocument], *, now: datetime) -> Obstacles:
    """Return what would hold or end each pending delivery, such as "quiet hours until 23:45".

    A delivery without an entry is sent. Asks for the present facts: the cause of a wait may be over
    before its time, and something else may hold a scheduled message. The engine itself answers
    what preferences, suppressions, devices, plans, and the expiry say. Raises PyMongoError.
    """
    pending = [
        (document, claimed_delivery_of(document, delivery, token="", lease_until=now), delivery)
        for document in documents
        for delivery in document["delivery"]
        if delivery["status"] == S.PENDING
    ]
    if not pending:
        return {}
    providers = _providers_of([claimed for _, claimed, _ in pending])
    outages = _outages(providers, now=now)
    refused = _refused([claimed for _, claimed, _ in pending], providers, now=now)
    found: dict[tuple[ObjectId, Channel], SafeString | str] = {}
    for document, claimed, delivery in pending:
        refusal = refused.get(claimed.reference)
        text: SafeString | str | None = None
        if refusal is not None and refusal.status is not S.PENDING:
            text = f"it would be {ENDS[refusal.status]}: {_phrase(refusal.reason)}"
        if text is None and not claimed.is_test:
            text = outages.get(_names(providers[claimed.channel, False].of(claimed)))
        if text is None and refusal is not None:
            text = _wait(refusal, now=now)
        text = text or _limit(document, delivery, now=now)
        if text is not None:
            found[claimed.notification_id, claimed.channel] = text
    return found


def _providers_of(claims: Sequence[ClaimedDelivery]) -> Providers:
    """Return what may send deliveries, by their channel and whether they are tests."""
    found: dict[tuple[Channel, bool], BatchProviders] = {}
    for channel, is_test in {(claim.channel, claim.is_test) for claim in claims}:
        usual = providers_for(channel, test=is_test)
        own = [claim for claim in claims if claim.channel is channel and not is_test]
        found[channel, is_test] = accounts.providers_of(own, channel, usual=usual)
    return found


def _refused(
    claims: Sequence[ClaimedDelivery], providers: Providers, *, now: datetime
) -> dict[str, NotSent]:
    """Return why the engine wouldn't send deliveries now, by reference."""
    found: list[NotSent] = []
    for (channel, is_test), own in providers.items():
        ready, not_sent = eligibility.filter_eligible(
            [claim for claim in claims if (claim.channel, claim.is_test) == (channel, is_test)],
            now=now,
            has_provider=bool(own.usual),
            own_providers=own.own,
        )
        ready, without_account = accounts.hold_without_account(ready, own, now=now)
        found += [*not_sent, *without_account]
        if channel.has_devices and ready:
            resolved = resolve_targets(ready, channel=channel, providers=own.usual, now=now)
            found += resolved.not_sent
    return {delivery.claimed.reference: delivery for delivery in found}


def _wait(refusal: NotSent, *, now: datetime) -> SafeString | str:
    if refusal.code is FailureCode.QUIET_HOURS and refusal.next_attempt_at is not None:
        return format_html("quiet hours until {}", clock(refusal.next_attempt_at, now=now))
    return _phrase(refusal.reason)


def _phrase(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}".rstrip(".")


def _outages(providers: Providers, *, now: datetime) -> dict[tuple[str, ...], SafeString | str]:
    """Return why none of the providers of a delivery sends, by their names."""
    pauses = provider_pauses.pauses()
    circuits = {state.name: state for state in circuit_breaker.circuit_states(now=now) or ()}
    found: dict[tuple[str, ...], SafeString | str] = {}
    for own in providers.values():
        for some in (own.usual, *own.own.values()):
            blocks = [_outage(provider, pauses, circuits, now=now) for provider in some]
            if blocks and all(blocks):
                found[_names(some)] = next(block for block in blocks if block)
    return found


def _names(providers: Sequence[Provider]) -> tuple[str, ...]:
    return tuple(provider.name for provider in providers)


def _outage(
    provider: Provider,
    pauses: Mapping[str, Pause],
    circuits: Mapping[str, CircuitState],
    *,
    now: datetime,
) -> SafeString | str | None:
    name = provider.name
    if name in pauses:
        return pause_text(pauses[name])
    circuit = circuits.get(provider.account)
    if circuit is None or circuit.state is not State.OPEN or circuit.open_until is None:
        return None
    return format_html(
        "{}'s circuit is open, next probe {}",
        provider_name(name),
        clock(circuit.open_until, now=now),
    )


def _limit(
    document: NotificationDocument, delivery: DeliveryDocument, *, now: datetime
) -> SafeString | None:
    """Return which limit of the recipient refuses a delivery now."""
    channel = Channel(delivery["channel"])
    if document.get("ignores_limits"):
        return None
    applying = limits.applying_limits(
        type_slug=document["type"],
        template_id=document["content"].get("template_id"),
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        channel=channel,
        is_test=document.get("is_test", False),
    )
    person = limits.person_counted(
        applying,
        user_id=document.get("user_id"),
        channel=channel,
        address=recipient_of(document).address(channel),
    )
    if not applying or person is None:
        return None
    used = limits.read_usage(applying, person=person, now=now)
    full = [use for use in used if use.next_at > now]
    if not full:
        return None
    last = max(full, key=lambda use: use.next_at)
    until = last.next_at
    if wait_reason(delivery, now=now) is WaitReason.OVER_LIMIT:
        until = delivery["next_attempt_at"] or until
    return format_html("limit {} until {}", last.limit.name, clock(until, now=now))
