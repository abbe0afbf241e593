"""Removing what old notifications say, category by category, as each one's retention says.

They are found by the index of the last change (``ntf_updated``), which is there anyway: whatever is
open when the walk comes by is changed once more when it ends, and so lies ahead of the walk again.
How far each category has come is remembered, so that nothing is looked at twice. Why it is so:
docs/decisions/0031-retention.md.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import structlog
from bson import ObjectId

from notifications import store
from notifications.catalog import retention
from notifications.catalog.retention import Retention
from notifyproject.db.collections import collection

log = structlog.get_logger(__name__)
BATCH = 500
MAX_SPAN = timedelta(hours=1)
"""So much of the index is read by one query at most, however little of it is to be changed."""
MAX_SECONDS = 20.0
"""How long one call goes on, unless it is told: the next one is a minute later."""
INDEX = "ntf_updated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRemoval:
    """What one call did."""

    notifications: int
    """Whose content was removed."""
    attempts: int
    is_complete: bool
    """False: its time was over first. Calling it again goes on."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Categories that have come as far as each other, and may go as far."""

    policies: Sequence[Retention]
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some of what is due; once it is done, all that was touched before ``until`` is."""

    source: _Range
    ids: Sequence[ObjectId]
    until: datetime

    @property
    def is_last(self) -> bool:
        """Whether the walk has come to its end."""
        return self.until >= self.source.until


def remove_expired_content(
    *,
    now: datetime,
    seconds: float | None = MAX_SECONDS,
    is_from_beginning: bool = False,
    timer: Callable[[], float] = time.monotonic,
) -> ContentRemoval:
    """Remove what is due, as far as the time allows; ``None``: to the end.

    ``is_from_beginning``: what was looked at before is looked at again. It may be stopped at any
    time and done again, by any number of processes. Raises PyMongoError.
    """
    until = None if seconds is None else timer() + seconds
    notifications = attempts = 0
    is_complete = True
    for batch in _batches(_pending_ranges(now, is_from_beginning=is_from_beginning)):
        if batch.ids:
            removed = store.remove_content(ids=batch.ids, before=batch.source.until, now=now)
            notifications += removed.notifications
            attempts += removed.attempts
        is_complete = until is None or timer() < until
        if batch.ids or batch.is_last or not is_complete:
            _record_progress(batch)
        if not is_complete:
            break
    log.info(
        "content_removed", notifications=notifications, attempts=attempts, is_complete=is_complete
    )
    return ContentRemoval(notifications=notifications, attempts=attempts, is_complete=is_complete)


def count_expired_content(*, now: datetime, is_from_beginning: bool = False) -> int:
    """Return of how many notifications :func:`remove_expired_content` would remove what they say."""
    return sum(
        collection("notifications").count_documents(
            {**_match(pending, since, until), "content_removed_at": None}, hint=INDEX
        )
        for pending in _pending_ranges(now, is_from_beginning=is_from_beginning)
        for since, until in _spans(pending)
    )


def _pending_ranges(now: datetime, *, is_from_beginning: bool) -> list[_Range]:
    """Return the ways that are left to go; categories that go the same way go it together."""
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
    """Return when the notification was touched that was left alone for longest; None without any.

    What is before that is gone: nobody has to look for it, hour by hour.
    """
    found = collection("notifications").find({}, {"updated_at": 1}).sort("updated_at", 1)
    return next((document["updated_at"] for document in found.hint(INDEX).limit(1)), None)


def _batches(ranges: Sequence[_Range]) -> Iterator[_Batch]:
    """Yield what is due, that touched longest ago first; the end of a slice, if there is none."""
    for pending in ranges:
        for since, until in _spans(pending):
            documents: list[store.Document] = []
            for document in _find(pending, since, until):
                documents.append(document)
                if len(documents) == BATCH:
                    yield _Batch(pending, _ids(documents), documents[-1]["updated_at"])
                    documents = []
            yield _Batch(pending, _ids(documents), until)


def _ids(documents: Sequence[store.Document]) -> list[ObjectId]:
    return [document["_id"] for document in documents]


def _spans(pending: _Range) -> Iterator[tuple[datetime, datetime]]:
    since = pending.since
    while since < pending.until:
        until = min(since + MAX_SPAN, pending.until)
        yield since, until
        since = until


def _find(pending: _Range, since: datetime, until: datetime) -> Iterator[store.Document]:
    found = collection("notifications").find(_match(pending, since, until), {"updated_at": 1})
    with found.sort("updated_at", 1).hint(INDEX).batch_size(BATCH) as cursor:
        yield from cursor


def _match(pending: _Range, since: datetime, until: datetime) -> dict[str, Any]:
    return {
        **store.match_ended_before(until),
        "updated_at": {"$gte": since, "$lt": until},
        "category": {"$in": [policy.category.value for policy in pending.policies]},
        "erased_at": None,
    }


def _record_progress(batch: _Batch) -> None:
    for policy in batch.source.policies:
        retention.record_progress(policy.category, until=batch.until)
