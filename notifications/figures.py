"""How it goes: what the home page and the list of failures count.

What happened comes from the figures of the hours. What waits is counted as it is now: each read is
served by an index and capped, so that a page stays quick on a busy day, and what is capped says so.
A test explains each.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from analytics import metrics, rollup_state
from analytics.models import Interval
from domain.states import Channel, DeliveryStatus, NotificationStatus, Priority
from notifyproject.db.collections import collection

from . import queries
from .recovery import last_sweep
from .rollup.names import Metric

M = Metric

FAILURE_CAP = 5_000
"""Failed notifications that errors are grouped from."""
HOURS = 24
REAL: Mapping[str, Any] = {"is_test": {"$ne": True}}
"""What holds for all but the tests of API clients in test mode."""
S = DeliveryStatus
COUNTED = (M.ACCEPTED, M.SENT, M.DELIVERED, M.READ, M.FAILED, M.LATENCY)


@dataclass(slots=True)
class Tally:
    """Deliveries by what became of them, and how long they waited."""

    counts: Counter[Metric] = field(default_factory=Counter)
    waits: list[int] = field(default_factory=metrics.empty)

    @property
    def accepted(self) -> int:
        """Asked for."""
        return self.counts[M.ACCEPTED]

    @property
    def sent(self) -> int:
        """Accepted by a provider, whatever came after, a failure aside."""
        return self.counts[M.SENT]

    @property
    def delivered(self) -> int:
        """Known to have arrived."""
        return self.counts[M.DELIVERED]

    @property
    def read(self) -> int:
        """Known to have been opened."""
        return self.counts[M.READ]

    @property
    def failed(self) -> int:
        """Given up, or bounced."""
        return self.counts[M.FAILED]

    @property
    def total(self) -> int:
        """All that happened."""
        return self.accepted + self.sent + self.failed

    @property
    def success_rate(self) -> float | None:
        """Sent, as a share of sent and failed; None before the first of either."""
        ended = self.sent + self.failed
        return self.sent / ended if ended else None

    def wait(self, share: float) -> float | None:
        """Return the seconds from when it was due in which this share of what was sent went."""
        return metrics.quantile(self.waits, share)

    def add(self, other: "Tally") -> None:
        """Add another tally to this one."""
        self.counts.update(other.counts)
        self.waits = metrics.add(self.waits, other.waits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What happened in the last 24 clock hours, this one included."""

    hours: Mapping[datetime, Mapping[Channel, Tally]]
    """The oldest first; each hour is there."""
    counted_at: datetime | None
    """How old the figures are; None if nothing was ever counted."""

    def per_channel(self, *, since: datetime) -> dict[Channel, Tally]:
        """Return the channels' sums over the hours from ``since`` on."""
        sums = {channel: Tally() for channel in Channel}
        for hour, channels in self.hours.items():
            if hour >= since:
                for channel, tally in channels.items():
                    sums[channel].add(tally)
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures with one cause."""

    channel: Channel
    code: str
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failures of a span, grouped, the most frequent first."""

    groups: Sequence[FailureGroup]
    counted_since: datetime | None
    """Only failures from here on are counted: there were more than the cap."""

    @property
    def total(self) -> int:
        """All of them."""
        return sum(group.count for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Work that waits. A count that reaches its cap means at least that many."""

    due: int
    """Due and not taken by a worker, or in a worker's hands."""
    oldest_due_at: datetime | None
    scheduled: int
    """Notifications whose time has not come."""
    retrying: int
    """Notifications with a channel that waits for another try."""
    unknown: int
    """Notifications with a channel of which nobody can tell whether it went."""
    last_sweep: datetime | None


def traffic(*, now: datetime) -> Traffic:
    """Return what happened in the last 24 clock hours, from the figures of the hours."""
    last_hour = metrics.begin(Interval.HOUR, now)
    first_hour = last_hour - timedelta(hours=HOURS - 1)
    hours = {
        first_hour + timedelta(hours=n): {channel: Tally() for channel in Channel}
        for n in range(HOURS)
    }
    found = metrics.read_summed(
        Interval.HOUR, since=first_hour, until=now, metrics=COUNTED, by=("channel",)
    )
    for figure in found:
        tally = hours[figure.timestamp][Channel(figure.dimensions["channel"])]
        tally.counts[Metric(figure.metric)] += int(figure.value)
        if figure.histogram is not None:
            tally.waits = metrics.add(tally.waits, figure.histogram)
    return Traffic(hours=hours, counted_at=rollup_state.counted_at())


def failures(
    *, since: datetime, until: datetime | None = None, match: Mapping[str, Any] | None = None
) -> Failures:
    """Return the failures of a span by channel and code; ``match`` narrows them by other fields.

    A notification counts once for each channel that failed in the span.
    """
    span = {"$gte": since} | ({"$lt": until} if until is not None else {})
    found = list(
        collection("notifications").aggregate(
            [
                # The notification's own time is that of its last failure.
                {"$match": {"failed_at": span, **(match or {})}},
                {"$sort": {"failed_at": -1, "_id": -1}},
                {"$limit": FAILURE_CAP},
                {"$project": {"failed_at": 1, "delivery": 1}},
                {"$unwind": "$delivery"},
                {"$match": {"delivery.status": S.FAILED.value, "delivery.failed_at": span}},
                {
                    "$group": {
                        "_id": {
                            "channel": "$delivery.channel",
                            "code": "$delivery.failure_code",
                        },
                        "count": {"$sum": 1},
                        "first_at": {"$min": "$delivery.failed_at"},
                        "last_at": {"$max": "$delivery.failed_at"},
                    }
                },
                {"$sort": {"count": -1, "last_at": -1}},
            ],
            hint="ntf_failed",
        )
    )
    groups = [
        FailureGroup(
            channel=Channel(row["_id"]["channel"]),
            code=row["_id"]["code"],
            count=row["count"],
            first_at=row["first_at"],
            last_at=row["last_at"],
        )
        for row in found
    ]
    reached_cap = sum(group.count for group in groups) >= FAILURE_CAP
    oldest = min((group.first_at for group in groups), default=None)
    return Failures(groups=groups, counted_since=oldest if reached_cap else None)


def backlog(*, now: datetime, cap: int | None = None) -> Backlog:
    """Return what waits, and since when; tests of API clients in test mode aside.

    Each count ends at ``cap``, or at ``queries.COUNT_CAP``: it reads what it counts.
    """
    most = cap or queries.COUNT_CAP
    oldest = [at for priority in Priority if (at := _oldest_due(priority, now)) is not None]
    priorities = {"$in": [priority.value for priority in Priority]}
    in_doubt = {"channel": {"$in": [c.value for c in Channel]}, "status": S.UNKNOWN.value}
    return Backlog(
        due=_count({"priority": priorities, "due_at": {"$lte": now}}, "ntf_due", most)
        if oldest
        else 0,
        oldest_due_at=min(oldest, default=None),
        scheduled=_count({"status": NotificationStatus.CREATED.value}, "ntf_status_created", most),
        retrying=_count({"status": NotificationStatus.RETRYING.value}, "ntf_status_created", most),
        unknown=_count({"delivery": {"$elemMatch": in_doubt}}, "ntf_delivery_status", most),
        last_sweep=last_sweep(),
    )


def _oldest_due(priority: Priority, now: datetime) -> datetime | None:
    found = collection("notifications").find_one(
        {"priority": priority.value, "due_at": {"$lte": now}, **REAL},
        {"due_at": 1, "_id": 0},
        sort=[("due_at", 1)],
        hint="ntf_due",
    )
    return found["due_at"] if found else None


def _count(wanted: dict[str, Any], index: str, most: int) -> int:
    return collection("notifications").count_documents(wanted | dict(REAL), limit=most, hint=index)
