"""Metrics counted document by document, independently of the roll-up."""

from collections import Counter
from datetime import datetime
from typing import Any

from analytics import metrics
from analytics.models import Interval
from notifyproject.db.collections import collection

Counts = Counter[tuple[str, str, str, str]]
"""Deliveries by metric, channel, type, and provider, code, or status."""
SUCCEEDED = {"sent", "delivered", "read"}


def recounted(since: datetime, until: datetime) -> Counts:
    """Return the expected metrics."""
    counts: Counts = Counter()
    documents = {
        one["_id"]: one for one in collection("notifications").find() if not one.get("is_test")
    }
    for document in documents.values():
        if since <= document["created_at"] < until:
            for delivery in document["delivery"]:
                own = (delivery["channel"], document["type"])
                counts[("accepted", *own, "")] += 1
                if delivery["attempt_count"] == 0:
                    _outcome(counts, own, delivery, delivery.get("provider") or "none")
    tries: dict[Any, list[dict[str, Any]]] = {}
    for attempt in collection("delivery_attempts").find():
        if attempt["notification_id"] in documents:
            key = attempt["notification_id"], attempt["channel"], attempt["attempt_number"]
            tries.setdefault(key, []).append(attempt)
    for (notification_id, channel, number), some in tries.items():
        document = documents[notification_id]
        if since <= some[0]["attempted_at"] < until:
            delivery = next(d for d in document["delivery"] if d["channel"] == channel)
            _attempt(counts, (channel, document["type"]), delivery, number, some)
    return counts


def _attempt(
    counts: Counts,
    own: tuple[str, str],
    delivery: dict[str, Any],
    number: int,
    some: list[dict[str, Any]],
) -> None:
    provider, statuses = some[0]["provider"], {one["status"] for one in some}
    ended = next(s for s in ("unknown", "sent", "failed", "started", "expired") if s in statuses)
    was_made = ended != "expired"
    counts[("tried", *own, f"{provider} {ended}")] += was_made
    if ended == "unknown":
        counts[("unknown", *own, provider)] += 1
    is_last = number == delivery["attempt_count"]
    if is_last:
        _outcome(counts, own, delivery, provider)
        if delivery["status"] in SUCCEEDED:
            counts[("latency", *own, provider)] += 1
    if was_made and (not is_last or (delivery["status"] == "pending" and ended != "started")):
        counts[("retried", *own, provider)] += 1


def _outcome(counts: Counts, own: tuple[str, str], delivery: dict[str, Any], provider: str) -> None:
    status = delivery["status"]
    reached = {"sent": SUCCEEDED, "delivered": {"delivered", "read"}, "read": {"read"}}
    for metric, statuses in reached.items():
        counts[(metric, *own, provider)] += status in statuses
    if status == "failed":
        counts[("failed", *own, f"{provider} {delivery['failure_code']}")] += 1
    if status in ("expired", "cancelled", "suppressed"):
        counts[("withheld", *own, status)] += 1


def stored(interval: Interval, since: datetime, until: datetime) -> Counts:
    """Return the stored metrics."""
    counts: Counts = Counter()
    for figure in metrics.read(interval, since=since, until=until):
        names = ("provider", "code", "status")
        more = [figure.dimensions[name] for name in names if name in figure.dimensions]
        own = figure.dimensions["channel"], figure.dimensions["type"]
        counts[(figure.metric, *own, " ".join(more))] += int(figure.value)
    return counts
