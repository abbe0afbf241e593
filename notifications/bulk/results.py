"""The outcome of each delivery in a bulk operation, one row each, kept for 30 days.

A row is written before the action, so that the next worker knows what a lost worker began.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo.errors import BulkWriteError

from domain.channels import Channel
from domain.states import FINAL_BULK_OUTCOMES, BulkOutcome, DeliveryStatus
from notifications.documents.bulk import OPERATION_RESULTS, OperationResultDocument
from notifications.documents.notification import NOTIFICATIONS
from notifyproject.db.collections import collection, is_duplicate

from ..actions.risk import ResendRisk, RiskKind

RETENTION = timedelta(days=30)
OPEN_OUTCOMES = [BulkOutcome.WAITING.value, BulkOutcome.BEGUN.value]
STATUS_CAP = 5_000
"""Changed deliveries whose status is counted: the most that a page reads at each refresh."""


@dataclass(frozen=True, slots=True)
class DeliveryKey:
    """Identifies a delivery within an operation."""

    notification_id: ObjectId
    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """The outcome of a delivery, and its reason."""

    outcome: BulkOutcome
    risk: ResendRisk
    reason: str | None = None
    detail: str | None = None


def skipped(risk: ResendRisk, *, reason: str, detail: str | None = None) -> DeliveryOutcome:
    """Return the outcome of a delivery that is skipped."""
    return DeliveryOutcome(outcome=BulkOutcome.SKIPPED, risk=risk, reason=reason, detail=detail)


def add(
    operation_id: ObjectId,
    risks: Mapping[DeliveryKey, ResendRisk],
    *,
    outcome: BulkOutcome,
    now: datetime,
) -> None:
    """Store rows with the outcome ``waiting`` or ``begun``. Existing rows stay unchanged."""
    rows: list[OperationResultDocument] = [
        {
            "_id": _row_id(operation_id, key),
            "operation_id": operation_id,
            "notification_id": key.notification_id,
            "channel": key.channel.value,
            "risk": risk.kind.value,
            "why": risk.reason,
            "outcome": outcome.value,
            "at": now,
            "purge_at": now + RETENTION,
        }
        for key, risk in risks.items()
    ]
    if not rows:
        return
    try:
        OPERATION_RESULTS().insert_many(rows, ordered=False)
    except BulkWriteError as error:
        if not is_duplicate(error):
            raise


def begin(
    operation_id: ObjectId, risks: Mapping[DeliveryKey, ResendRisk], *, now: datetime
) -> None:
    """Record that a worker is about to act on these deliveries."""
    add(operation_id, risks, outcome=BulkOutcome.BEGUN, now=now)
    ids = [_row_id(operation_id, key) for key in risks]
    if ids:
        OPERATION_RESULTS().update_many(
            {"_id": {"$in": ids}, "outcome": BulkOutcome.WAITING.value},
            {"$set": {"outcome": BulkOutcome.BEGUN.value, "at": now}},
        )


def settle(
    operation_id: ObjectId, outcomes: Mapping[DeliveryKey, DeliveryOutcome], *, now: datetime
) -> None:
    """Record the outcomes of these deliveries. A recorded success is never overwritten."""
    keys_by_outcome: dict[DeliveryOutcome, list[DeliveryKey]] = {}
    for key, outcome in outcomes.items():
        keys_by_outcome.setdefault(outcome, []).append(key)
    for outcome, keys in keys_by_outcome.items():
        if outcome.outcome is BulkOutcome.SKIPPED:
            # Deliveries beyond the preview's cap have no row yet.
            add(
                operation_id,
                dict.fromkeys(keys, outcome.risk),
                outcome=BulkOutcome.WAITING,
                now=now,
            )
        details = {"reason": outcome.reason, "detail": outcome.detail}
        changes = {
            "outcome": outcome.outcome.value,
            "risk": outcome.risk.kind.value,
            "why": outcome.risk.reason,
            "at": now,
            **{name: value for name, value in details.items() if value is not None},
        }
        query: dict[str, Any] = {"_id": {"$in": [_row_id(operation_id, key) for key in keys]}}
        if outcome.outcome is not BulkOutcome.DONE:
            query["outcome"] = {"$in": OPEN_OUTCOMES}
        OPERATION_RESULTS().update_many(query, {"$set": changes})


def get_results(
    operation_id: ObjectId, keys: Sequence[DeliveryKey]
) -> dict[DeliveryKey, DeliveryOutcome]:
    """Return the outcomes of these deliveries, as far as they have rows."""
    ids = [_row_id(operation_id, key) for key in keys]
    return _parse_rows(OPERATION_RESULTS().find({"_id": {"$in": ids}}))


def unsettled(operation_id: ObjectId, *, limit: int) -> dict[DeliveryKey, DeliveryOutcome]:
    """Return up to ``limit`` deliveries without a final outcome."""
    query = {"operation_id": operation_id, "outcome": {"$in": OPEN_OUTCOMES}}
    return _parse_rows(OPERATION_RESULTS().find(query).hint("opr_outcome").limit(limit))


def samples(
    operation_id: ObjectId, kind: RiskKind, *, limit: int
) -> dict[DeliveryKey, DeliveryOutcome]:
    """Return up to ``limit`` previewed deliveries with this resend risk."""
    waiting = {"operation_id": operation_id, "outcome": BulkOutcome.WAITING.value}
    found = OPERATION_RESULTS().find({**waiting, "risk": kind.value})
    return _parse_rows(found.hint("opr_outcome").limit(limit))


def counts(operation_id: ObjectId) -> tuple[dict[BulkOutcome, int], dict[str, int]]:
    """Count deliveries by final outcome, and skipped and failed deliveries by reason."""
    rows = collection(OPERATION_RESULTS.name).aggregate(
        [
            {"$match": {"operation_id": operation_id}},
            {"$group": {"_id": {"o": "$outcome", "r": "$reason"}, "count": {"$sum": 1}}},
        ]
    )
    by_outcome, by_reason = Counter[BulkOutcome](), Counter[str]()
    for row in rows:
        outcome, reason = BulkOutcome(row["_id"]["o"]), row["_id"].get("r")
        if outcome in FINAL_BULK_OUTCOMES:
            by_outcome[outcome] += row["count"]
            if reason is not None:
                by_reason[reason] += row["count"]
    return by_outcome, by_reason


def delivery_statuses(
    operation_id: ObjectId, *, sent_as: Callable[[ObjectId], ObjectId]
) -> Counter[DeliveryStatus]:
    """Count what became of up to STATUS_CAP deliveries that the operation changed.

    ``sent_as`` returns the ID of the notification that a notification was sent as. Raises
    PyMongoError.
    """
    done = {"operation_id": operation_id, "outcome": BulkOutcome.DONE.value}
    rows = OPERATION_RESULTS().find(done, {"notification_id": 1, "channel": 1})
    channels: dict[ObjectId, set[str]] = {}
    for row in rows.hint("opr_outcome").limit(STATUS_CAP):
        channels.setdefault(sent_as(row["notification_id"]), set()).add(row["channel"])
    found = NOTIFICATIONS().find(
        {"_id": {"$in": list(channels)}}, {"delivery.channel": 1, "delivery.status": 1}
    )
    return Counter(
        DeliveryStatus(delivery["status"])
        for document in found
        for delivery in document["delivery"]
        if delivery["channel"] in channels[document["_id"]]
    )


def iter_rows(operation_id: ObjectId) -> Iterator[OperationResultDocument]:
    """Yield an operation's rows in the order of their IDs."""
    query = {"_id": {"$gte": f"{operation_id}:", "$lt": f"{operation_id};"}}
    yield from OPERATION_RESULTS().find(query).sort("_id", 1)


def _row_id(operation_id: ObjectId, key: DeliveryKey) -> str:
    return f"{operation_id}:{key.notification_id}:{key.channel.value}"


def _parse_rows(rows: Any) -> dict[DeliveryKey, DeliveryOutcome]:
    return {
        DeliveryKey(row["notification_id"], Channel(row["channel"])): DeliveryOutcome(
            outcome=BulkOutcome(row["outcome"]),
            risk=ResendRisk(kind=RiskKind(row["risk"]), reason=row["why"]),
            reason=row.get("reason"),
            detail=row.get("detail"),
        )
        for row in rows
    }
