"""Timestamps, time zones, schedules, expiry, and quiet hours. Pure.

All instants are aware UTC with whole milliseconds, the resolution of MongoDB.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

Clock = Callable[[], datetime]

MIN_REMINDER = timedelta(minutes=1)


MAX_REMINDER = timedelta(days=30)


PAST_TOLERANCE = timedelta(minutes=5)
"""A send time this little in the past means now: clocks differ and queues wait."""


MAX_AHEAD = timedelta(days=365)


MAX_TTL = timedelta(days=30)


# The hours are spelt out: newer Pythons read 24:00 as the next day's midnight.
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"


_TIMESTAMP = re.compile(
    rf"(\d{{4}}-\d{{2}}-\d{{2}})[Tt]({_CLOCK}:[0-5]\d)(?:\.(\d{{1,9}}))?([Zz]|[+-]{_CLOCK})",
    re.ASCII,
)


_LOCAL = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}T{_CLOCK}(:[0-5]\d)?", re.ASCII)


_WITHOUT_OFFSET = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?", re.ASCII)


_WALL_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class InvalidTimeError(ValueError):
    """A time that cannot be used. ``code`` is for programs, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def utc_now() -> datetime:
    """Return the present, aware UTC, whole milliseconds."""
    return truncate_to_milliseconds(datetime.now(UTC))


def truncate_to_milliseconds(instant: datetime) -> datetime:
    """Return ``instant`` cut to whole milliseconds."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def parse_timestamp(text: str) -> datetime:
    """Return the UTC instant that RFC 3339 ``text`` names; finer than a millisecond is cut off.

    Raises InvalidTimeError for anything else, a timestamp without an offset included.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        if _WITHOUT_OFFSET.fullmatch(text):
            raise InvalidTimeError(
                "naive_datetime",
                "A time zone is missing: write 2026-12-01T09:00:00Z or +01:00.",
            )
        raise InvalidTimeError("invalid_datetime", "Expected a time such as 2026-12-01T09:00:00Z.")
    day, clock, fraction, offset = match.groups()
    zone = "+00:00" if offset in "Zz" else offset
    milliseconds = (fraction or "0").ljust(3, "0")[:3]
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{milliseconds}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidTimeError("invalid_datetime", "There is no such date or time.") from None


def parse_zone(name: str) -> ZoneInfo:
    """Return the IANA time zone of this name; raises InvalidTimeError if there is none."""
    # ZoneInfo takes the name for a path: only names from the database's own list are tried.
    if name not in zone_names():
        raise InvalidTimeError("unknown_timezone", "Expected an IANA zone such as Europe/Lisbon.")
    return ZoneInfo(name)


def resolve_send_at(*, requested: datetime | None, now: datetime) -> datetime:
    """Return when to send: ``requested``, or now if that is None or up to five minutes past.

    Raises InvalidTimeError further in the past or over 365 days ahead.
    """
    if requested is None or now - PAST_TOLERANCE <= requested <= now:
        return now
    if requested < now:
        raise InvalidTimeError("in_the_past", "The time lies more than 5 minutes in the past.")
    if requested > now + MAX_AHEAD:
        raise InvalidTimeError("too_far_ahead", "The time lies more than 365 days ahead.")
    return requested


def resolve_reminder(*, event_at: datetime, lead_time: timedelta, now: datetime) -> datetime:
    """Return when to remind of an event: so long before it, or now if that is past.

    Raises InvalidTimeError once the event has begun, or over 365 days ahead.
    """
    if event_at <= now:
        raise InvalidTimeError(
            "in_the_past", "The event has begun: nobody is reminded of it any more."
        )
    return resolve_send_at(requested=max(event_at - lead_time, now), now=now)


def resolve_expiry(
    *, send_at: datetime, ttl_seconds: int | None, expires_at: datetime | None
) -> datetime | None:
    """Return the instant from which nothing may be sent any more; None if it never expires.

    Raises InvalidTimeError if it is not after ``send_at``, or the ttl is not from 1 s to 30 days.
    """
    if ttl_seconds is not None:
        if not 0 < ttl_seconds <= MAX_TTL.total_seconds():
            raise InvalidTimeError("invalid_ttl", "ttl is in seconds: from 1 to 2592000 (30 days).")
        return send_at + timedelta(seconds=ttl_seconds)
    if expires_at is not None and expires_at <= send_at:
        raise InvalidTimeError("expires_before_sending", "It would expire before it is sent.")
    return expires_at


@dataclass(frozen=True, slots=True)
class ResolvedTime:
    """An instant found for a local time; ``is_adjusted`` if that local time does not exist."""

    at: datetime
    is_adjusted: bool


def parse_local(text: str) -> datetime:
    """Return the naive local time ``2026-03-29T01:30`` names; raises InvalidTimeError."""
    if not _LOCAL.fullmatch(text):
        raise InvalidTimeError(
            "invalid_datetime", "Expected a local time such as 2026-12-01T09:00."
        )
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidTimeError("invalid_datetime", "There is no such date or time.") from None


def resolve_local(local: datetime, zone: tzinfo) -> ResolvedTime:
    """Return the instant of a naive local time.

    A time that happens twice is the first; one a clock change skips is the first instant after.
    Raises InvalidTimeError if that is beyond the calendar.
    """
    try:
        instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    except OverflowError:
        raise InvalidTimeError("invalid_datetime", "There is no such date or time.") from None
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return ResolvedTime(instant, is_adjusted=False)
    return ResolvedTime(_end_of_gap(local, zone), is_adjusted=True)


def _end_of_gap(local: datetime, zone: tzinfo) -> datetime:
    """Return the instant at which the clock jumps over ``local``, to the second."""
    # In a gap fold=1 reads the clock as if already changed, an earlier instant than fold=0: the
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


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A daily span of local time in which a person is left alone: start included, end not."""

    start: time
    end: time
    zone: ZoneInfo

    @classmethod
    def parse(cls, *, start: str, end: str, zone: str) -> "QuietHours":
        """Return quiet hours from ``22:00``, ``07:00`` and a time zone; raises InvalidTimeError."""
        begins, ends = _parse_wall_clock(start), _parse_wall_clock(end)
        if begins == ends:
            raise InvalidTimeError("empty_quiet_hours", "Quiet hours cannot start when they end.")
        return cls(start=begins, end=ends, zone=parse_zone(zone))

    def until(self, now: datetime) -> datetime | None:
        """Return the instant at which the quiet hours that hold ``now`` end; None outside them."""
        local = now.astimezone(self.zone)
        clock = local.time()
        if self.start < self.end:
            is_quiet, days = self.start <= clock < self.end, 0
        else:
            is_quiet, days = (
                clock >= self.start or clock < self.end,
                int(clock >= self.start),
            )
        if not is_quiet:
            return None
        return self._end_instant(local.date() + timedelta(days=days), now)

    def _end_instant(self, day: date, now: datetime) -> datetime:
        end = datetime.combine(day, self.end)
        first = resolve_local(end, self.zone).at
        if first > now:
            return first
        # The clock was set back after the first time it showed the end: wait for the second.
        return end.replace(tzinfo=self.zone, fold=1).astimezone(UTC)


@cache
def zone_names() -> frozenset[str]:
    """Return every IANA zone name known here, read once."""
    return frozenset(available_timezones())


def _parse_wall_clock(text: str) -> time:
    match = _WALL_CLOCK.fullmatch(text)
    if match is None:
        raise InvalidTimeError("invalid_time", "Expected a time of day such as 22:00.")
    return time(int(match[1]), int(match[2]))
