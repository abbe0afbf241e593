"""Counts deliveries and attempts in given minutes, without tests.

An attempted delivery belongs to the minute of the attempt. A delivery without an attempt, such as
in-app, belongs to the minute of its acceptance. Neither time ever changes.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from bson import ObjectId

from access.clients import registry
from domain.states import SUCCEEDED, AttemptStatus, DeliveryStatus
from notifications.documents.notification import NOTIFICATIONS
from notifications.documents.records import DELIVERY_ATTEMPTS
from notifyproject.db.collections import collection

from . import metrics
from .metrics import NONE, OTHER, Metric, MetricValue

A, M, S = AttemptStatus, Metric, DeliveryStatus
WITHHELD = (S.EXPIRED, S.CANCELLED, S.SUPPRESSED)
ARRIVED = (S.DELIVERED, S.READ)
PRECEDENCE = (A.UNKNOWN, A.SENT, A.FAILED, A.STARTED, A.EXPIRED)
"""An attempt at several devices counts once, with the first of these statuses that occurs."""
BATCH = 1_000
Row = Mapping[str, Any]
Key = tuple[datetime, Metric, tuple[tuple[str, str], ...]]
_GROUP_FIELDS = (
    "minute",
    "channel",
    "type",
    "client",
    "provider",
    "outcome",
    "is_last",
    "status",
    "code",
    "bucket",
    "request_bucket",
)
_DEVICE_FIELDS = (
    "minute",
    "channel",
    "type",
    "client",
    "provider",
    "platform",
    "outcome",
    "code",
    "is_delivered",
    "is_opened",
)
_SHARED = _GROUP_FIELDS.index("outcome")
"""Number of the first fields, which both kinds of rows share."""
_DEVICE_ATTEMPT_FIELDS = ("platform", "status", "error_code", "delivered_at", "opened_at")


@dataclass(slots=True)
class _Counts:
    clients: frozenset[ObjectId]
    """The clients with metrics of their own."""
    counts: Counter[Key] = field(default_factory=Counter)
    latencies: dict[Key, list[int]] = field(
        default_factory=lambda: defaultdict(metrics.empty_histogram)
    )
    seconds: dict[Key, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, row: Row, metric: Metric, **extra_dimensions: str) -> Key:
        """Count a row for a metric and return the key."""
        group_key = row["_id"]
        client_id = group_key["client"]
        dimensions = {
            "channel": group_key["channel"],
            "type": group_key["type"],
            "client_id": str(client_id) if client_id in self.clients else OTHER,
        } | extra_dimensions
        key = group_key["minute"], metric, tuple(sorted(dimensions.items()))
        self.counts[key] += row["count"]
        return key


def count_minutes(since: datetime, until: datetime) -> list[MetricValue]:
    """Return the metrics of all whole minutes in [since, until)."""
    counts = _Counts(clients=frozenset(registry.names(limit=metrics.MAX_CLIENTS)))
    for row in _accepted(since, until):
        counts.add(row, M.ACCEPTED)
        if row["_id"]["untried"]:
            _count_outcome(counts, row, provider=row["_id"].get("provider") or NONE)
    for row in _attempted(since, until):
        if "platform" in row["_id"]:
            _count_device(counts, row)
        else:
            _count_attempt(counts, row)
    return [
        MetricValue(
            metric=metric.value,
            dimensions=dict(dimensions),
            value=value,
            histogram=counts.latencies.get((minute, metric, dimensions)),
            seconds=counts.seconds.get((minute, metric, dimensions)),
            timestamp=minute,
        )
        for (minute, metric, dimensions), value in counts.counts.items()
    ]


def _count_attempt(counts: _Counts, row: Row) -> None:
    group_key = row["_id"]
    provider, outcome = group_key.get("provider") or NONE, group_key["outcome"]
    if group_key["is_last"]:
        _count_outcome(counts, row, provider=provider)
    if outcome == A.EXPIRED:
        # Not attempted: its time ended first. The delivery may have ended all the same.
        return
    counts.add(row, M.TRIED, provider=provider, status=outcome)
    if group_key["request_bucket"] is not None:
        key = counts.add(row, M.REQUEST, provider=provider)
        counts.latencies[key][group_key["request_bucket"]] += row["count"]
        counts.seconds[key] += row["request_seconds"]
    if outcome == A.UNKNOWN:
        counts.add(row, M.UNKNOWN, provider=provider)
    if not group_key["is_last"] or (group_key["status"] == S.PENDING and outcome != A.STARTED):
        counts.add(row, M.RETRIED, provider=provider)


def _count_device(counts: _Counts, row: Row) -> None:
    """Count the attempts at devices of one platform, with the same result."""
    group_key = row["_id"]
    dimensions = {name: group_key[name] or NONE for name in ("platform", "provider")}
    # A receipt proves that the push was sent, whatever the provider responded.
    if group_key["outcome"] == A.SENT or group_key["is_delivered"]:
        counts.add(row, M.DEVICE_SENT, **dimensions)
    elif group_key["outcome"] == A.FAILED:
        counts.add(row, M.DEVICE_FAILED, **dimensions, code=group_key["code"] or NONE)
    if group_key["is_delivered"]:
        counts.add(row, M.DEVICE_DELIVERED, **dimensions)
    if group_key["is_opened"]:
        counts.add(row, M.DEVICE_OPENED, **dimensions)


def _count_outcome(counts: _Counts, row: Row, *, provider: str) -> None:
    group_key = row["_id"]
    status = group_key["status"]
    if status in SUCCEEDED:
        counts.add(row, M.SENT, provider=provider)
    if status in ARRIVED:
        counts.add(row, M.DELIVERED, provider=provider)
    if status == S.READ:
        counts.add(row, M.READ, provider=provider)
    if status == S.FAILED:
        counts.add(row, M.FAILED, provider=provider, code=group_key.get("code") or NONE)
    if status in WITHHELD:
        counts.add(row, M.WITHHELD, status=status)
    if status == S.MERGED:
        counts.add(row, M.MERGED)
    bucket = group_key.get("bucket")
    if bucket is not None:
        key = counts.add(row, M.LATENCY, provider=provider)
        counts.latencies[key][bucket] += row["count"]
        counts.seconds[key] += row["seconds"]


def _accepted(since: datetime, until: datetime) -> Iterable[Row]:
    untried = {"$eq": ["$delivery.attempt_count", 0]}
    key = {
        "minute": minute_of("$created_at"),
        "channel": "$delivery.channel",
        "type": "$type",
        "client": "$client_id",
        "untried": untried,
        "provider": _if(untried, "$delivery.provider"),
        "status": _if(untried, "$delivery.status"),
        "code": _if(untried, "$delivery.failure_code"),
    }
    accepted = {
        # Naming each client lets one index serve the time. Neither ever changes, so that a
        # notification that is being sent meanwhile is counted once.
        "client_id": {"$in": NOTIFICATIONS().distinct("client_id")},
        "created_at": {"$gte": since, "$lt": until},
        "is_test": {"$ne": True},
    }
    return collection(NOTIFICATIONS.name).aggregate(
        [
            {"$match": accepted},
            {"$project": {"created_at": 1, "type": 1, "client_id": 1, "delivery": 1}},
            {"$unwind": "$delivery"},
            {"$group": {"_id": key, "count": {"$sum": 1}}},
        ],
        hint="ntf_client_created",
    )


def _attempted(since: datetime, until: datetime) -> Iterable[Row]:
    """Return attempts with their deliveries' results. An attempt at several devices is one row.

    A push also has a row for each of its devices, with the platform. The join is done here for a
    thousand attempts at a time, since ``$lookup`` takes ten times as long.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    devices: Counter[tuple[Any, ...]] = Counter()
    seconds: dict[tuple[Any, ...], float] = defaultdict(float)
    request_seconds: dict[tuple[Any, ...], float] = defaultdict(float)
    for attempts in _batches(_attempts(since, until)):
        deliveries = _deliveries({attempt["_id"]["notification"] for attempt in attempts})
        for attempt in attempts:
            own = attempt["_id"]
            found = deliveries.get((own["notification"], own["channel"]))
            if found is not None:
                key, waited = _classify_attempt(attempt, *found)
                counts[key] += 1
                seconds[key] += waited
                request_seconds[key] += (attempt.get("duration") or 0) / 1000
                devices.update((*key[:_SHARED], *result) for result in _device_results(attempt))
    for key, count in counts.items():
        own = dict(zip(_GROUP_FIELDS, key, strict=True))
        yield {
            "_id": own,
            "count": count,
            "seconds": seconds[key],
            "request_seconds": request_seconds[key],
        }
    for key, count in devices.items():
        yield {"_id": dict(zip(_DEVICE_FIELDS, key, strict=True)), "count": count}


