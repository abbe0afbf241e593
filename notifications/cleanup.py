"""Deleting old notifications before MongoDB does it by itself, which is 90 days after their time.

Figures and events are kept apart from notifications: they stay.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from bson import ObjectId

from notifyproject.db.collections import collection

from . import store

log = structlog.get_logger(__name__)

BATCH = 1_000
MIN_DAYS, MAX_DAYS = 1, 3_650
"""An idempotency key lives for a day: what it stands for is there as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What a clean-up has deleted, or would delete."""

    notifications: int
    attempts: int
    is_complete: bool
    """Nothing that old is left."""


def clean_up(
    *, client_id: ObjectId | None, older_than: timedelta, at_most: int | None, now: datetime
) -> Cleaned:
    """Delete notifications that are over and that nothing has happened to for ``older_than``.

    Those of one client, or of all if that is None; the oldest first, ``at_most`` so many. It may
    be stopped at any time and done again.
    """
    before = now - older_than
    found = notifications = attempts = 0
    for ids in _batches(client_id, before, at_most):
        found += len(ids)
        purged = store.purge(ids=ids, before=before)
        notifications += purged.notifications
        attempts += purged.attempts
    log.info(
        "cleaned_up",
        client_id=str(client_id) if client_id else None,
        notifications=notifications,
        attempts=attempts,
    )
    return Cleaned(
        notifications=notifications,
        attempts=attempts,
        is_complete=at_most is None or found < at_most,
    )


def count(
    *, client_id: ObjectId | None, older_than: timedelta, at_most: int | None, now: datetime
) -> Cleaned:
    """Return what :func:`clean_up` would delete, without the attempts: they are not counted."""
    found = sum(len(ids) for ids in _batches(client_id, now - older_than, at_most))
    return Cleaned(notifications=found, attempts=0, is_complete=at_most is None or found < at_most)


def _batches(
    client_id: ObjectId | None, before: datetime, at_most: int | None
) -> Iterator[list[ObjectId]]:
    """Yield the ids of what is to be deleted, the oldest first."""
    last: store.Document | None = None
    left = at_most
    while left is None or left > 0:
        size = BATCH if left is None else min(BATCH, left)
        found = _oldest(client_id, before, last, size)
        if found:
            yield [document["_id"] for document in found]
        if len(found) < size:
            return
        last = found[-1]
        left = None if left is None else left - size


def _oldest(
    client_id: ObjectId | None, before: datetime, last: store.Document | None, limit: int
) -> list[store.Document]:
    wanted: dict[str, Any] = {"created_at": {"$lt": before}, **store.is_over_since(before)}
    if client_id is not None:
        wanted["client_id"] = client_id
    if last is not None:
        # What stays is not looked at again and again.
        wanted["created_at"]["$gte"] = last["created_at"]
        wanted["$or"] = [
            {"created_at": {"$gt": last["created_at"]}},
            {"_id": {"$gt": last["_id"]}},
        ]
    found = collection("notifications").find(wanted, {"created_at": 1})
    by_client = "ntf_created" if client_id is None else "ntf_client_created"
    return list(found.sort([("created_at", 1), ("_id", 1)]).hint(by_client).limit(limit))
