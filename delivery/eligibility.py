"""Decides which claimed deliveries may be sent now: expiry, suppression, quiet hours."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from domain import retry
from domain.channels import ADDRESS_CHANNELS
from domain.errors import FailureCode
from domain.plans import FIRST_STEP, how_reached
from domain.quiet_hours import QuietHours
from domain.states import DeliveryStatus, Priority
from domain.wait_reasons import STORED_REASONS, Hold, describe_hold
from domain.zones import first_known_zone
from notifications.catalog import types
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.leases import LEASES
from notifications.store.removal import DELETION_REASON
from providers.labels import provider_name
from recipients import queries as recipients
from recipients.queries import RecipientSnapshot, Refusal, RegisteredRecipient

log = structlog.get_logger(__name__)
_NO_SANDBOX = "Test notification, but no sandbox is configured for {}."
TOO_LATE = "Its step of the plan couldn't begin in time."
EXPIRES_WHILE_HELD = "It expires before this is tried again."
S = DeliveryStatus
KEY_RETRY_DELAY = timedelta(seconds=30)
"""Delay before another attempt to decrypt: another process or a newer release may have the key."""


def check_eligibility(
    claimed: ClaimedDelivery,
    *,
    now: datetime,
    quiet: QuietHours | None,
    refusal: Refusal | None,
    has_provider: bool,
) -> NotSent | None:
    """Return why a delivery can't be sent now, or None if it can.

    ``refusal`` is why its recipient or address gets no such message.
    """
    if reason := (
        _check_obsolete(claimed, now)
        or _check_reachable(claimed, refusal=refusal, has_provider=has_provider)
    ):
        return reason
    channel = claimed.channel
    is_exempt = claimed.priority is Priority.CRITICAL or channel.is_inbox or not channel.is_personal
    until = quiet.until(now) if quiet and not is_exempt else None
    return defer_until_quiet_hours_end(claimed, until=until) if until is not None else None


def _check_obsolete(claimed: ClaimedDelivery, now: datetime) -> NotSent | None:
    if claimed.is_deleted:
        return NotSent(claimed, S.CANCELLED, FailureCode.CANCELLED, DELETION_REASON)
    if claimed.expires_at is not None and now >= claimed.expires_at:
        return _expire(claimed)
    if claimed.step > FIRST_STEP and (how := _how_reached(claimed)) is not None:
        return NotSent(claimed, S.CANCELLED, FailureCode.NOT_NEEDED, f"Not needed: {how}.")
    if _is_too_late(claimed, now):
        return NotSent(claimed, S.EXPIRED, FailureCode.EXPIRED, TOO_LATE)
    if LEASES.is_exhausted(claimed.claim_count):
        reason = "Quarantined: three workers claimed it and none of them sent it."
        return NotSent(claimed, S.FAILED, FailureCode.QUARANTINED, reason)
    return None


def _expire(claimed: ClaimedDelivery) -> NotSent:
    hold, code = claimed.hold, FailureCode.EXPIRED
    if hold is None:
        return NotSent(claimed, S.EXPIRED, code, "Expired before sending.")
    outage = describe_hold(hold, provider=provider_name(hold.provider), is_over=True)
    return NotSent(claimed, S.EXPIRED, code, f"Expired while {outage}.", held_reason=hold.reason)


def _how_reached(claimed: ClaimedDelivery) -> str | None:
    return how_reached(
        claimed.plan_until,
        statuses=claimed.channel_statuses,
        is_marked_read=claimed.is_marked_read,
        is_acted=claimed.is_acted,
    )


def _is_too_late(claimed: ClaimedDelivery, now: datetime) -> bool:
    """Return whether a delivery misses its step's time. A retry never does."""
    limit, is_first = claimed.skip_if_late, claimed.attempt_count == claimed.earlier_attempts
    return limit is not None and is_first and now > claimed.first_due_at + limit


def _check_reachable(
    claimed: ClaimedDelivery, *, refusal: Refusal | None, has_provider: bool
) -> NotSent | None:
    if not has_provider:
        return without_provider(claimed)
    if refusal is not None:
        return NotSent(claimed, S.SUPPRESSED, refusal.code, refusal.reason)
    if claimed.channel in ADDRESS_CHANNELS and not claimed.recipient.address(claimed.channel):
        return NotSent(claimed, S.SUPPRESSED, FailureCode.NO_ADDRESS, "No address.")
    return None


def without_provider(claimed: ClaimedDelivery) -> NotSent:
    """End a delivery to which no configured provider can send."""
    reason = _NO_SANDBOX if claimed.is_test else "No provider is configured for {}."
    reason = reason.format(claimed.channel)
    return NotSent(claimed, S.FAILED, FailureCode.CHANNEL_UNAVAILABLE, reason)


def parse_quiet_hours(
    stored: Mapping[str, Any] | None,
    *,
    own_zone: str | None,
    notification_zone: str | None,
) -> QuietHours | None:
    """Return the quiet hours of a recipient or device, or None if they are disabled.

    The time zone is the first known one of: the quiet hours', ``own_zone``, the notification's,
    UTC.
    """
    if not stored or not stored["enabled"]:
        return None
    zone = first_known_zone(stored.get("timezone"), own_zone, notification_zone)
    return QuietHours.parse(start=stored["start"], end=stored["end"], zone=zone)