def _attempts(since: datetime, until: datetime) -> Iterable[Row]:
    attempt = {"notification": "$notification_id", "channel": "$channel"}
    group = {
        "_id": attempt | {"attempt": "$attempt_number"},
        "at": {"$min": "$attempted_at"},
        "provider": {"$first": "$provider"},
        "statuses": {"$addToSet": "$status"},
        # Of several devices, the slowest request.
        "duration": {"$max": "$duration_ms"},
        "devices": {"$push": _if_device({name: f"${name}" for name in _DEVICE_ATTEMPT_FIELDS})},
    }
    return collection(DELIVERY_ATTEMPTS.name).aggregate(
        [{"$match": {"attempted_at": {"$gte": since, "$lt": until}}}, {"$group": group}],
        hint="att_attempted",
        allowDiskUse=True,
        batchSize=BATCH,
    )


def _deliveries(ids: set[ObjectId]) -> dict[tuple[ObjectId, str], tuple[Row, Row]]:
    names = (
        "channel",
        "status",
        "attempt_count",
        "failure_code",
        "sent_at",
        "first_due_at",
        "ready_at",
    )
    found = NOTIFICATIONS().find(
        {"_id": {"$in": list(ids)}},
        {"type": 1, "client_id": 1, "is_test": 1, **{f"delivery.{name}": 1 for name in names}},
        batch_size=BATCH,
    )
    return {
        (document["_id"], delivery["channel"]): (document, delivery)
        for document in found
        if not document.get("is_test")
        for delivery in document["delivery"]
    }


