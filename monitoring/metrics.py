"""Stores metrics per minute, hour, and day, with latency histograms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from pymongo import DeleteMany, ReplaceOne

from notifyproject.db.collections import collection

from .documents import METRICS_AGGREGATES, MetricsAggregateDocument
from .models import Interval

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3_600.0, 14_400.0)
"""Inclusive upper bounds of the histogram buckets in seconds. A last bucket has no bound."""
BUCKETS = len(BOUNDS) + 1
INDEX = "met_span"
INTERVAL_LENGTH = {
    Interval.MINUTE: timedelta(minutes=1),
    Interval.HOUR: timedelta(hours=1),
    Interval.DAY: timedelta(days=1),
}
RETENTION = {Interval.MINUTE: timedelta(days=4), Interval.HOUR: timedelta(days=100)}
"""How long metrics are kept; daily metrics have no expiry."""
MIN_RETENTION = timedelta(hours=1)
"""Rebuilt metrics of an old period stay at least this long, so that they can be summed up."""
SOURCE_INTERVAL = {Interval.HOUR: Interval.MINUTE, Interval.DAY: Interval.HOUR}
BATCH = 1_000
NONE = "none"
"""The value of a dimension that a delivery or device lacks."""
OTHER = "other"
"""The value that stands for all values of a dimension beyond its limit."""
MAX_CLIENTS = 200
"""Maximum of API clients with metrics of their own. The oldest have them, the rest share OTHER."""


def empty_histogram() -> list[int]:
    """Return a histogram without counts."""
    return [0] * BUCKETS


def add_histograms(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Return the sum of two histograms."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return a latency quantile in seconds, interpolated within its bucket. None if empty."""
    total = sum(counts)
    if not total:
        return None
    target, passed = share * total, 0
    for index, count in enumerate(counts):
        if count and passed + count >= target:
            if index >= len(BOUNDS):
                return BOUNDS[-1]
            lower = BOUNDS[index - 1] if index else 0.0
            return lower + (BOUNDS[index] - lower) * (target - passed) / count
        passed += count
    return BOUNDS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """One metric in one interval, for one set of dimensions."""

    metric: str
    dimensions: Mapping[str, str]
    value: float
    seconds: float | None = None
    histogram: Sequence[int] | None = None
    timestamp: datetime

    @property
    def dimension(self) -> str:
        """The dimensions as text, in the order of their names."""
        return ",".join(f"{name}={self.dimensions[name]}" for name in sorted(self.dimensions))


def interval_start(interval: Interval, instant: datetime) -> datetime:
    """Return the start of the interval that contains an instant."""
    minute = instant.replace(second=0, microsecond=0)
    if interval is Interval.MINUTE:
        return minute
    hour = minute.replace(minute=0)
    return hour if interval is Interval.HOUR else hour.replace(hour=0)


def replace(
    interval: Interval, spans: Iterable[datetime], values: Sequence[MetricValue], *, now: datetime
) -> None:
    """Replace all values of the intervals that start at ``spans``."""
    documents = [_document(interval, metric_value, now) for metric_value in values]
    writes = [ReplaceOne({"_id": document["_id"]}, document, upsert=True) for document in documents]
    for start in range(0, len(writes), BATCH):
        METRICS_AGGREGATES().bulk_write(writes[start : start + BATCH], ordered=False)
    kept_ids: dict[datetime, list[str]] = {span: [] for span in spans}
    for document in documents:
        kept_ids.setdefault(document["timestamp"], []).append(document["_id"])
    removals = [
        DeleteMany(
            {"interval": interval.value, "timestamp": span, "_id": {"$nin": ids}}, hint=INDEX
        )
        for span, ids in kept_ids.items()
    ]
    METRICS_AGGREGATES().bulk_write(removals, ordered=False)


def sum_up(interval: Interval, span: datetime, *, now: datetime) -> None:
    """Compute the values of an hour from its minutes, or of a day from its hours."""
    source = _match(SOURCE_INTERVAL[interval], span, span + INTERVAL_LENGTH[interval])
    key = {"metric": "$metric_name", "dimension": "$dimension"}
    found = _sums(source, key, dimensions={"$first": "$dimensions"})
    values = [_summed(row, row["dimensions"], span) for row in found]
    replace(interval, [span], values, now=now)


