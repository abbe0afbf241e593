"""How much is due and waits for a worker, and whether that leaves room for more in bulk.

Asked with every call that brings many notifications, so it is measured once in a few seconds in
each process: from the index of open work alone, and no further than the limit.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings

from domain.states import Priority
from notifyproject.db.collections import collection
from notifyproject.platform.cache import TimedCache

log = structlog.get_logger(__name__)
FRESH_SECONDS = 5.0
RETRY_AFTER = timedelta(seconds=30)
"""What a caller is asked to wait: a backlog at its limit takes some minutes to shrink."""
INDEX = "ntf_due"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What is due and not done."""

    due: int
    """Notifications; one more than the limit stands for any number."""
    oldest_due_at: datetime | None

    def is_overloaded(self, *, now: datetime) -> bool:
        """Return whether it is over one of its two limits."""
        if self.due > settings.BULK_PENDING_LIMIT:
            return True
        oldest = self.oldest_due_at
        return oldest is not None and now - oldest > settings.BULK_OLDEST_DUE


_cache = TimedCache[bool](seconds=FRESH_SECONDS, serve_stale=True)
clear = _cache.clear


def is_overloaded(*, now: datetime) -> bool:
    """Return whether the workers are too far behind for more in bulk; a few seconds old at most."""
    return _cache.get(lambda: _measure_overload(now))


def _measure_overload(now: datetime) -> bool:
    found = measure_backlog(now=now, cap=settings.BULK_PENDING_LIMIT + 1)
    overloaded = found.is_overloaded(now=now)
    if overloaded and not _cache.latest:
        log.warning("backlog_too_long", due=found.due, oldest_due_at=found.oldest_due_at)
    return overloaded


def measure_backlog(*, now: datetime, cap: int) -> Backlog:
    """Return what is due, counted up to ``cap``, and since when the oldest of it has been."""
    oldest = [first for priority in Priority if (first := _oldest(priority, now)) is not None]
    if not oldest:
        return Backlog(due=0, oldest_due_at=None)
    wanted = {"priority": {"$in": [p.value for p in Priority]}, "due_at": {"$lte": now}}
    due = collection("notifications").count_documents(wanted, limit=cap, hint=INDEX)
    return Backlog(due=due, oldest_due_at=min(oldest))


def _oldest(priority: Priority, now: datetime) -> datetime | None:
    found = collection("notifications").find_one(
        {"priority": priority.value, "due_at": {"$lte": now}},
        {"due_at": 1, "_id": 0},
        sort=[("due_at", 1)],
        hint=INDEX,
    )
    return found["due_at"] if found else None
