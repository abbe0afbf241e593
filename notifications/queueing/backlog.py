"""Backpressure: measures due work, and decides whether bulk requests must wait.

Each process measures at most every few seconds, from the index of open work alone, and counts no
further than the limit.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

import structlog
from django.conf import settings

from domain.states import Priority
from notifyproject.db.collections import collection

log = structlog.get_logger(__name__)
FRESH_SECONDS = 5.0
RETRY_AFTER = timedelta(seconds=30)
"""Wait for rejected clients: a backlog at its limit takes minutes to shrink."""
INDEX = "ntf_due"
_latest: dict[str, tuple[bool, float]] = {}
"""The last result and its time, on the steady clock."""
_lock = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Notifications that are due and not settled."""

    due: int
    """Counted up to a cap."""
    oldest_due_at: datetime | None

    def is_overloaded(self, *, now: datetime) -> bool:
        """Return whether the backlog exceeds one of its two limits."""
        if self.due > settings.BULK_PENDING_LIMIT:
            return True
        oldest = self.oldest_due_at
        return oldest is not None and now - oldest > settings.BULK_OLDEST_DUE


def is_overloaded(*, now: datetime) -> bool:
    """Return whether bulk requests must wait; measured a few seconds ago at most."""
    was_overloaded, measured_at = _latest.get("all", (False, float("-inf")))
    is_fresh = time.monotonic() - measured_at <= FRESH_SECONDS
    # One thread measures; the others use the previous result meanwhile.
    if is_fresh or not _lock.acquire(blocking=measured_at == float("-inf")):
        return was_overloaded
    try:
        found = measure_backlog(now=now, cap=settings.BULK_PENDING_LIMIT + 1)
        overloaded = found.is_overloaded(now=now)
        if overloaded and not was_overloaded:
            log.warning("backlog_limit_exceeded", due=found.due, oldest_due_at=found.oldest_due_at)
        _latest["all"] = overloaded, time.monotonic()
    finally:
        _lock.release()
    return overloaded


def measure_backlog(*, now: datetime, cap: int) -> Backlog:
    """Return the backlog of all priorities, counted up to ``cap``."""
    oldest = oldest_due(now=now)
    due = 0 if oldest is None else count_due(now=now, cap=cap)
    return Backlog(due=due, oldest_due_at=oldest)


def oldest_due(
    *, now: datetime, priority: Priority | None = None, match: Mapping[str, Any] | None = None
) -> datetime | None:
    """Return when the oldest due notification fell due; by one index read for each priority."""
    found = (
        collection("notifications").find_one(
            {"priority": one.value, "due_at": {"$lte": now}, **(match or {})},
            {"due_at": 1, "_id": 0},
            sort=[("due_at", 1)],
            hint=INDEX,
        )
        for one in ([priority] if priority else Priority)
    )
    return min((one["due_at"] for one in found if one), default=None)


def count_due(
    *,
    now: datetime,
    cap: int,
    priority: Priority | None = None,
    match: Mapping[str, Any] | None = None,
) -> int:
    """Return the number of due notifications, of one priority or of all, up to ``cap``."""
    priorities = [one.value for one in ([priority] if priority else Priority)]
    wanted = {"priority": {"$in": priorities}, "due_at": {"$lte": now}, **(match or {})}
    return collection("notifications").count_documents(wanted, limit=cap, hint=INDEX)


def clear() -> None:
    """Clear the last result, so that the next call measures."""
    _latest.clear()