def read(
    interval: Interval, *, since: datetime, until: datetime, metrics: Sequence[str] | None = None
) -> list[MetricValue]:
    """Return the values of intervals that start in [since, until), in order of time."""
    wanted = _match(interval, since, until)
    if metrics is not None:
        wanted["metric_name"] = {"$in": list(metrics)}
    found = METRICS_AGGREGATES().find(wanted).sort("timestamp", 1).hint(INDEX)
    return [
        MetricValue(
            metric=document["metric_name"],
            dimensions=document["dimensions"],
            value=document["value"],
            seconds=document.get("seconds"),
            histogram=document.get("histogram"),
            timestamp=document["timestamp"],
        )
        for document in found
    ]


def read_summed(
    interval: Interval,
    *,
    since: datetime,
    until: datetime,
    metrics: Sequence[str],
    by: Sequence[str],
) -> list[MetricValue]:
    """Return values as :func:`read` does, summed over all dimensions except ``by``."""
    wanted = _match(interval, since, until) | {"metric_name": {"$in": list(metrics)}}
    key = {"at": "$timestamp", "metric": "$metric_name"}
    values = []
    for row in _sums(wanted, key | {name: f"$dimensions.{name}" for name in by}):
        dimensions = {name: row["_id"][name] for name in by if name in row["_id"]}
        values.append(_summed(row, dimensions, row["_id"]["at"]))
    return sorted(values, key=lambda metric_value: metric_value.timestamp)


def last_timestamp(
    interval: Interval,
    metric: str,
    *,
    since: datetime,
    until: datetime,
    dimensions: Mapping[str, Sequence[str]],
) -> datetime | None:
    """Return the start of the last interval with a value for these dimensions, or None."""
    wanted = _match(interval, since, until) | {"metric_name": metric}
    wanted |= {f"dimensions.{name}": {"$in": list(values)} for name, values in dimensions.items()}
    found = METRICS_AGGREGATES().find_one(
        wanted, {"timestamp": 1}, sort=[("timestamp", -1)], hint=INDEX
    )
    return found["timestamp"] if found else None


def merge_histograms(histograms: Iterable[Sequence[int] | None]) -> list[int]:
    """Return the sum of several histograms."""
    total = empty_histogram()
    for histogram in histograms:
        total = add_histograms(total, histogram or ())
    return total


def _match(interval: Interval, since: datetime, until: datetime) -> dict[str, Any]:
    return {"interval": interval.value, "timestamp": {"$gte": since, "$lt": until}}


def _sums(match: dict[str, Any], key: dict[str, str], **extra: Any) -> Iterable[Mapping[str, Any]]:
    sums = {"value": {"$sum": "$value"}, "seconds": {"$sum": "$seconds"}}
    group = {"_id": key, **sums, "histograms": {"$push": "$histogram"}, **extra}
    stages = [{"$match": match}, {"$group": group}]
    return collection(METRICS_AGGREGATES.name).aggregate(stages, hint=INDEX)


def _summed(
    row: Mapping[str, Any], dimensions: Mapping[str, str], timestamp: datetime
) -> MetricValue:
    has_histogram = any(row["histograms"])
    return MetricValue(
        metric=row["_id"]["metric"],
        dimensions=dimensions,
        value=row["value"],
        seconds=row["seconds"] if has_histogram else None,
        histogram=merge_histograms(row["histograms"]) if has_histogram else None,
        timestamp=timestamp,
    )


def _document(
    interval: Interval, metric_value: MetricValue, now: datetime
) -> MetricsAggregateDocument:
    at = f"{metric_value.timestamp:%Y-%m-%dT%H:%M}"
    document: MetricsAggregateDocument = {
        "_id": f"{metric_value.metric}|{interval.value}|{at}|{metric_value.dimension}",
        "metric_name": metric_value.metric,
        "dimension": metric_value.dimension,
        "dimensions": dict(metric_value.dimensions),
        "value": float(metric_value.value),
        "timestamp": metric_value.timestamp,
        "interval": interval.value,
    }
    if metric_value.histogram is not None:
        document["histogram"] = list(metric_value.histogram)
        document["seconds"] = metric_value.seconds
    if interval in RETENTION:
        kept_until = metric_value.timestamp + RETENTION[interval]
        document["purge_at"] = max(kept_until, now + MIN_RETENTION)
    return document


class Metric(StrEnum):
    """Metrics of deliveries and of attempts at devices, defined in docs/reference/metrics.md."""

    ACCEPTED = "accepted"
    TRIED = "tried"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    RETRIED = "retried"
    UNKNOWN = "unknown"
    WITHHELD = "withheld"
    MERGED = "merged"
    LATENCY = "latency"
    REQUEST = "request"
    DEVICE_SENT = "device_sent"
    DEVICE_DELIVERED = "device_delivered"
    DEVICE_OPENED = "device_opened"
    DEVICE_FAILED = "device_failed"
