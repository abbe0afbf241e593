"""Applies the limits of recipients right before a send. Counters are in MongoDB."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from pymongo.errors import PyMongoError

from domain.errors import FailureCode
from domain.limits import Overflow, describe_use, next_free_at
from domain.states import DeliveryStatus
from notifications import store
from notifications.catalog import limits
from notifications.store import ClaimedDelivery, NotSent, Settlement, UseRequest, UseResult

from .digests import digest_for

log = structlog.get_logger(__name__)
S = DeliveryStatus
COUNTER_RETRY_DELAY = timedelta(seconds=30)
"""Delay if the counters can't be written: neither sent nor suppressed."""
UNCOUNTED = "The counter of a limit can't be written."
LINE_FULL = "Ten other messages wait."


def apply_limits(
    claims: Sequence[ClaimedDelivery], *, now: datetime
) -> tuple[list[ClaimedDelivery], list[NotSent], list[NotSent]]:
    """Return deliveries that are allowed, that wait or are suppressed, and that go into a digest.

    The latter are refused as the others, unless they join a digest.

    Critical, in-app, and test messages are exempt and don't count.
    """
    requests = {one.reference: found for one in claims if (found := _requests(one))}
    if not requests:
        return list(claims), [], []
    limited = [one for one in claims if one.reference in requests]
    try:
        decisions = _decide(limited, requests, now)
    except PyMongoError as error:
        log.warning("limits_not_counted", reason=type(error).__name__, deliveries=len(limited))
        until, code = now + COUNTER_RETRY_DELAY, FailureCode.OVER_LIMIT
        decisions = {
            one.reference: NotSent(one, S.PENDING, code, UNCOUNTED, until) for one in limited
        }
    decided = [decisions.get(one.reference, one) for one in claims]
    return (
        [one for one in decided if isinstance(one, ClaimedDelivery)],
        [one for one in decided if isinstance(one, NotSent)],
        [one.refusal for one in decided if isinstance(one, _Overflowing)],
    )


@dataclass(frozen=True, slots=True)
class _Overflowing:
    """A delivery beyond a limit that goes into its type's digest."""

    refusal: NotSent
    """Its end or wait if it can't join one."""


def give_back(claims: Sequence[ClaimedDelivery]) -> None:
    """Give back the uses of deliveries that no provider can have accepted."""
    uses = [use for one in claims if not _may_have_it(one) for use in one.limit_uses]
    if not uses:
        return
    try:
        store.give_back(uses)
    except PyMongoError as error:
        # The uses count until the period ends: the recipient gets fewer messages, never more.
        log.warning("limit_uses_kept", reason=type(error).__name__, uses=len(uses))


def is_certainly_unsent(settlement: Settlement) -> bool:
    """Return whether no request of an attempt may have been accepted."""
    reached = settlement.accepted_targets or settlement.ambiguous_targets
    return settlement.status in (S.PENDING, S.FAILED) and not reached


def _requests(claimed: ClaimedDelivery) -> list[UseRequest]:
    applying = limits.applying_limits(
        type_slug=claimed.type,
        category=claimed.category,
        priority=claimed.priority,
        channel=claimed.channel,
        is_test=claimed.is_test,
    )
    address = claimed.recipient.address(claimed.channel)
    person = limits.person_of(user_id=claimed.user_id, channel=claimed.channel, address=address)
    if not applying or person is None:
        return []
    return [
        UseRequest(
            limit=one,
            person=person,
            user_id=claimed.user_id,
            delivery_id=f"{claimed.notification_id}.{claimed.channel}",
            is_exempt=claimed.ignores_limits,
            may_have_arrived=_may_have_it(claimed),
        )
        for one in applying
    ]


def _decide(
    claims: Sequence[ClaimedDelivery], requests: dict[str, list[UseRequest]], now: datetime
) -> dict[str, ClaimedDelivery | NotSent | _Overflowing]:
    results = iter(
        store.reserve_uses([one for c in claims for one in requests[c.reference]], now=now)
    )
    decisions: dict[str, ClaimedDelivery | NotSent | _Overflowing] = {}
    waits: list[tuple[UseRequest, datetime]] = []
    ended: list[UseRequest] = []
    for claimed in claims:
        own = [next(results) for _ in requests[claimed.reference]]
        uses = tuple(one.use for one in own if one.use is not None)
        counted = replace(claimed, limit_uses=uses)
        refused = [one for one in own if one.use is None]
        if not refused:
            decisions[claimed.reference] = counted
            continue
        if _goes_into_digest(claimed, refused):
            decisions[claimed.reference] = _Overflowing(_refuse(counted, refused, now))
            ended += [one.request for one in refused]
            continue
        decision = decisions[claimed.reference] = _refuse(counted, refused, now)
        if decision.status is S.PENDING and decision.next_attempt_at is not None:
            waits += [(one.request, decision.next_attempt_at) for one in refused]
        else:
            ended += [one.request for one in refused]
    store.record_waits(waits)
    store.leave_lines(ended)
    return decisions


def _goes_into_digest(claimed: ClaimedDelivery, refused: Sequence[UseResult]) -> bool:
    """Return whether a refused delivery joins its type's digest and doesn't wait for the limit."""
    if digest_for(claimed) is None:
        return False
    is_line_full = any(
        one.position is None and one.limit.overflow is Overflow.LATER for one in refused
    )
    return is_line_full or any(one.limit.overflow is Overflow.DIGEST for one in refused)


def _refuse(claimed: ClaimedDelivery, refused: Sequence[UseResult], now: datetime) -> NotSent:
    """Return the wait until all limits allow a delivery, or why it ends."""
    code = FailureCode.OVER_LIMIT
    if dropping := [one for one in refused if one.position is None]:
        first = dropping[0]
        reason = _reason(first, now)
        if first.limit.overflow is not Overflow.DROP:
            reason = f"{reason} {LINE_FULL}"
        return NotSent(claimed, S.SUPPRESSED, code, reason)
    times = [(_next_free_at(one, now), index) for index, one in enumerate(refused)]
    until, index = max(times)
    reason = _reason(refused[index], now)
    if claimed.expires_at is not None and until >= claimed.expires_at:
        return NotSent(claimed, S.EXPIRED, code, f"Expires before that. {reason}")
    return NotSent(claimed, S.PENDING, code, reason, until)


def _next_free_at(result: UseResult, now: datetime) -> datetime:
    free_at = next_free_at(result.limit, uses=result.uses, position=result.position or 0, now=now)
    # Those before it may not have been claimed yet.
    return max(free_at, now + timedelta(seconds=1))


def _reason(result: UseResult, now: datetime) -> str:
    limit = result.limit
    used = sum(1 for at in result.uses if at > now - limit.period)
    return f"{describe_use(limit, used=used)} (limit {limit.name})."


def _may_have_it(claimed: ClaimedDelivery) -> bool:
    return bool(claimed.accepted_targets or claimed.ambiguous_targets or claimed.ambiguous_provider)
