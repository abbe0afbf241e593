"""Messages to rooms: where each room is, how fast it takes messages, and what its answers say.

A room takes a message each ``min_gap``. A message that would wait longer than PATIENCE opens the
room's digest, which collects the messages of a minute, whatever their types are.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from domain.channels import ROOM
from domain.errors import FailureCode, InvalidRecipientError
from domain.rooms import KINDS, UNKNOWN_KIND
from domain.states import DeliveryStatus
from domain.wait_reasons import WaitReason
from notifications.store.claims import ClaimedDelivery, NotSent
from notifyproject.platform.encryption import DecryptionError
from providers.contract import SendResult, SendTarget
from providers.registry import all_providers_for
from rooms import registry
from rooms.registry import Room

from . import circuit_breaker
from .eligibility import KEY_RETRY_DELAY, defer_or_fail
from .rate_limiter import RateLimiter
from .results import TargetResult

log = structlog.get_logger(__name__)
S = DeliveryStatus
PATIENCE = timedelta(seconds=20)
"""Longest time that a message waits for others to its room, unless it can't be in a digest."""
KIND_RETRY_DELAY = timedelta(minutes=5)
"""Time until a room of a kind that another version knows is tried again."""
OTHERS_FIRST = "Other messages to the room go first."
Answered = tuple[ClaimedDelivery, str, TargetResult]
"""A delivery, the address that it was sent to, and the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paced:
    """A batch's deliveries by when their rooms take them."""

    allowed: Sequence[ClaimedDelivery]
    waiting: Sequence[NotSent] = ()
    crowded: Sequence[ClaimedDelivery] = ()
    """They go into the digests of their rooms."""


def resolve(claimed: ClaimedDelivery, *, now: datetime) -> SendTarget | NotSent:
    """Return where a delivery goes, or why it can't."""
    room = registry.find_rooms().get(claimed.recipient.room or "")
    obstacle = registry.REMOVED if room is None else room.obstacle
    if room is None or obstacle is not None:
        return NotSent(claimed, S.FAILED, FailureCode.ROOM_GONE, obstacle or registry.REMOVED)
    if room.kind not in KINDS:
        reason, code = UNKNOWN_KIND.format(room.kind), FailureCode.CHANNEL_UNAVAILABLE
        return defer_or_fail(claimed, code, reason, until=now + KIND_RETRY_DELAY)
    try:
        target = room.target()
    except DecryptionError as problem:
        log.exception("room_not_decrypted", room=room.slug)
        reason, code = f"The room's target: {problem}.", FailureCode.DECRYPTION_FAILED
        return defer_or_fail(claimed, code, reason, until=now + KEY_RETRY_DELAY)
    return SendTarget(
        address=target.address, room=room.slug, secrets=target.secrets, transport=room.kind
    )


def pace(
    claims: Sequence[ClaimedDelivery],
    rates: RateLimiter,
    *,
    late: Collection[str] = (),
    now: datetime,
) -> Paced:
    """Let through what rooms take now. The order is that in which the deliveries were due.

    ``late`` are references of deliveries that became due while their room's digest was open: they
    join it, so that a room that is flooded gets no more than those that waited before.
    """
    rooms = registry.find_rooms()
    by_room: dict[tuple[str, bool], list[ClaimedDelivery]] = {}
    allowed: list[ClaimedDelivery] = []
    waiting: list[NotSent] = []
    crowded: list[ClaimedDelivery] = []
    for claimed in claims:
        slug = claimed.recipient.room or ""
        if slug not in rooms or rooms[slug].obstacle is not None:
            # It fails, and nobody waits for that.
            allowed.append(claimed)
        elif claimed.reference in late and may_be_digested(claimed):
            crowded.append(claimed)
        elif not rooms[slug].min_gap:
            allowed.append(claimed)
        else:
            by_room.setdefault((slug, claimed.is_test), []).append(claimed)
    for (slug, is_test), some in by_room.items():
        room = rooms[slug]
        some.sort(key=lambda claimed: claimed.first_due_at)
        count, slot = _take(rates, room, len(some), now=now, is_test=is_test)
        allowed += some[:count]
        for claimed in some[count:]:
            if may_be_digested(claimed) and slot - claimed.first_due_at > PATIENCE:
                crowded.append(claimed)
                continue
            waiting.append(_wait(claimed, slot))
            slot += room.min_gap
    return Paced(allowed=allowed, waiting=waiting, crowded=crowded)


def may_be_digested(claimed: ClaimedDelivery) -> bool:
    """Return whether a delivery may be a part of its room's digest: its text isn't sensitive."""
    return claimed.may_join_digest and not (
        claimed.attempt_count or claimed.content.is_masked or claimed.encrypted_content
    )


def apply_answers(answers: Sequence[Answered], *, now: datetime) -> None:
    """Disable the rooms that are gone, and record which have accepted messages."""
    accepted: set[str] = set()
    for claimed, address, result in answers:
        slug = claimed.recipient.room or ""
        if isinstance(result.outcome, SendResult):
            accepted.add(slug)
        elif isinstance(result.outcome, InvalidRecipientError):
            _disable(slug, address, result.outcome.reason, now)
    if accepted:
        registry.record_accepted(accepted, now=now)


def close_circuits(slug: str) -> None:
    """Close the circuits of a room that staff have set up anew: they are about what it was."""
    for provider in all_providers_for(ROOM):
        circuit_breaker.close(circuit_breaker.circuit_name(provider, slug))


def _take(
    rates: RateLimiter, room: Room, wanted: int, *, now: datetime, is_test: bool
) -> tuple[int, datetime]:
    """Return how many messages a room takes now, and when it takes the next one."""
    name = f"room:{room.slug}:{'test' if is_test else 'live'}"
    rate = 1 / room.min_gap.total_seconds()
    grant = rates.take(name, wanted, rate=rate, burst=1, now=now)
    return grant.granted, now + max(grant.wait, room.min_gap if grant.granted else timedelta(0))


def _wait(claimed: ClaimedDelivery, until: datetime) -> NotSent:
    code = FailureCode.RECIPIENT_RATE_LIMITED
    if claimed.expires_at is not None and until >= claimed.expires_at:
        return NotSent(claimed, S.EXPIRED, code, f"Expires before that. {OTHERS_FIRST}")
    return NotSent(claimed, S.PENDING, code, OTHERS_FIRST, until, WaitReason.RATE_LIMITED)


def _disable(slug: str, address: str, reason: str, now: datetime) -> None:
    room = registry.find_rooms().get(slug)
    if room is None:
        return
    try:
        is_same = room.target().address == address
    except DecryptionError:
        return
    if is_same:
        registry.disable(slug, reason=reason, target=room.encrypted_target, now=now)
