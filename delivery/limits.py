"""Applies the limits of recipients right before a send. Counters are in MongoDB."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from pymongo.errors import PyMongoError

from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.catalog import limits
from notifications.store import limit_uses
from notifications.store.claims import ClaimedDelivery, NotSent, Settlement
from notifications.store.limit_uses import MovedUp, Refusal, RefusalKind, UseRequest

from .digests import digest_for

log = structlog.get_logger(__name__)
S = DeliveryStatus
COUNTER_RETRY_DELAY = timedelta(seconds=30)
"""Delay if the counters can't be written: neither sent nor suppressed."""
CONTESTED_DELAY = timedelta(seconds=2)
"""Delay of a delivery whose counters other workers change all the time."""
UNCOUNTED = "The counter of a limit can't be written."
LINE_FULL = "Ten other messages wait."


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """A batch's deliveries by what their limits say."""

    allowed: Sequence[ClaimedDelivery]
    refused: Sequence[NotSent] = ()
    """They wait, or are suppressed."""
    digested: Sequence[NotSent] = ()
    """They go into a digest, or else are refused as the others."""
    moved_up: Sequence[MovedUp] = ()
    """Other deliveries, which waited for a limit and are due now."""


def apply_limits(claims: Sequence[ClaimedDelivery], *, now: datetime) -> Limited:
    """Apply the limits to a batch.

    In-app and test messages are exempt and don't count, and so are critical ones and those with
    sensitive variables, except for the limit of codes.
    """
    requests = {claim.reference: found for claim in claims if (found := _request(claim))}
    if not requests:
        return Limited(allowed=claims)
    try:
        reserved = limit_uses.reserve_uses(list(requests.values()), now=now)
    except PyMongoError as error:
        log.warning("limits_not_counted", reason=type(error).__name__, deliveries=len(requests))
        until, code = now + COUNTER_RETRY_DELAY, FailureCode.OVER_LIMIT
        allowed = [claim for claim in claims if claim.reference not in requests]
        limited = [claim for claim in claims if claim.reference in requests]
        uncounted = [NotSent(claim, S.PENDING, code, UNCOUNTED, until) for claim in limited]
        return Limited(allowed=allowed, refused=uncounted)
    allowed, refused, digested = [], [], []
    for claimed in claims:
        request = requests.get(claimed.reference)
        decision = reserved.decisions.get(request.delivery_id) if request else ()
        if decision is None:
            until, code = now + CONTESTED_DELAY, FailureCode.OVER_LIMIT
            refused.append(NotSent(claimed, S.PENDING, code, UNCOUNTED, until))
        elif not isinstance(decision, Refusal):
            allowed.append(replace(claimed, limit_uses=decision) if decision else claimed)
        elif decision.kind is RefusalKind.DIGEST:
            digested.append(_refuse(claimed, decision))
        else:
            refused.append(_refuse(claimed, decision))
    if dropped := [
        unsent
        for unsent in refused
        if unsent.status is S.SUPPRESSED
        and any(limit.counts_addresses for limit in requests[unsent.claimed.reference].limits)
    ]:
        # Somebody asks for codes to a number over and over, who may not be its owner.
        log.warning("codes_limited", codes=len(dropped), type=dropped[0].claimed.type)
    return Limited(allowed=allowed, refused=refused, digested=digested, moved_up=reserved.moved_up)


def _request(claimed: ClaimedDelivery) -> UseRequest | None:
    applying = limits.applying_limits(
        type_slug=claimed.type,
        template_id=claimed.content.template_id,
        category=claimed.category,
        priority=claimed.priority,
        channel=claimed.channel,
        is_test=claimed.is_test,
    )
    address = claimed.recipient.address(claimed.channel)
    person = limits.person_counted(
        applying, user_id=claimed.user_id, channel=claimed.channel, address=address
    )
    if not applying or person is None:
        return None
    return UseRequest(
        limits=applying,
        person=person,
        user_id=claimed.user_id,
        delivery_id=limit_uses.delivery_key(claimed.notification_id, claimed.channel),
        due_at=claimed.first_due_at,
        expires_at=claimed.expires_at,
        is_exempt=claimed.ignores_limits,
        may_have_arrived=_may_have_it(claimed),
        has_digest=digest_for(claimed) is not None,
    )


def _refuse(claimed: ClaimedDelivery, refusal: Refusal) -> NotSent:
    """Return the wait until all limits allow a delivery, or why it ends."""
    code, reason = FailureCode.OVER_LIMIT, refusal.reason
    if refusal.kind is RefusalKind.DROPPED:
        return NotSent(claimed, S.SUPPRESSED, code, reason)
    if refusal.kind is RefusalKind.LINE_FULL:
        return NotSent(claimed, S.SUPPRESSED, code, f"{reason} {LINE_FULL}")
    if refusal.kind is RefusalKind.EXPIRES:
        return NotSent(claimed, S.EXPIRED, code, f"Expires before that. {reason}")
    return NotSent(claimed, S.PENDING, code, reason, refusal.until)


def give_back_uses(unsent: Sequence[tuple[ClaimedDelivery, datetime | None]]) -> None:
    """Give back the uses of deliveries that no provider can have accepted.

    Each comes with the time of its next attempt, until which it keeps its place in the lines.
    """
    uses = [
        (use, delivery.first_due_at, next_at)
        for delivery, next_at in unsent
        if not _may_have_it(delivery)
        for use in delivery.limit_uses
    ]
    if not uses:
        return
    try:
        limit_uses.give_back(uses)
    except PyMongoError as error:
        # The uses count until the period ends: the recipient gets fewer messages, never more.
        log.warning("limit_uses_kept", reason=type(error).__name__, uses=len(uses))


def is_certainly_unsent(settlement: Settlement) -> bool:
    """Return whether no request of an attempt may have been accepted."""
    reached = settlement.accepted_targets or settlement.ambiguous_targets
    return settlement.status in (S.PENDING, S.FAILED) and not reached


def _may_have_it(claimed: ClaimedDelivery) -> bool:
    return bool(claimed.accepted_targets or claimed.ambiguous_targets or claimed.ambiguous_provider)
