"""What keeps a claimed delivery from being sent now: expiry, quiet hours, suppression. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .errors import FailureCode
from .states import Category, Channel, DeliveryStatus, Priority
from .store import Claimed, Parked
from .timing import QuietHours, TimeProblem

MAX_CLAIMS = 3
"""A delivery that was claimed this often and never came to sending has killed its workers."""
ADDRESSED = frozenset({Channel.EMAIL, Channel.WHATSAPP})
S = DeliveryStatus


def check(
    claimed: Claimed,
    *,
    now: datetime,
    quiet: QuietHours | None,
    suppression: str | None,
    has_provider: bool,
) -> Parked | None:
    """Return why this delivery is not to be sent now, or None if it is.

    ``suppression`` is the reason why its address gets nothing of this category.
    """
    if claimed.expires_at is not None and now >= claimed.expires_at:
        return _ended(claimed, S.EXPIRED, FailureCode.EXPIRED, "Its time was over.")
    if claimed.claim_count > MAX_CLAIMS:
        reason = "Three workers took it and none came back."
        return _ended(claimed, S.FAILED, FailureCode.QUARANTINED, reason)
    if not has_provider:
        reason = f"No provider is set up for {claimed.channel}."
        return _ended(claimed, S.FAILED, FailureCode.CHANNEL_UNAVAILABLE, reason)
    if claimed.channel in ADDRESSED and not claimed.recipient.address(claimed.channel):
        return _ended(claimed, S.FAILED, FailureCode.NO_ADDRESS, "There is no address for it.")
    if suppression is not None:
        reason = f"The address is suppressed: {suppression}."
        return _ended(claimed, S.SUPPRESSED, FailureCode.SUPPRESSED, reason)
    return _quiet(claimed, quiet, now)


def applies(claimed: Claimed, *, marketing_only: bool) -> bool:
    """Return whether a suppression holds this delivery back."""
    return not marketing_only or claimed.category is Category.MARKETING


def quiet_hours(
    stored: Mapping[str, Any] | None, *, own_zone: str | None, sent_zone: str | None
) -> QuietHours | None:
    """Return a person's quiet hours, in their own zone if none is stored with them; None if off."""
    if not stored or not stored.get("enabled"):
        return None
    # Checked when stored; what an older release stored must not stop a whole batch.
    start, end = stored.get("start"), stored.get("end")
    zone = stored.get("timezone") or own_zone or sent_zone or "UTC"
    if not (isinstance(start, str) and isinstance(end, str)):
        return None
    try:
        return QuietHours.parse(start=start, end=end, zone=zone)
    except TimeProblem:
        return None


def _quiet(claimed: Claimed, quiet: QuietHours | None, now: datetime) -> Parked | None:
    exempt = claimed.priority is Priority.CRITICAL or claimed.channel is Channel.IN_APP
    until = quiet.until(now) if quiet and not exempt else None
    if until is None:
        return None
    if claimed.expires_at is not None and until >= claimed.expires_at:
        reason = "It would have expired before the quiet hours end."
        return _ended(claimed, S.EXPIRED, FailureCode.QUIET_HOURS, reason)
    return Parked(
        claimed=claimed,
        status=S.PENDING,
        code=FailureCode.QUIET_HOURS,
        reason="The person's quiet hours.",
        next_attempt_at=until,
    )


def _ended(claimed: Claimed, status: DeliveryStatus, code: FailureCode, reason: str) -> Parked:
    return Parked(claimed=claimed, status=status, code=code, reason=reason)
