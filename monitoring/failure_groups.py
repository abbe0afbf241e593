"""Groups failures by cause, with their trend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.documents.notification import NOTIFICATIONS
from notifyproject.db.collections import collection

CAP = 10_000
"""Maximum of failed notifications to group. The newest are used."""
TREND_BUCKETS = 24
FAILURE_CAP = 5_000
"""Maximum of failed notifications to count. The newest are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCause:
    """What failures are grouped by. ``provider`` is None if no provider was involved."""

    channel: Channel
    code: str
    provider: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures with one cause."""

    cause: FailureCause
    count: int
    first_at: datetime
    last_at: datetime
    trend: tuple[int, ...]
    """Count in each interval of the period, oldest first."""
    previous_count: int
    """Count in the previous period of equal length, within the cap."""
    outage: str | None = None
    """Of deliveries that expired while held: which outage held one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroups:
    """The failures of a period by cause, the most frequent cause first."""

    since: datetime
    until: datetime
    groups: Sequence[FailureGroup]
    counted_since: datetime | None
    """Failures before this time are not counted because of the cap. None if all are counted."""

    @property
    def is_complete(self) -> bool:
        """Whether the whole period is counted. If not, the counts are lower bounds."""
        return self.counted_since is None or self.counted_since <= self.since

    @property
    def has_previous(self) -> bool:
        """Whether the previous period is also counted, for comparison."""
        return self.counted_since is None


def group_failures(
    *, since: datetime, until: datetime, match: Sequence[Mapping[str, Any]] = ()
) -> FailureGroups:
    """Group the failures of a period by cause, with their number in the previous period.

    A notification counts once for each failed channel. Raises PyMongoError.
    """
    length = until - since
    counted = {"$gte": since - length, "$lt": until}
    oldest = _failed_at_of(CAP, {"failed_at": counted})
    both_spans = {"$gte": oldest or since - length, "$lt": until}
    part = max(int(length.total_seconds() * 1000) // TREND_BUCKETS, 1)
    bucket = {"$floor": {"$divide": [{"$subtract": ["$delivery.failed_at", since]}, part]}}
    key = {"provider": {"$ifNull": ["$delivery.provider", None]}, "place": bucket}
    causes: dict[FailureCause, list[Mapping[str, Any]]] = {}
    for row in _aggregate({"$and": [{"failed_at": both_spans}, *match]}, both_spans, key=key):
        found = row["_id"]
        cause = FailureCause(
            channel=Channel(found["channel"]), code=found["code"], provider=found.get("provider")
        )
        causes.setdefault(cause, []).append(row)
    groups = [group for cause, rows in causes.items() if (group := _group(cause, rows)).count]
    return FailureGroups(
        since=since,
        until=until,
        groups=sorted(groups, key=lambda group: (-group.count, -group.last_at.timestamp())),
        counted_since=oldest,
    )


def _failed_at_of(number: int, match: Mapping[str, Any]) -> datetime | None:
    """Return when the notification of this number, from the newest on, failed. None without it."""
    found = (
        NOTIFICATIONS()
        .find(match, {"failed_at": 1, "_id": 0})
        .sort([("failed_at", -1), ("_id", -1)])
        .skip(number - 1)
        .limit(1)
        .hint("ntf_failed")
    )
    return next((row["failed_at"] for row in found), None)


def _group(cause: FailureCause, rows: Sequence[Mapping[str, Any]]) -> FailureGroup:
    within = [row for row in rows if row["_id"]["place"] >= 0]
    trend = [0] * TREND_BUCKETS
    for row in within:
        trend[min(int(row["_id"]["place"]), TREND_BUCKETS - 1)] += row["count"]
    counted = within or rows
    return FailureGroup(
        cause=cause,
        count=sum(trend),
        first_at=min(row["first_at"] for row in counted),
        last_at=max(row["last_at"] for row in counted),
        trend=tuple(trend),
        previous_count=sum(row["count"] for row in rows) - sum(trend),
        outage=max((row["reason"] for row in counted if row.get("reason")), default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCount:
    """Number of failures with one cause."""

    channel: Channel
    code: str
    count: int
    first_at: datetime
    last_at: datetime
    outage: str | None = None
    """Of deliveries that expired while held: which outage held one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCounts:
    """The failures of a period by channel and code, the most frequent first.

    Of more than FAILURE_CAP notifications, only the newest are counted.
    """

    groups: Sequence[FailureCount]
    counted_since: datetime | None
    """The first failure that is counted, if the cap was reached."""

    @property
    def total(self) -> int:
        """Sum of all groups."""
        return sum(group.count for group in self.groups)


def count_failures(
    *, since: datetime, until: datetime | None = None, match: Mapping[str, Any] | None = None
) -> FailureCounts:
    """Count the failures of a period by channel and code. Each failed channel counts once."""
    span = {"$gte": since} | ({"$lt": until} if until is not None else {})
    newest: list[Mapping[str, Any]] = [
        {"$sort": {"failed_at": -1, "_id": -1}},
        {"$limit": FAILURE_CAP},
    ]
    wanted = {"failed_at": span, **(match or {})}
    found = _aggregate(wanted, span, select=newest)
    groups = [
        FailureCount(
            channel=Channel(row["_id"]["channel"]),
            code=row["_id"]["code"],
            count=row["count"],
            first_at=row["first_at"],
            last_at=row["last_at"],
            outage=row.get("reason"),
        )
        for row in sorted(found, key=lambda row: (-row["count"], -row["last_at"].timestamp()))
    ]
    # A notification can have several failed channels, so the sum alone doesn't tell.
    may_be_capped = sum(group.count for group in groups) >= FAILURE_CAP
    oldest = _failed_at_of(FAILURE_CAP, wanted) if may_be_capped else None
    return FailureCounts(groups=groups, counted_since=oldest)


def _aggregate(
    match: Mapping[str, Any],
    span: Mapping[str, Any],
    *,
    key: Mapping[str, Any] | None = None,
    select: Sequence[Mapping[str, Any]] = (),
) -> list[Mapping[str, Any]]:
    code = {"$ifNull": ["$delivery.failure_code", ""]}
    # Only the service writes this text: it contains no address.
    is_expired = {"$eq": ["$delivery.status", DeliveryStatus.EXPIRED.value]}
    reason = {"$cond": [is_expired, "$delivery.failure_reason", None]}
    # Expired deliveries have this time if an outage held them until then.
    failed = {"delivery.failed_at": span}
    stages: list[Mapping[str, Any]] = [
        # failed_at of the notification is that of its last failure.
        {"$match": match},
        *select,
        {"$project": {"failed_at": 1, "delivery": 1}},
        {"$unwind": "$delivery"},
        {"$match": failed},
        {
            "$group": {
                "_id": {"channel": "$delivery.channel", "code": code, **(key or {})},
                "count": {"$sum": 1},
                "first_at": {"$min": "$delivery.failed_at"},
                "last_at": {"$max": "$delivery.failed_at"},
                "reason": {"$max": reason},
            }
        },
    ]
    return list(collection(NOTIFICATIONS.name).aggregate(stages, hint="ntf_failed"))
