"""What would still hold a delivery if staff sent it now."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery import circuit_breaker
from delivery.circuit_breaker import CircuitState, Pause, State
from delivery.eligibility import parse_quiet_hours
from domain.states import Category, Channel, DeliveryStatus, Priority
from domain.wait_reasons import WaitReason, wait_reason
from notifications import store
from notifications.catalog import limits
from notifications.store import Document
from providers.contract import Provider
from providers.labels import provider_name
from providers.registry import providers_for
from recipients import queries as recipients

from ..widgets.formats import clock
from ..widgets.waits import pause_text

Obstacles = Mapping[tuple[ObjectId, Channel], SafeString | str]


def find_obstacles(documents: Sequence[Document], *, now: datetime) -> Obstacles:
    """Return what would hold each pending delivery, such as "quiet hours until 23:45".

    A delivery without an entry is sent. Asks for the present facts: the cause of a wait may be over
    before its time, and something else may hold a scheduled message. Raises PyMongoError.
    """
    pending = [
        (document, delivery)
        for document in documents
        for delivery in document["delivery"]
        if delivery["status"] == DeliveryStatus.PENDING
    ]
    if not pending:
        return {}
    outages = _outages(now=now)
    quiet = _quiet_hours_ends([document for document, _ in pending], now=now)
    found: dict[tuple[ObjectId, Channel], SafeString | str] = {}
    for document, delivery in pending:
        channel = Channel(delivery["channel"])
        is_exempt = document["priority"] == Priority.CRITICAL or channel is Channel.IN_APP
        until = None if is_exempt else quiet.get(document["_id"])
        text: SafeString | str | None = None
        if not document.get("is_test"):
            text = outages.get(channel)
        if text is None and until is not None:
            text = format_html("quiet hours until {}", clock(until, now=now))
        text = text or _limit(document, delivery, now=now)
        if text is not None:
            found[document["_id"], channel] = text
    return found


def _outages(*, now: datetime) -> dict[Channel, SafeString | str]:
    """Return why no provider of a channel sends, by channel."""
    pauses = circuit_breaker.pauses()
    circuits = {one.name: one for one in circuit_breaker.circuit_states(now=now) or ()}
    found: dict[Channel, SafeString | str] = {}
    for channel in Channel:
        providers = providers_for(channel)
        blocks = [_outage(one, pauses, circuits, now=now) for one in providers]
        if blocks and all(blocks):
            found[channel] = next(one for one in blocks if one)
    return found


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


def _quiet_hours_ends(
    documents: Sequence[Document], *, now: datetime
) -> dict[ObjectId, datetime | None]:
    users = [user for one in documents if (user := one.get("user_id"))]
    registered = recipients.load_snapshot(users, set(), now=now).registered if users else {}
    found: dict[ObjectId, datetime | None] = {}
    for document in documents:
        recipient = registered.get(document.get("user_id") or "")
        if recipient is None:
            continue
        quiet = parse_quiet_hours(
            recipient.quiet_hours,
            own_zone=recipient.timezone,
            notification_zone=document["recipient"].get("timezone"),
        )
        found[document["_id"]] = quiet.until(now) if quiet else None
    return found


def _limit(document: Document, delivery: Mapping[str, Any], *, now: datetime) -> SafeString | None:
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
    person = limits.person_of(
        user_id=document.get("user_id"),
        channel=channel,
        address=store.recipient_of(document).address(channel),
    )
    if not applying or person is None:
        return None
    used = limits.read_usage(applying, person=person, now=now)
    full = [one for one in used if one.next_at > now]
    if not full:
        return None
    last = max(full, key=lambda one: one.next_at)
    until = last.next_at
    if wait_reason(delivery, now=now) is WaitReason.OVER_LIMIT:
        until = delivery["next_attempt_at"]
    return format_html("limit {} until {}", last.limit.name, clock(until, now=now))