def defer_or_fail(
    claimed: ClaimedDelivery, code: FailureCode, reason: str, *, until: datetime
) -> NotSent:
    """Defer a delivery until staff have mended its cause, or end it if that takes too long."""
    # Failed also if it expires meanwhile, so that staff see why.
    may_defer = retry.may_defer(until=until, state=claimed.retry_state)
    status, at = (S.PENDING, until) if may_defer else (S.FAILED, None)
    return NotSent(claimed, status, code, reason, at)


def hold_or_end(claimed: ClaimedDelivery, hold: Hold, reason: str, *, until: datetime) -> NotSent:
    """Hold a delivery until something may send it, or end it if that takes too long."""
    # A delivery that expires earlier is held until then, since staff may end the outage. In a plan
    # it expires at once, so that the next step has the remaining time.
    code, state = FailureCode.CHANNEL_UNAVAILABLE, claimed.retry_state
    held = hold.reason if hold.reason in STORED_REASONS else None
    if retry.is_outage_too_long(state):
        return NotSent(claimed, S.FAILED, code, reason)
    if retry.may_defer(until=until, state=state):
        return NotSent(claimed, S.PENDING, code, reason, until, held, hold=hold)
    if claimed.later_channels:
        reason, held = f"{reason} {EXPIRES_WHILE_HELD}", hold.reason
        return NotSent(claimed, S.EXPIRED, FailureCode.EXPIRED, reason, held_reason=held, hold=hold)
    return NotSent(claimed, S.PENDING, code, reason, claimed.expires_at, held, hold=hold)


def defer_until_quiet_hours_end(claimed: ClaimedDelivery, *, until: datetime) -> NotSent:
    """Defer a delivery until quiet hours end, or end it as expired if it expires before."""
    if claimed.expires_at is not None and until >= claimed.expires_at:
        reason = "Expires before quiet hours end."
        return NotSent(claimed, S.EXPIRED, FailureCode.QUIET_HOURS, reason)
    return NotSent(claimed, S.PENDING, FailureCode.QUIET_HOURS, "Quiet hours.", until)


def filter_eligible(
    claims: Sequence[ClaimedDelivery],
    *,
    now: datetime,
    has_provider: bool,
    own_providers: Collection[str] = (),
    with_quiet_hours: bool = True,
    with_soft_bounces: bool = False,
) -> tuple[list[ClaimedDelivery], list[NotSent]]:
    """Return the deliveries that can be sent now, and the reasons why the others can't.

    ``has_provider``: the channel has one. ``own_providers`` are the references of deliveries that
    others send, by their brand. ``with_soft_bounces``: those whose address has soft bounces are
    marked.
    """
    addresses = {
        (c.channel.value, address)
        for c in claims
        if c.channel.is_personal and (address := c.recipient.address(c.channel))
    }
    user_ids = [c.user_id for c in claims if c.user_id]
    snapshot = recipients.load_snapshot(
        user_ids, addresses, now=now, with_soft_bounces=with_soft_bounces
    )
    ready: list[ClaimedDelivery] = []
    not_sent: list[NotSent] = []
    for claimed in claims:
        recipient = snapshot.registered.get(claimed.user_id or "")
        reason = check_eligibility(
            claimed,
            now=now,
            quiet=parse_quiet_hours(
                recipient.own_quiet_hours(is_locked=is_locked(claimed))
                if recipient and with_quiet_hours
                else None,
                own_zone=recipient.timezone if recipient else None,
                notification_zone=claimed.recipient.timezone,
            ),
            refusal=_refusal_of(claimed, snapshot),
            has_provider=has_provider or claimed.reference in own_providers,
        )
        if reason is None:
            own = (claimed.channel.value, claimed.recipient.address(claimed.channel) or "")
            is_suspected = own in snapshot.suspected
            known = replace(claimed, has_soft_bounces=True) if is_suspected else claimed
            ready.append(_with_current_zone(known, recipient))
        else:
            not_sent.append(reason)
    return ready, not_sent


def _with_current_zone(
    claimed: ClaimedDelivery, registered: RegisteredRecipient | None
) -> ClaimedDelivery:
    """Return a delivery that names the registry's zone, if another was taken at acceptance."""
    zone = registered.timezone if registered else None
    known = claimed.recipient
    if zone is None or zone == known.timezone or "timezone" in known.given:
        return claimed
    if first_known_zone(zone) != zone:
        return claimed
    return replace(claimed, moved_to=zone)


def is_locked(claimed: ClaimedDelivery) -> bool:
    """Return whether no preference of a recipient or device applies to a delivery."""
    return types.is_locked(claimed.type, claimed.content.template_id)


def _refusal_of(claimed: ClaimedDelivery, snapshot: RecipientSnapshot) -> Refusal | None:
    return snapshot.refusal_of(
        user_id=claimed.user_id,
        channel=claimed.channel.value,
        address=claimed.recipient.address(claimed.channel),
        type_slug=claimed.type,
        category=claimed.category.value,
        is_locked=is_locked(claimed),
    )
