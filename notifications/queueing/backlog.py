"""Backpressure: measures due work every few seconds, so that bulk requests can be rejected."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings

from domain.states import Priority
from notifications.documents.notification import NOTIFICATIONS
from notifyproject.platform.cache import TimedCache

log = structlog.get_logger(__name__)
FRESH_SECONDS = 5.0
RETRY_AFTER = timedelta(seconds=30)
"""Retry-After for rejected requests. A backlog at its limit takes minutes to shrink."""
INDEX = "ntf_due"
_cache = TimedCache[bool](seconds=FRESH_SECONDS, serve_stale=True)
clear = _cache.clear


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The number of due notifications, and when the oldest of them fell due."""

    due: int  # Counted up to a cap
    oldest_due_at: datetime | None

    def is_overloaded(self, *, now: datetime) -> bool:
        """Return whether the backlog exceeds a limit, of number or of age."""
        is_late = self.oldest_due_at and now - self.oldest_due_at > settings.BULK_OLDEST_DUE
        return self.due > settings.BULK_PENDING_LIMIT or bool(is_late)


def is_overloaded(*, now: datetime) -> bool:
    """Return whether bulk requests must wait, measured at most a few seconds ago."""
    return _cache.get(lambda: _measure_overload(now))


def _measure_overload(now: datetime) -> bool:
    found = measure_backlog(now=now, cap=settings.BULK_PENDING_LIMIT + 1)
    overloaded = found.is_overloaded(now=now)
    if overloaded and not _cache.latest:
        log.warning("backlog_limit_exceeded", due=found.due, oldest_due_at=found.oldest_due_at)
    return overloaded


def measure_backlog(*, now: datetime, cap: int) -> Backlog:
    """Return the backlog of all priorities, counted up to ``cap``."""
    oldest = oldest_due(now=now)
    due = 0 if oldest is None else count_due(now=now, cap=cap)
    return Backlog(due=due, oldest_due_at=oldest)


def oldest_due(
    *, now: datetime, priority: Priority | None = None, match: Mapping[str, Any] | None = None
) -> datetime | None:
    """Return when the oldest due notification fell due, or None. Takes a read per priority."""
    found = (
        NOTIFICATIONS().find_one(
            {"priority": level.value, "due_at": {"$lte": now}, **(match or {})},
            {"due_at": 1, "_id": 0},
            sort=[("due_at", 1)],
            hint=INDEX,
        )
        for level in ([priority] if priority else Priority)
    )
    return min((document["due_at"] for document in found if document), default=None)


def count_due(
    *,
    now: datetime,
    cap: int,
    priority: Priority | None = None,
    match: Mapping[str, Any] | None = None,
) -> int:
    """Count the due notifications of one or all priorities, up to ``cap``."""
    priorities = [level.value for level in ([priority] if priority else Priority)]
    wanted = {"priority": {"$in": priorities}, "due_at": {"$lte": now}, **(match or {})}
    return NOTIFICATIONS().count_documents(wanted, limit=cap, hint=INDEX)
