"""Removes the content of old notifications. See docs/decisions/0023-retention.md.

Notifications are read in the order of their last change. An open notification changes again when it
ends, so a later scan finds it. The progress of each category is stored.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import structlog
from bson import ObjectId

from notifications.catalog import retention
from notifications.catalog.retention import Retention
from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifications.store import removal

log = structlog.get_logger(__name__)
BATCH = 500
MAX_SPAN = timedelta(hours=1)
"""Maximum range of time that one query reads from the index."""
MAX_SECONDS = 20.0
"""Default time budget of a call. The next call starts a minute later."""
INDEX = "ntf_updated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRemoval:
    """What one call removed."""

    notifications: int
    attempts: int
    is_complete: bool
    """False if the time budget ended first; another call continues."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Categories that share the range of last changes to process."""

    policies: Sequence[Retention]
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class _Batch:
    source: _Range
    ids: Sequence[ObjectId]
    until: datetime


def remove_expired_content(
    *,
    now: datetime,
    seconds: float | None = MAX_SECONDS,
    is_from_beginning: bool = False,
    timer: Callable[[], float] = time.monotonic,
) -> ContentRemoval:
    """Remove expired content for up to ``seconds``, or without limit for None.

    Idempotent, and safe to interrupt and to run concurrently. Raises PyMongoError.
    """
    until = None if seconds is None else timer() + seconds
    notifications = attempts = 0
    is_complete = True
    for batch in _batches(_pending_ranges(now, is_from_beginning=is_from_beginning)):
        if batch.ids:
            removed = removal.remove_content(ids=batch.ids, before=batch.source.until, now=now)
            notifications += removed.notifications
            attempts += removed.attempts
        is_complete = until is None or timer() < until
        is_last = batch.until >= batch.source.until
        if batch.ids or is_last or not is_complete:
            for policy in batch.source.policies:
                retention.record_progress(policy.category, until=batch.until)
        if not is_complete:
            break
    log.info(
        "content_removed", notifications=notifications, attempts=attempts, is_complete=is_complete
    )
    return ContentRemoval(notifications=notifications, attempts=attempts, is_complete=is_complete)


def count_expired_content(*, now: datetime, is_from_beginning: bool = False) -> int:
    """Count the notifications due for content removal."""
    return sum(
        NOTIFICATIONS().count_documents(
            {**_match(pending, since, until), "content_removed_at": None}, hint=INDEX
        )
        for pending in _pending_ranges(now, is_from_beginning=is_from_beginning)
        for since, until in _spans(pending)
    )


def _pending_ranges(now: datetime, *, is_from_beginning: bool) -> list[_Range]:
    oldest = _oldest()
    if oldest is None:
        return []

    def span_of(policy: Retention) -> tuple[datetime, datetime]:
        done = None if is_from_beginning else policy.removed_until
        return max(done or oldest, oldest), now - policy.content

    policies = sorted(retention.read_all(), key=span_of)
    ranges = [_Range(list(group), *span) for span, group in groupby(policies, key=span_of)]
    return [pending for pending in ranges if pending.since < pending.until]


def _oldest() -> datetime | None:
    found = NOTIFICATIONS().find({}, {"updated_at": 1}).sort("updated_at", 1)
    return next((document["updated_at"] for document in found.hint(INDEX).limit(1)), None)


def _batches(ranges: Sequence[_Range]) -> Iterator[_Batch]:
    for pending in ranges:
        for since, until in _spans(pending):
            documents: list[NotificationDocument] = []
            for document in _find(pending, since, until):
                documents.append(document)
                if len(documents) == BATCH:
                    yield _Batch(pending, _ids(documents), documents[-1]["updated_at"])
                    documents = []
            yield _Batch(pending, _ids(documents), until)


def _ids(documents: Sequence[NotificationDocument]) -> list[ObjectId]:
    return [document["_id"] for document in documents]


def _spans(pending: _Range) -> Iterator[tuple[datetime, datetime]]:
    since = pending.since
    while since < pending.until:
        until = min(since + MAX_SPAN, pending.until)
        yield since, until
        since = until


def _find(pending: _Range, since: datetime, until: datetime) -> Iterator[NotificationDocument]:
    found = NOTIFICATIONS().find(_match(pending, since, until), {"updated_at": 1})
    with found.sort("updated_at", 1).hint(INDEX).batch_size(BATCH) as cursor:
        yield from cursor


def _match(pending: _Range, since: datetime, until: datetime) -> dict[str, Any]:
    return {
        **removal.match_ended_before(until),
        "updated_at": {"$gte": since, "$lt": until},
        "category": {"$in": [policy.category.value for policy in pending.policies]},
        "erased_at": None,
    }
