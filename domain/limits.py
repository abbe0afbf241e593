"""Limits: how many messages a recipient gets in a rolling period. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from .channels import Channel
from .states import Category

MAX_USES = 100
"""Highest maximum of a limit, since the times of all uses are in one document."""
MAX_WAITING = 10
"""Deliveries to one recipient that wait for the same limit at a time."""
MAX_PERIOD = timedelta(days=31)
MIN_PERIOD = timedelta(minutes=1)
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


class Overflow(StrEnum):
    """What happens to a delivery beyond the limit."""

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
    """Minimum time between two messages."""
    overflow: Overflow
    counts_addresses: bool = False
    """Whether it counts what an address gets, whoever asks for it, and not what a person gets."""

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


def next_allowed(limit: Limit, *, taken: Sequence[datetime], not_before: datetime) -> datetime:
    """Return the first time at which a limit allows one more message.

    ``taken`` are the times of the other messages: those that were sent, and those that are planned.
    """
    times = sorted(taken)
    candidates = {not_before, *(at + limit.period for at in times)}
    if limit.min_gap:
        candidates |= {at + limit.min_gap for at in times}
    for at in sorted(candidates):
        if at >= not_before and _is_allowed(limit, times, at):
            return at
    # A maximum of zero allows none.
    return not_before + limit.period


def _is_allowed(limit: Limit, times: Sequence[datetime], at: datetime) -> bool:
    place = bisect_left(times, at)
    if limit.min_gap:
        # The neighbors are the nearest.
        near = times[max(place - 1, 0) : place + 1]
        if any(abs(at - other) < limit.min_gap for other in near):
            return False
    with_it = [*times[:place], at, *times[place:]]
    first = max(place - limit.maximum, 0)
    last = min(place, len(with_it) - 1 - limit.maximum)
    return all(
        with_it[index + limit.maximum] - with_it[index] >= limit.period
        for index in range(first, last + 1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEntry:
    """A delivery that waits in the line of a limit."""

    delivery_id: str
    due_at: datetime
    """When it was first due. The line is in this order."""
    until: datetime
    """When all of its limits allow it, by plan."""
    is_refused: bool = True
    """This limit refuses it now. If not, another one does, and it only keeps its place."""
    is_counted: bool = True
    """It takes the slot of its plan. False while an outage or a daily cap holds it."""

    @property
    def order(self) -> tuple[datetime, str]:
        """The key by which the line is sorted."""
        return self.due_at, self.delivery_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The state of one limit for one recipient."""

    limit: Limit
    """The limit as it is for this recipient."""
    uses: Sequence[tuple[str, datetime]]
    """The delivery and the time of each message that was sent or is being sent."""
    line: Sequence[LineEntry]

    def other_uses(self, delivery_id: str, *, now: datetime) -> list[datetime]:
        """Return the times of the uses in the period by other deliveries."""
        since = now - self.limit.period
        return [at for use, at in self.uses if use != delivery_id and at > since]

    def before(self, order: tuple[datetime, str]) -> list[LineEntry]:
        """Return the deliveries that come before one in this order, and take a slot.

        None where a message is dropped rather than delayed: a newer one, such as the code that an
        app takes now, isn't dropped in favour of older ones that may be dropped at their turn.
        """
        if self.limit.overflow is Overflow.DROP:
            return []
        return [place for place in self.line if place.order < order and place.is_counted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When all limits of a delivery allow it."""

    at: datetime
    refusing: Sequence[Counter]
    """The limits that refuse it now. Empty if it may be sent."""
    decisive: Counter | None
    """The limit that refuses it the longest."""

    @property
    def is_dropped(self) -> bool:
        """Whether a limit suppresses it."""
        return any(refusal.limit.overflow is Overflow.DROP for refusal in self.refusing)

    def is_line_full(self, delivery_id: str) -> bool:
        """Return whether as many others wait for a limit that refuses it as may wait."""
        return any(
            sum(
                1 for place in counter.line if place.is_refused and place.delivery_id != delivery_id
            )
            >= MAX_WAITING
            and not any(
                place.is_refused and place.delivery_id == delivery_id for place in counter.line
            )
            for counter in self.refusing
        )


def plan(counters: Sequence[Counter], *, delivery_id: str, due_at: datetime, now: datetime) -> Plan:
    """Return when a delivery may be sent under several limits at once.

    It comes after the deliveries that stand before it in any line, and takes a slot that none of
    them needs.
    """
    order = due_at, delivery_id
    taken = [
        [
            *counter.other_uses(delivery_id, now=now),
            *(max(other.until, now) for other in counter.before(order)),
        ]
        for counter in counters
    ]
    at, refusing, decisive = now, [], None
    if never := [counter for counter in counters if counter.limit.maximum < 1]:
        # It waits a period at a time, until the limit is another one.
        longest = max(never, key=lambda counter: counter.limit.period)
        return Plan(at=now + longest.limit.period, refusing=never, decisive=longest)
    while True:
        times = [
            next_allowed(counter.limit, taken=own, not_before=at)
            for counter, own in zip(counters, taken, strict=True)
        ]
        if at == now:
            refusing = [
                counter for counter, next_at in zip(counters, times, strict=True) if next_at > now
            ]
        latest = max(times, default=at)
        if latest == at:
            return Plan(at=at, refusing=refusing, decisive=decisive)
        at, decisive = latest, counters[times.index(latest)]


def describe_plan(planned: Plan, *, delivery_id: str, due_at: datetime, now: datetime) -> str:
    """Return which limit a delivery waits for: "1 of 2 in 7 days, 1 waits before it (limit x)."."""
    counter = planned.decisive
    if counter is None:
        return ""
    limit, used = counter.limit, len(counter.other_uses(delivery_id, now=now))
    is_full = planned.is_line_full(delivery_id)
    before = 0 if is_full else len(counter.before((due_at, delivery_id)))
    text = describe_use(limit, used=used)
    if used + before < limit.maximum and limit.min_gap:
        text += f", {describe_period(limit.min_gap)} between two"
    if before:
        text += f", {before} {'waits' if before == 1 else 'wait'} before it"
    return f"{text} (limit {limit.name})."


def describe_use(limit: Limit, *, used: int) -> str:
    """Return how much of a limit is used, such as "3 of 3 in 7 days"."""
    return f"{used} of {limit.maximum} in {describe_period(limit.period)}"


def describe_period(period: timedelta) -> str:
    """Return a period in the largest unit that divides it, such as "7 days" or "1 hour"."""
    seconds = int(period.total_seconds())
    unit, size = next((unit, size) for unit, size in _UNITS if seconds % size == 0)
    count = seconds // size
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