def _device_results(attempt: Row) -> Iterator[tuple[Any, ...]]:
    for device in attempt["devices"]:
        if device["status"] != A.EXPIRED:
            yield (
                device.get("platform"),
                device["status"],
                device.get("error_code"),
                "delivered_at" in device,
                "opened_at" in device,
            )


def _classify_attempt(attempt: Row, document: Row, delivery: Row) -> tuple[tuple[Any, ...], float]:
    statuses = attempt["statuses"]
    outcome = next(status.value for status in PRECEDENCE if status in statuses)
    is_last = attempt["_id"]["attempt"] == delivery["attempt_count"]
    bucket, waited = None, 0.0
    if is_last and delivery["status"] in SUCCEEDED and delivery.get("sent_at") is not None:
        # The time in which it was held is no latency.
        since = max(delivery["first_due_at"], delivery.get("ready_at") or delivery["first_due_at"])
        waited = max((delivery["sent_at"] - since).total_seconds(), 0.0)
        bucket = bisect_left(metrics.BOUNDS, waited)
    minute = attempt["at"].replace(second=0, microsecond=0)
    shared = (minute, attempt["_id"]["channel"], document["type"], document["client_id"])
    duration = attempt.get("duration")
    request_bucket = None if duration is None else bisect_left(metrics.BOUNDS, duration / 1000)
    own = (is_last, delivery["status"], delivery.get("failure_code"), bucket, request_bucket)
    return (*shared, attempt.get("provider"), outcome, *own), waited


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    rest = iter(rows)
    while batch := list(islice(rest, BATCH)):
        yield batch


def minute_of(path: str) -> dict[str, Any]:
    """Return an expression for the minute of a time."""
    return {"$dateTrunc": {"date": path, "unit": "minute"}}


def _if_device(value: Any) -> dict[str, Any]:
    return {"$cond": [{"$gt": ["$device_id", None]}, value, "$$REMOVE"]}


def _if(condition: Any, value: Any) -> dict[str, Any]:
    return {"$cond": [condition, value, None]}
