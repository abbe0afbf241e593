"""Limits: how many messages a recipient gets in a rolling period. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from .states import Category, Channel

MAX_USES = 100
"""Highest maximum of a limit, since the times of all uses are in one document."""
MAX_WAITING = 10
"""Deliveries to one recipient that wait for the same limit at a time."""
MAX_PERIOD = timedelta(days=31)
MIN_PERIOD = timedelta(minutes=1)
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


class Overflow(StrEnum):
    """What becomes of a delivery beyond the limit."""

    LATER = "later"  # It waits until the limit allows it; beyond MAX_WAITING, it is suppressed
    DIGEST = "digest"  # It waits for its type's digest; without one, as with LATER
    DROP = "drop"  # It is suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A rule for every recipient. Without types and categories, it applies to all of them."""

    name: str
    types: frozenset[str] = frozenset()
    categories: frozenset[Category] = frozenset()
    channels: frozenset[Channel]
    maximum: int
    period: timedelta
    """The period rolls: it ends now."""
    min_gap: timedelta = timedelta(0)
    """Least time between two messages."""
    overflow: Overflow

    def applies_to(self, *, type_slug: str, category: Category, channel: Channel) -> bool:
        """Return whether deliveries of a type and category on a channel count."""
        is_any = not self.types and not self.categories
        is_named = type_slug in self.types or category in self.categories
        return channel in self.channels and (is_any or is_named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stricter:
    """A recipient's own maximum and gap for a limit. They apply if they are stricter."""

    maximum: int | None = None
    min_gap: timedelta = timedelta(0)

    def applied_to(self, limit: Limit) -> Limit:
        """Return the limit as it is for this recipient."""
        maximum = limit.maximum if self.maximum is None else min(self.maximum, limit.maximum)
        return replace(limit, maximum=maximum, min_gap=max(self.min_gap, limit.min_gap))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUsage:
    """How much of a limit, as it is for one recipient, is used."""

    limit: Limit
    uses: Sequence[datetime]
    """Times of the messages that count now, oldest first."""
    waiting: int
    next_at: datetime
    """When another message may be sent, after those that wait; now, if it may already."""
    is_stricter: bool = False
    """The recipient has an own maximum or gap."""


def next_free_at(
    limit: Limit, *, uses: Sequence[datetime], position: int, now: datetime
) -> datetime:
    """Return when a delivery may be sent if ``position`` others wait before it.

    ``uses`` are the times of the messages that count.
    """
    recent = sorted(at for at in uses if at > now - limit.period)
    free = limit.maximum - len(recent)
    at = now
    if position >= free:
        # A slot is free again once a use leaves the period; those before it take the first slots.
        rounds, index = divmod(position - free, max(len(recent), 1))
        oldest = recent[index] if recent else now
        at = oldest + limit.period * (rounds + 1)
    if limit.min_gap and recent:
        at = max(at, recent[-1] + limit.min_gap * (position + 1))
    elif limit.min_gap:
        at = max(at, now + limit.min_gap * position)
    return max(at, now)


def describe_use(limit: Limit, *, used: int) -> str:
    """Return how much of a limit is used, such as "3 of 3 in 7 days"."""
    return f"{used} of {limit.maximum} in {describe_period(limit.period)}"


def describe_period(period: timedelta) -> str:
    """Return a period in the largest unit that divides it, such as "7 days" or "1 hour"."""
    seconds = int(period.total_seconds())
    unit, size = next((unit, size) for unit, size in _UNITS if seconds % size == 0)
    count = seconds // size
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
