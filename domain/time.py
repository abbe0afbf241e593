"""Timestamps, time zones, schedules, and expiry. Times are aware UTC, in ms. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from .zones import explain_unknown, find_zone_name

Clock = Callable[[], datetime]
MIN_REMINDER = timedelta(minutes=1)
MAX_REMINDER = timedelta(days=30)
PAST_TOLERANCE = timedelta(minutes=5)
"""A send time up to this long past counts as now: clocks differ, and requests queue."""
MIN_SNOOZE = timedelta(minutes=1)
MAX_SNOOZE = timedelta(days=90)
MAX_AHEAD = timedelta(days=365)
MAX_TTL = timedelta(days=30)
# An explicit hour range: newer Pythons parse 24:00 as midnight of the next day.
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIMESTAMP = re.compile(
    rf"(\d{{4}}-\d{{2}}-\d{{2}})[Tt]({_CLOCK}:[0-5]\d)(?:\.(\d{{1,9}}))?([Zz]|[+-]{_CLOCK})",
    re.ASCII,
)
_LOCAL = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}T{_CLOCK}(:[0-5]\d)?", re.ASCII)
_WITHOUT_OFFSET = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?", re.ASCII)
_DURATION = re.compile(
    r"(?:(\d{1,4})w)?(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,8})s)?", re.ASCII
)
_WALL_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class InvalidTimeError(ValueError):
    """An invalid time, with a code for programs and a message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def utc_now() -> datetime:
    """Return the current time as aware UTC in whole milliseconds."""
    return truncate_to_milliseconds(datetime.now(UTC))


def truncate_to_milliseconds(instant: datetime) -> datetime:
    """Return ``instant`` truncated to whole milliseconds."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def parse_timestamp(text: str) -> datetime:
    """Parse an RFC 3339 timestamp with an offset into UTC milliseconds. Raises InvalidTimeError."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        if _WITHOUT_OFFSET.fullmatch(text):
            raise InvalidTimeError(
                "naive_datetime", "A time zone is missing: write 2026-12-01T09:00:00Z or +01:00."
            )
        raise InvalidTimeError("invalid_datetime", "Expected a time such as 2026-12-01T09:00:00Z.")
    day, clock, fraction, offset = match.groups()
    zone = "+00:00" if offset in "Zz" else offset
    milliseconds = (fraction or "0").ljust(3, "0")[:3]
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{milliseconds}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidTimeError("invalid_datetime", "Invalid date or time.") from None


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as ``90s``, ``2h``, or ``1d12h``. Raises InvalidTimeError."""
    match = _DURATION.fullmatch(text)
    weeks, days, hours, minutes, seconds = (
        int(part or 0) for part in (match.groups() if match else ("",) * 5)
    )
    found = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    if not found:
        raise InvalidTimeError(
            "invalid_duration", "Expected a duration such as 90s, 20m, 2h, 3d, or 1d12h."
        )
    return found


def parse_zone(name: str) -> ZoneInfo:
    """Return the time zone with this name, whose ``key`` is IANA's. Raises InvalidTimeError."""
    # ZoneInfo opens a file of this name, so only known names may reach it.
    known = find_zone_name(name)
    if known is None:
        raise InvalidTimeError("unknown_timezone", explain_unknown(name))
    return ZoneInfo(known)


def resolve_send_at(*, requested: datetime | None, now: datetime) -> datetime:
    """Return ``requested``, or now if None or just past. Raises InvalidTimeError."""
    if requested is None or now - PAST_TOLERANCE <= requested <= now:
        return now
    if requested < now:
        raise InvalidTimeError("in_the_past", "The time lies more than 5 minutes in the past.")
    if requested > now + MAX_AHEAD:
        raise InvalidTimeError("too_far_ahead", "The time lies more than 365 days ahead.")
    return requested


def resolve_reminder(*, event_at: datetime, lead_time: timedelta, now: datetime) -> datetime:
    """Return ``lead_time`` before the event, at the earliest now. Raises InvalidTimeError."""
    if event_at <= now:
        raise InvalidTimeError("in_the_past", "The event has already begun.")
    return resolve_send_at(requested=max(event_at - lead_time, now), now=now)


def resolve_snooze(*, until: datetime, now: datetime) -> datetime:
    """Return the end of a snooze. Raises InvalidTimeError unless it is a minute to 90 days away."""
    if not MIN_SNOOZE <= until - now <= MAX_SNOOZE:
        raise InvalidTimeError("out_of_range", "Must be a minute to 90 days from now.")
    return until


def resolve_expiry(
    *, send_at: datetime, ttl_seconds: int | None, expires_at: datetime | None
) -> datetime | None:
    """Return when a notification expires, or None for never. Raises InvalidTimeError."""
    if ttl_seconds is not None:
        if not 0 < ttl_seconds <= MAX_TTL.total_seconds():
            raise InvalidTimeError("invalid_ttl", "ttl is in seconds: from 1 to 2592000 (30 days).")
        return send_at + timedelta(seconds=ttl_seconds)
    if expires_at is not None and expires_at <= send_at:
        raise InvalidTimeError("expires_before_sending", "Expires before the send time.")
    return expires_at


@dataclass(frozen=True, slots=True)
class ResolvedTime:
    """The instant of a local time. ``is_adjusted`` if a clock change skips that local time."""

    at: datetime
    is_adjusted: bool


def parse_local(text: str) -> datetime:
    """Parse a naive local time such as ``2026-03-29T01:30``. Raises InvalidTimeError."""
    if not _LOCAL.fullmatch(text):
        raise InvalidTimeError(
            "invalid_datetime", "Expected a local time such as 2026-12-01T09:00."
        )
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidTimeError("invalid_datetime", "Invalid date or time.") from None


def resolve_local(local: datetime, zone: tzinfo) -> ResolvedTime:
    """Return the instant of a naive local time. Raises InvalidTimeError.

    For an ambiguous time, the first occurrence is returned. For a time that a clock change skips,
    the first instant after the change is returned.
    """
    try:
        instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    except OverflowError:
        raise InvalidTimeError("invalid_datetime", "Invalid date or time.") from None
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return ResolvedTime(instant, is_adjusted=False)
    return ResolvedTime(_end_of_gap(local, zone), is_adjusted=True)


def _end_of_gap(local: datetime, zone: tzinfo) -> datetime:
    # In a gap, fold=1 applies the new offset and gives an earlier instant than fold=0: the
    # change lies between them.
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    after = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    old_offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = truncate_to_milliseconds(before + (after - before) / 2).replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == old_offset:
            before = middle
        else:
            after = middle
    return after


def parse_wall_clock(text: str) -> time:
    """Parse a time of day such as ``22:00``. Raises InvalidTimeError."""
    match = _WALL_CLOCK.fullmatch(text)
    if match is None:
        raise InvalidTimeError("invalid_time", "Expected a time of day such as 22:00.")
    return time(int(match[1]), int(match[2]))
