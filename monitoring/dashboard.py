"""Metrics for the home page: traffic by the hour, and pending work.

Pending work is counted at each request. Each count uses an index and has a cap, so that pages stay
fast.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from delivery.heartbeats import last_sweep
from domain.channels import Channel
from domain.states import DeliveryStatus, NotificationStatus, Priority
from domain.wait_reasons import HELD, WaitReason, find_waits
from notifications import queries
from notifications.documents.notification import NOTIFICATIONS
from notifications.queueing import backlog

from . import metrics, rollup_state
from .metrics import Metric
from .models import Interval

M = Metric
HOURS = 24
NOT_TEST: Mapping[str, Any] = {"is_test": {"$ne": True}}
EXAMPLES = "examples"
"""The ``source`` of the examples of a new installation."""
S = DeliveryStatus
COUNTED_METRICS = (M.ACCEPTED, M.SENT, M.DELIVERED, M.READ, M.FAILED)


@dataclass(slots=True)
class ChannelTotals:
    """Number of a channel's deliveries by result, and a histogram of their latencies."""

    accepted: int = 0
    sent: int = 0
    """Accepted by a provider and not failed since."""
    delivered: int = 0
    read: int = 0
    failed: int = 0
    latencies: list[int] = field(default_factory=metrics.empty_histogram)

    @property
    def total(self) -> int:
        """Number of accepted, sent, and failed deliveries."""
        return self.accepted + self.sent + self.failed

    @property
    def success_rate(self) -> float | None:
        """The share of sent among sent and failed. None without either."""
        ended = self.sent + self.failed
        return self.sent / ended if ended else None

    def latency_quantile(self, share: float) -> float | None:
        """Return the seconds from due to sent that ``share`` of deliveries didn't exceed."""
        return metrics.quantile(self.latencies, share)

    def count(self, name: str, number: int) -> None:
        """Add a number of deliveries to one of the counts."""
        setattr(self, name, getattr(self, name) + number)

    def add(self, other: "ChannelTotals") -> None:
        """Add other totals to these."""
        for metric in COUNTED_METRICS:
            self.count(metric.value, getattr(other, metric.value))
        self.latencies = metrics.add_histograms(self.latencies, other.latencies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Traffic of the last 24 clock hours, including the current one."""

    hours: Mapping[datetime, Mapping[Channel, ChannelTotals]]
    """By hour, oldest first, without gaps."""
    counted_at: datetime | None
    """Time of the last roll-up; None before the first."""

    def per_channel(self, *, since: datetime) -> dict[Channel, ChannelTotals]:
        """Return the totals by channel of the hours from ``since``."""
        sums = {channel: ChannelTotals() for channel in Channel}
        for hour, channels in self.hours.items():
            if hour >= since:
                for channel, totals in channels.items():
                    sums.setdefault(channel, ChannelTotals()).add(totals)
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSummary:
    """Counts of pending work. A count that reaches its cap means at least that many."""

    due: int
    oldest_due_at: datetime | None
    scheduled: int
    retrying: int
    unknown: int
    held_on: Mapping[tuple[Channel, WaitReason], int]
    """Held deliveries by channel and reason, among the next notifications up to the cap."""
    last_sweep: datetime | None

    @property
    def held(self) -> Mapping[WaitReason, int]:
        """Held deliveries by reason."""
        counts = Counter[WaitReason]()
        for (_, reason), count in self.held_on.items():
            counts[reason] += count
        return counts


def traffic(*, now: datetime) -> Traffic:
    """Return the traffic of the last 24 clock hours, from the hourly metrics."""
    last_hour = metrics.interval_start(Interval.HOUR, now)
    first_hour = last_hour - timedelta(hours=HOURS - 1)
    hours = {
        first_hour + timedelta(hours=n): {channel: ChannelTotals() for channel in Channel}
        for n in range(HOURS)
    }
    wanted = (*COUNTED_METRICS, M.LATENCY)
    found = metrics.read_summed(
        Interval.HOUR, since=first_hour, until=now, metrics=wanted, by=("channel",)
    )
    for metric_value in found:
        channel = Channel(metric_value.dimensions["channel"])
        totals = hours[metric_value.timestamp].setdefault(channel, ChannelTotals())
        if metric_value.metric in COUNTED_METRICS:
            totals.count(metric_value.metric, int(metric_value.value))
        if metric_value.histogram is not None:
            totals.latencies = metrics.add_histograms(totals.latencies, metric_value.histogram)
    return Traffic(hours=hours, counted_at=rollup_state.counted_at())


def summarize_work(*, now: datetime, cap: int | None = None) -> WorkSummary:
    """Count pending work without tests, up to ``cap`` or queries.COUNT_CAP."""
    limit = cap or queries.COUNT_CAP
    oldest = backlog.oldest_due(now=now, match=NOT_TEST)
    unknown_delivery = {"channel": {"$in": [c.value for c in Channel]}, "status": S.UNKNOWN.value}
    return WorkSummary(
        due=backlog.count_due(now=now, cap=limit, match=NOT_TEST) if oldest else 0,
        oldest_due_at=oldest,
        scheduled=_count({"status": NotificationStatus.CREATED.value}, "ntf_status_created", limit),
        retrying=_count({"status": NotificationStatus.RETRYING.value}, "ntf_status_created", limit),
        unknown=_count(
            {"delivery": {"$elemMatch": unknown_delivery}}, "ntf_delivery_status", limit
        ),
        held_on=_count_held(now, limit),
        last_sweep=last_sweep(),
    )


def recently_sent(*, since: datetime, now: datetime) -> dict[Channel, int]:
    """Return how many deliveries of each channel were sent, from the metrics of its minutes."""
    found = metrics.read_summed(
        Interval.MINUTE, since=since, until=now, metrics=(M.SENT,), by=("channel",)
    )
    counts = Counter(dict.fromkeys(Channel, 0))
    for metric_value in found:
        counts[Channel(metric_value.dimensions["channel"])] += int(metric_value.value)
    return counts


def _count_held(now: datetime, limit: int) -> Mapping[tuple[Channel, WaitReason], int]:
    # A provider's held deliveries are tried again within minutes, so they are among the next that
    # are due. Of those that wait for hours, a longer list would cost more than it says.
    wanted = {
        "priority": {"$in": [priority.value for priority in Priority]},
        "due_at": {"$gt": now},
        **NOT_TEST,
    }
    found = NOTIFICATIONS().find(wanted, {"delivery": 1}).sort("due_at", 1)
    waits = (
        wait
        for document in found.hint(backlog.INDEX).limit(limit)
        for wait in find_waits(document["delivery"], now=now)
    )
    return Counter((wait.channel, wait.reason) for wait in waits if wait.reason in HELD)


def _count(wanted: dict[str, Any], index: str, limit: int) -> int:
    return NOTIFICATIONS().count_documents(wanted | dict(NOT_TEST), limit=limit, hint=index)
