"""Decides which claimed deliveries may be sent now: expiry, suppression, quiet hours."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import structlog

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, Priority
from domain.time import InvalidTimeError, QuietHours, zone_names
from notifications.catalog import types
from notifications.store import ClaimedDelivery, Deferred
from recipients import queries as recipients
from recipients.queries import RecipientSnapshot

log = structlog.get_logger(__name__)
MAX_CLAIMS = 3
"""A delivery that was claimed this often and never came to sending has killed its workers."""
ADDRESSED = frozenset({Channel.EMAIL, Channel.WHATSAPP})
_NO_SANDBOX = "A test goes to the sandbox only, and there is none set up for {}."
S = DeliveryStatus
REACHED = frozenset({S.DELIVERED, S.READ})


def check_eligibility(
    claimed: ClaimedDelivery,
    *,
    now: datetime,
    quiet: QuietHours | None,
    suppression: str | None,
    has_provider: bool,
) -> Deferred | None:
    """Return why this delivery is not to be sent now, or None if it is.

    ``suppression`` is the reason why its address gets nothing of this category.
    """
    return (
        _check_obsolete(claimed, now)
        or _check_reachable(claimed, suppression=suppression, has_provider=has_provider)
        or _check_quiet_hours(claimed, quiet, now)
    )


def _check_obsolete(claimed: ClaimedDelivery, now: datetime) -> Deferred | None:
    """Return the end of what it is too late for, or nobody needs, or no worker survives."""
    if claimed.expires_at is not None and now >= claimed.expires_at:
        return _ended(claimed, S.EXPIRED, FailureCode.EXPIRED, "Its time was over.")
    if (
        claimed.fallback_for is not None
        and claimed.channel_statuses.get(claimed.fallback_for) in REACHED
    ):
        reason = f"Not needed: {claimed.fallback_for} delivered it in time."
        return _ended(claimed, S.CANCELLED, FailureCode.NOT_NEEDED, reason)
    if claimed.claim_count > MAX_CLAIMS:
        reason = "Three workers took it and none came back."
        return _ended(claimed, S.FAILED, FailureCode.QUARANTINED, reason)
    return None


def _check_reachable(
    claimed: ClaimedDelivery, *, suppression: str | None, has_provider: bool
) -> Deferred | None:
    """Return the end of what has nowhere to go, or may not go there."""
    if not has_provider:
        reason = _NO_SANDBOX if claimed.is_test else "No provider is set up for {}."
        reason = reason.format(claimed.channel)
        return _ended(claimed, S.FAILED, FailureCode.CHANNEL_UNAVAILABLE, reason)
    if claimed.channel in ADDRESSED and not claimed.recipient.address(claimed.channel):
        return _ended(claimed, S.FAILED, FailureCode.NO_ADDRESS, "There is no address for it.")
    if suppression is not None:
        reason = f"The address is suppressed: {suppression}."
        return _ended(claimed, S.SUPPRESSED, FailureCode.SUPPRESSED, reason)
    return None


def parse_quiet_hours(
    stored: Mapping[str, Any] | None,
    *,
    own_zone: str | None,
    notification_zone: str | None,
    user_id: str | None = None,
) -> QuietHours | None:
    """Return a person's quiet hours, in their own zone if none is stored with them; None if off.

    Their zone is the first that there is: the one stored with the hours, their own, the one the
    notification came with, UTC. A name that means nothing to us does not cost them their night's
    rest; it is told in the log, once for each person (``whose``) and process.
    """
    if not stored or not stored.get("enabled"):
        return None
    # Checked when stored; what an older release stored must not stop a whole batch.
    given = [zone for zone in (stored.get("timezone"), own_zone, notification_zone) if zone]
    zone = next((name for name in given if _is_zone(name)), "UTC")
    start, end = stored.get("start"), stored.get("end")
    try:
        hours = QuietHours.parse(start=str(start), end=str(end), zone=zone)
    except InvalidTimeError as problem:
        _warn_once(user_id, problem.code, "none are kept")
        return None
    if given and zone != given[0]:
        _warn_once(user_id, "unknown_timezone", f"kept in {zone}")
    return hours


def _is_zone(name: Any) -> bool:
    return isinstance(name, str) and name in zone_names()


@lru_cache(maxsize=10_000)
def _warn_once(user_id: str | None, problem: str, instead: str) -> None:
    log.warning("quiet_hours_unreadable", user_id=user_id, problem=problem, instead=instead)


def _check_quiet_hours(
    claimed: ClaimedDelivery, quiet: QuietHours | None, now: datetime
) -> Deferred | None:
    exempt = claimed.priority is Priority.CRITICAL or claimed.channel is Channel.IN_APP
    until = quiet.until(now) if quiet and not exempt else None
    return defer_until_quiet_hours_end(claimed, until=until) if until is not None else None


def defer_until_quiet_hours_end(claimed: ClaimedDelivery, *, until: datetime) -> Deferred:
    """Return the wait for the end of quiet hours, or the end of what expires before it."""
    if claimed.expires_at is not None and until >= claimed.expires_at:
        reason = "It would have expired before the quiet hours end."
        return _ended(claimed, S.EXPIRED, FailureCode.QUIET_HOURS, reason)
    return Deferred(
        claimed=claimed,
        status=S.PENDING,
        code=FailureCode.QUIET_HOURS,
        reason="The person's quiet hours.",
        next_attempt_at=until,
    )


def _ended(
    claimed: ClaimedDelivery, status: DeliveryStatus, code: FailureCode, reason: str
) -> Deferred:
    return Deferred(claimed=claimed, status=status, code=code, reason=reason)


def filter_eligible(
    claims: Sequence[ClaimedDelivery], *, now: datetime, has_provider: bool
) -> tuple[list[ClaimedDelivery], list[Deferred]]:
    """Return what is to be sent now, and what is not with the reason."""
    addresses = {
        (c.channel.value, address) for c in claims if (address := c.recipient.address(c.channel))
    }
    user_ids = [c.user_id for c in claims if c.user_id]
    snapshot = recipients.load_snapshot(user_ids, addresses, now=now)
    ready: list[ClaimedDelivery] = []
    deferred: list[Deferred] = []
    for claimed in claims:
        person = snapshot.registered.get(claimed.user_id or "")
        reason = check_eligibility(
            claimed,
            now=now,
            quiet=parse_quiet_hours(
                person.quiet_hours if person else None,
                own_zone=person.timezone if person else None,
                notification_zone=claimed.recipient.timezone,
                user_id=claimed.user_id,
            ),
            suppression=_suppression_reason(claimed, snapshot),
            has_provider=has_provider,
        )
        if reason is None:
            ready.append(claimed)
        else:
            deferred.append(reason)
    return ready, deferred


def _suppression_reason(claimed: ClaimedDelivery, snapshot: RecipientSnapshot) -> str | None:
    type_config = types.find_type(claimed.type)
    reason = snapshot.suppression_of(
        user_id=claimed.user_id,
        channel=claimed.channel.value,
        address=claimed.recipient.address(claimed.channel),
        type_slug=claimed.type,
        category=claimed.category.value,
        is_critical=type_config is not None and type_config.priority is Priority.CRITICAL,
    )
    return "the person has muted it since" if reason == recipients.MUTED else reason
