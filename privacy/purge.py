"""Deletes old notifications on request, and recomputes purge dates after a change of retention.

By itself, retention is MongoDB's TTL index on ``purge_at``:
see :mod:`notifications.catalog.retention`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import structlog
from bson import ObjectId

from domain.states import Category
from notifications.catalog import retention
from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifications.queries import ANY_STATUS
from notifications.store import removal
from notifyproject.platform import clock_check

log = structlog.get_logger(__name__)
BATCH = 1_000
MIN_DAYS, MAX_DAYS = 1, 3_650
"""Bounds of the age. An idempotency key refers to its notification for a day."""
BACKFILL_BATCH = 500
OLDEST_FIRST = [("created_at", 1), ("_id", 1)]
ENDED: Mapping[str, Any] = {"due_at": None}
ID_INDEX = "_id_"


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeReport:
    """What a purge deleted, or its dry run would delete."""

    notifications: int
    attempts: int
    is_complete: bool
    """No more notifications of that age are left."""


def purge_notifications(
    *, client_id: ObjectId | None, older_than: timedelta, at_most: int | None, now: datetime
) -> PurgeReport:
    """Delete notifications that ended and haven't changed for ``older_than``, oldest first.

    Idempotent, and safe to interrupt. Nothing is deleted while this machine's clock is wrong.
    """
    if clock_check.is_wrong():
        return PurgeReport(notifications=0, attempts=0, is_complete=False)
    before = now - older_than
    found = notifications = attempts = 0
    for ids in _batches(client_id, before, at_most):
        found += len(ids)
        purged = removal.purge(ids=ids, before=before)
        notifications += purged.notifications
        attempts += purged.attempts
    log.info(
        "notifications_purged",
        client_id=str(client_id) if client_id else None,
        notifications=notifications,
        attempts=attempts,
    )
    return PurgeReport(
        notifications=notifications,
        attempts=attempts,
        is_complete=at_most is None or found < at_most,
    )


def count_purgeable(
    *, client_id: ObjectId | None, older_than: timedelta, at_most: int | None, now: datetime
) -> PurgeReport:
    """Count what :func:`purge_notifications` would delete, except attempts."""
    found = sum(len(ids) for ids in _batches(client_id, now - older_than, at_most))
    return PurgeReport(
        notifications=found, attempts=0, is_complete=at_most is None or found < at_most
    )


def _batches(
    client_id: ObjectId | None, before: datetime, at_most: int | None
) -> Iterator[list[ObjectId]]:
    last: NotificationDocument | None = None
    remaining = at_most
    while remaining is None or remaining > 0:
        size = BATCH if remaining is None else min(BATCH, remaining)
        found = _oldest(client_id, before, last, size)
        if found:
            yield [document["_id"] for document in found]
        if len(found) < size:
            return
        last = found[-1]
        remaining = None if remaining is None else remaining - size


def _oldest(
    client_id: ObjectId | None, before: datetime, last: NotificationDocument | None, limit: int
) -> list[NotificationDocument]:
    match: dict[str, Any] = {"created_at": {"$lt": before}, **removal.match_ended_before(before)}
    match |= {"status": ANY_STATUS} if client_id is None else {"client_id": client_id}
    if last is not None:
        # Skips what was read before and stays.
        match["created_at"]["$gte"] = last["created_at"]
        match["$or"] = [{"created_at": {"$gt": last["created_at"]}}, {"_id": {"$gt": last["_id"]}}]
    found = NOTIFICATIONS().find(match, {"created_at": 1})
    index = "ntf_status_created" if client_id is None else "ntf_client_created"
    return list(found.sort(OLDEST_FIRST).hint(index).limit(limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeDateChanges:
    """Counts of what :func:`backfill_purge_dates` would change."""

    notifications: int
    deleted: int
    """Those of them that MongoDB would delete at once."""


def backfill_purge_dates() -> int:
    """Set all purge dates by the current retention. Return how many changed. Idempotent."""
    lengths = _retention_lengths()
    changed = sum(removal.set_purge_dates(ids=ids, metadata=lengths) for ids in _ended_batches())
    log.info("purge_dates_backfilled", notifications=changed)
    return changed


def count_purge_date_changes(*, now: datetime) -> PurgeDateChanges:
    """Count what :func:`backfill_purge_dates` would change. Reads all ended notifications."""
    new = removal.purged_at(_retention_lengths())
    differing = {**ENDED, "$expr": {"$ne": ["$purge_at", new]}}
    is_over = {"$expr": {"$lte": [new, now]}}
    return PurgeDateChanges(
        notifications=_count(differing), deleted=_count({"$and": [differing, is_over]})
    )


def _retention_lengths() -> dict[Category, timedelta]:
    return {policy.category: policy.metadata for policy in retention.read_all()}


def _ended_batches() -> Iterator[list[ObjectId]]:
    found = NOTIFICATIONS().find(ENDED, {"_id": 1}, hint=ID_INDEX).sort("_id", 1)
    with found.batch_size(BACKFILL_BATCH) as cursor:
        while ids := [document["_id"] for document in islice(cursor, BACKFILL_BATCH)]:
            yield ids


def _count(match: dict[str, Any]) -> int:
    return int(NOTIFICATIONS().count_documents(match, hint=ID_INDEX))
