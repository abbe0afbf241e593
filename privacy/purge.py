"""Deletes old notifications, and recomputes purge dates after a change of retention."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from bson import ObjectId

from domain.states import Category
from notifications.catalog import retention
from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifications.store import removal
from notifyproject.platform import clock_check

log = structlog.get_logger(__name__)
BATCH = 1_000
MIN_DAYS, MAX_DAYS = 1, 3_650
"""Bounds of the age. An idempotency key refers to its notification for a day."""
BACKFILL_BATCH = 500
INDEX = "ntf_category_created"
OLDEST_FIRST = [("created_at", 1), ("_id", 1)]


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
    if client_id is not None:
        match["client_id"] = client_id
    if last is not None:
        # Skips what was read before and stays.
        match["created_at"]["$gte"] = last["created_at"]
        match["$or"] = [{"created_at": {"$gt": last["created_at"]}}, {"_id": {"$gt": last["_id"]}}]
    found = NOTIFICATIONS().find(match, {"created_at": 1})
    index = "ntf_created" if client_id is None else "ntf_client_created"
    return list(found.sort(OLDEST_FIRST).hint(index).limit(limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeDateChanges:
    """Counts of what :func:`backfill_purge_dates` would change."""

    notifications: int
    deleted: int
    """Those of them that MongoDB would delete at once."""


def backfill_purge_dates() -> int:
    """Set all purge dates by the current retention. Return how many changed. Idempotent."""
    changed = 0
    for policy in retention.read_all():
        for ids in _backfill_batches(policy.category):
            changed += removal.set_purge_dates(ids=ids, metadata=policy.metadata)
    log.info("purge_dates_backfilled", notifications=changed)
    return changed


def count_purge_date_changes(*, now: datetime) -> PurgeDateChanges:
    """Count what :func:`backfill_purge_dates` would change. Reads all ended notifications."""
    changed = deleted = 0
    for policy in retention.read_all():
        new = removal.purged_at(policy.metadata)
        differing = _match_ended(policy.category) | {"$expr": {"$ne": ["$purge_at", new]}}
        changed += _count(differing)
        deleted += _count({"$and": [differing, {"$expr": {"$lte": [new, now]}}]})
    return PurgeDateChanges(notifications=changed, deleted=deleted)


def _backfill_batches(category: Category) -> Iterator[list[ObjectId]]:
    ids: list[ObjectId] = []
    found = NOTIFICATIONS().find(_match_ended(category), {"_id": 1, "created_at": 1})
    with found.sort(OLDEST_FIRST).hint(INDEX).batch_size(BACKFILL_BATCH) as cursor:
        for document in cursor:
            ids.append(document["_id"])
            if len(ids) == BACKFILL_BATCH:
                yield ids
                ids = []
    if ids:
        yield ids


def _match_ended(category: Category) -> dict[str, Any]:
    return {"category": category.value, "due_at": None}


def _count(match: dict[str, Any]) -> int:
    return int(NOTIFICATIONS().count_documents(match, hint=INDEX))
