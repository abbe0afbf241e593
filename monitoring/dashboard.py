"""How it goes: what the home page and the list of failures count.

What happened comes from the figures of the hours. What waits is counted as it is now: each read is
served by an index and capped, so that a page stays quick on a busy day, and what is capped says so.
A test explains each.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from analytics import metrics, rollup_state
from analytics.metrics import Metric
from analytics.models import Interval
from delivery.heartbeats import last_sweep
from domain.states import Channel, DeliveryStatus, NotificationStatus
from notifications import queries
from notifications.queueing import backlog
from notifyproject.db.collections import collection

M = Metric
HOURS = 24
NOT_TEST: Mapping[str, Any] = {"is_test": {"$ne": True}}
"""What holds for all but the tests of API clients in test mode."""
S = DeliveryStatus
COUNTED_METRICS = (M.ACCEPTED, M.SENT, M.DELIVERED, M.READ, M.FAILED, M.LATENCY)


@dataclass(slots=True)
class ChannelTotals:
    """Deliveries by what became of them, and how long they waited."""

    counts: Counter[Metric] = field(default_factory=Counter)
    latencies: list[int] = field(default_factory=metrics.empty_histogram)

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

    def latency_quantile(self, share: float) -> float | None:
        """Return the seconds from when it was due in which this share of what was sent went."""
        return metrics.quantile(self.latencies, share)

    def add(self, other: "ChannelTotals") -> None:
        """Add another tally to this one."""
        self.counts.update(other.counts)
        self.latencies = metrics.add_histograms(self.latencies, other.latencies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What happened in the last 24 clock hours, this one included."""

    hours: Mapping[datetime, Mapping[Channel, ChannelTotals]]
    """The oldest first; each hour is there."""
    counted_at: datetime | None
    """How old the figures are; None if nothing was ever counted."""

    def per_channel(self, *, since: datetime) -> dict[Channel, ChannelTotals]:
        """Return the channels' sums over the hours from ``since`` on."""
        sums = {channel: ChannelTotals() for channel in Channel}
        for hour, channels in self.hours.items():
            if hour >= since:
                for channel, totals in channels.items():
                    sums[channel].add(totals)
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSummary:
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
    last_hour = metrics.interval_start(Interval.HOUR, now)
    first_hour = last_hour - timedelta(hours=HOURS - 1)
    hours = {
        first_hour + timedelta(hours=n): {channel: ChannelTotals() for channel in Channel}
        for n in range(HOURS)
    }
    found = metrics.read_summed(
        Interval.HOUR, since=first_hour, until=now, metrics=COUNTED_METRICS, by=("channel",)
    )
    for metric_value in found:
        totals = hours[metric_value.timestamp][Channel(metric_value.dimensions["channel"])]
        totals.counts[Metric(metric_value.metric)] += int(metric_value.value)
        if metric_value.histogram is not None:
            totals.latencies = metrics.add_histograms(totals.latencies, metric_value.histogram)
    return Traffic(hours=hours, counted_at=rollup_state.counted_at())


def summarize_work(*, now: datetime, cap: int | None = None) -> WorkSummary:
    """Return what waits, and since when; tests of API clients in test mode aside.

    Each count ends at ``cap``, or at ``queries.COUNT_CAP``: it reads what it counts.
    """
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
        last_sweep=last_sweep(),
    )


def _count(wanted: dict[str, Any], index: str, limit: int) -> int:
    return collection("notifications").count_documents(
        wanted | dict(NOT_TEST), limit=limit, hint=index
    )
