"""Digests: messages of one type to one recipient that are sent as one. Pure.

A *member* is a delivery that waits for a digest. The *carrier* is the notification that is sent in
its place. A window ends some time after its first member, or at times of a schedule.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from .channels import Channel
from .time import resolve_local
from .zones import first_known_zone

CLOSE_GRACE = timedelta(seconds=5)
"""Time after a window's end in which members that joined just before it are still stored."""
RECHECK = timedelta(minutes=10)
"""Time after a window's end at which a member that its digest missed joins another one."""
MAX_SLIDES = 4
"""A sliding window ends at the latest this many windows after its first member."""
MIN_MINUTES = 1
MAX_MINUTES = 7 * 24 * 60
MAX_ITEMS = 100
"""Highest number of members that a template can list. The others are only counted."""
_MINUTE = timedelta(minutes=1)
_ID_LENGTH = 24


class Every(StrEnum):
    """How often a schedule ends a window."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


class DigestStatus(StrEnum):
    """The status of a digest."""

    OPEN = "open"
    CLOSING = "closing"
    """No member joins any more. Which ones it has isn't fixed yet."""
    SEALED = "sealed"
    """Members and outcome are fixed. The writes that follow may be repeated."""
    CLOSED = "closed"


class DigestOutcome(StrEnum):
    """The result of a closed digest."""

    SENT = "sent"
    """Its carrier is stored."""
    SEPARATE = "separate"
    """Its members are sent one by one: there are too few, or the template can't be rendered."""
    EMPTY = "empty"
    """No member was left."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Local times at which windows end."""

    every: Every
    at: time
    """Time of day; for an hourly schedule, its minute."""
    days: frozenset[int] = frozenset()
    """Days of the week, 0 for Monday; empty: all, or Monday for a weekly schedule."""
    zone: str | None = None
    """IANA time zone; None: the recipient's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The digest of a type."""

    channels: tuple[Channel, ...]
    window: timedelta | Schedule
    key: str | None = None
    """Variable whose values have digests of their own; None: one digest for all."""
    is_leading: bool = False
    """The first message is sent at once, and only those that follow in its window wait."""
    is_sliding: bool = False
    """Each member moves the end of the window."""
    max_items: int = 20
    min_items: int = 2
    is_only_over_limit: bool = False
    """Only messages that a limit refuses are members."""


def window_end(window: timedelta | Schedule, *, now: datetime, recipient_zone: str) -> datetime:
    """Return when a window that a message opens now ends."""
    if isinstance(window, timedelta):
        return now + window
    return next_time(window, now=now, zone=ZoneInfo(first_known_zone(window.zone, recipient_zone)))


def next_time(schedule: Schedule, *, now: datetime, zone: ZoneInfo) -> datetime:
    """Return the schedule's first time after ``now``.

    A local time that a clock change skips is the first instant after the change. One that occurs
    twice counts once, at its first occurrence.
    """
    if schedule.every is Every.HOUR:
        at = now.replace(second=0, microsecond=0)
        while at <= now or at.astimezone(zone).minute != schedule.at.minute:
            at += _MINUTE
        return at
    days = schedule.days or (
        frozenset({0}) if schedule.every is Every.WEEK else frozenset(range(7))
    )
    date = now.astimezone(zone).date()
    while True:
        if date.weekday() in days:
            at = resolve_local(datetime.combine(date, schedule.at), zone).at
            if at > now:
                return at
        date += timedelta(days=1)


def group_id(*parts: str) -> str:
    """Return the ID of the group whose messages are sent as one."""
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def scheduled_id(group: str, *, ends_at: datetime, number: int) -> str:
    """Return the ID of a group's digest of one scheduled window, as 24 hex digits.

    ``number`` counts those of the same window, of which all but the last were closed early.
    """
    return group_id(group, ends_at.isoformat(), str(number))[:_ID_LENGTH]


def carrier_id(digest_id: str) -> str:
    """Return the ID of a digest's carrier, as 24 hex digits."""
    return group_id("carrier", digest_id)[:_ID_LENGTH]
