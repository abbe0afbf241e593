"""How it goes: what the home page and the list of failures count.

Each read is served by an index and capped, so that a page stays quick on a busy day; what is capped
says so. A test explains each.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from notifyproject.db.collections import collection

from . import queries
from .recovery import last_sweep
from .states import OPEN, SUCCEEDED, Channel, DeliveryStatus, Status

TRAFFIC_CAP = 20_000
"""Notifications that the traffic is counted from: about 100 ms."""
FAILURE_CAP = 5_000
"""Failed notifications that errors are grouped from."""
HOURS = 24
S = DeliveryStatus
_DELIVERED = frozenset({S.DELIVERED, S.READ})


@dataclass(slots=True)
class Tally:
    """Deliveries by what became of them."""

    by_status: Counter[DeliveryStatus] = field(default_factory=Counter)

    @property
    def sent(self) -> int:
        """Accepted by a provider, whatever came after."""
        return self._sum(SUCCEEDED)

    @property
    def delivered(self) -> int:
        """Known to have arrived."""
        return self._sum(_DELIVERED)

    @property
    def failed(self) -> int:
        """Given up, or bounced."""
        return self._sum({S.FAILED})

    @property
    def open(self) -> int:
        """Still to be done."""
        return self._sum(OPEN)

    @property
    def total(self) -> int:
        """All of them."""
        return self.by_status.total()

    @property
    def success_rate(self) -> float | None:
        """Sent, as a share of sent and failed; None before the first of either."""
        ended = self.sent + self.failed
        return self.sent / ended if ended else None

    def add(self, other: "Tally") -> None:
        """Add another tally to this one."""
        self.by_status.update(other.by_status)

    def _sum(self, statuses: frozenset[DeliveryStatus] | set[DeliveryStatus]) -> int:
        return sum(self.by_status[status] for status in statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Deliveries of the notifications accepted in the last 24 clock hours, this one included."""

    hours: Mapping[datetime, Mapping[Channel, Tally]]
    """By the hour they were accepted in, the oldest first; each hour is there."""
    counted_since: datetime | None
    """Only what was accepted from here on is counted: there was more than the cap."""

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
    """Work that waits. A count that reaches ``queries.COUNT_CAP`` means at least that many."""

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
    """Return what became of the notifications accepted in the last 24 clock hours."""
    last_hour = now.replace(minute=0, second=0, microsecond=0)
    first_hour = last_hour - timedelta(hours=HOURS - 1)
    found = collection("notifications").aggregate(
        [
            {"$match": {"created_at": {"$gte": first_hour}}},
            {"$sort": {"created_at": -1, "_id": -1}},
            {"$limit": TRAFFIC_CAP},
            # Grouped by the arrays as they are: there are few combinations, and unwinding first
            # would copy every document.
            {
                "$group": {
                    "_id": {
                        "hour": {"$dateTrunc": {"date": "$created_at", "unit": "hour"}},
                        "channels": "$delivery.channel",
                        "statuses": "$delivery.status",
                    },
                    "count": {"$sum": 1},
                    "since": {"$min": "$created_at"},
                }
            },
        ],
        hint="ntf_created",
    )
    hours: dict[datetime, dict[Channel, Tally]] = {
        first_hour + timedelta(hours=n): {channel: Tally() for channel in Channel}
        for n in range(HOURS)
    }
    seen, oldest = 0, now
    for row in found:
        seen, oldest = seen + row["count"], min(oldest, row["since"])
        channels = hours.setdefault(row["_id"]["hour"], {channel: Tally() for channel in Channel})
        for channel, status in zip(row["_id"]["channels"], row["_id"]["statuses"], strict=True):
            channels[Channel(channel)].by_status[DeliveryStatus(status)] += row["count"]
    return Traffic(hours=hours, counted_since=oldest if seen >= TRAFFIC_CAP else None)


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


def backlog(*, now: datetime) -> Backlog:
    """Return what waits, and since when."""
    work = queries.open_work(now=now)
    notifications = collection("notifications")
    in_doubt = {"channel": {"$in": [c.value for c in Channel]}, "status": S.UNKNOWN.value}
    return Backlog(
        due=work["due"],
        oldest_due_at=work["oldest_due_at"],
        scheduled=notifications.count_documents(
            {"status": Status.CREATED.value}, limit=queries.COUNT_CAP, hint="ntf_status_created"
        ),
        retrying=notifications.count_documents(
            {"status": Status.RETRYING.value}, limit=queries.COUNT_CAP, hint="ntf_status_created"
        ),
        unknown=notifications.count_documents(
            {"delivery": {"$elemMatch": in_doubt}},
            limit=queries.COUNT_CAP,
            hint="ntf_delivery_status",
        ),
        last_sweep=last_sweep(),
    )
