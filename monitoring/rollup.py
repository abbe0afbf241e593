"""Recounts the metrics of minutes that changed, and sums them up to hours and days.

Nothing is counted while notifications are accepted or sent. A task finds the changed minutes every
minute, by the index on the time of the last change. See docs/reference/metrics.md.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings

from domain.time import Clock, utc_now
from notifications.documents.notification import NOTIFICATIONS
from notifyproject.db.collections import collection
from notifyproject.db.leases import Claim

from . import metrics, rollup_state
from .documents import RollupStateDocument
from .models import Interval
from .rollup_counts import count_minutes, minute_of
from .rollup_state import ChangedMinute, LeaseLostError

INDEX = "ntf_updated"
EVENTS = ("sent", "delivered", "read", "failed")
"""Events ``delivery.<name>``, at the delivery's ``<name>_at``."""
Stages = list[dict[str, Any]]
log = structlog.get_logger(__name__)
OVERLAP = timedelta(seconds=45)
"""Changes are read again this far back: clocks differ by a second at most, and a write without a
primary is retried for half a minute."""
FIRST_LOOKBACK = timedelta(days=1)
CHANGES_PER_READ = timedelta(minutes=10)
MINUTES_PER_READ = 10
BUDGET_SECONDS = 40.0
"""Time budget. The next roll-up, a minute later, does the rest."""
MINUTE = metrics.INTERVAL_LENGTH[Interval.MINUTE]


def changed_minutes(since: datetime, until: datetime) -> set[datetime]:
    """Return the minutes in which notifications that changed were accepted or attempted."""
    minutes = {
        "$setUnion": [
            [minute_of("$created_at")],
            {"$map": {"input": "$delivery.last_attempt_at", "as": "at", "in": minute_of("$$at")}},
        ]
    }
    is_retried = {"$gt": [{"$max": "$delivery.attempt_count"}, 1]}
    found = collection(NOTIFICATIONS.name).aggregate(
        [
            *_match_changed(since, until),
            {"$project": {"minute": minutes, "is_retried": is_retried}},
            {"$unwind": "$minute"},
            {"$group": {"_id": "$minute", "is_retried": {"$max": "$is_retried"}}},
        ],
        hint=INDEX,
    )
    rows = list(found)
    # Usually nothing is retried, and the changed notifications are read once.
    if any(row["is_retried"] for row in rows):
        rows += _minutes_of_retries(since, until)
    return {row["_id"] for row in rows if row["_id"]}


def _minutes_of_retries(since: datetime, until: datetime) -> Iterable[dict[str, Any]]:
    """Return the minutes of all attempts of retried deliveries, since the last attempt changed."""
    return collection(NOTIFICATIONS.name).aggregate(
        [
            *_match_changed(since, until, extra={"delivery.attempt_count": {"$gt": 1}}),
            {"$project": {"_id": 1}},
            {
                "$lookup": {
                    "from": "delivery_attempts",
                    "localField": "_id",
                    "foreignField": "notification_id",
                    "as": "attempt",
                    "pipeline": [{"$project": {"attempted_at": 1}}],
                }
            },
            {"$unwind": "$attempt"},
            {"$group": {"_id": minute_of("$attempt.attempted_at")}},
        ],
        hint=INDEX,
    )


def write_events(since: datetime, until: datetime, *, now: datetime) -> None:
    """Write events of changed deliveries in one aggregation. Existing events stay."""
    days = settings.ANALYTICS_EVENTS_DAYS
    if not days:
        return
    retention = timedelta(days=days)
    events = [{"name": name, "at": f"$delivery.{name}_at"} for name in EVENTS]
    collection(NOTIFICATIONS.name).aggregate(
        [
            *_match_changed(since, until),
            {"$project": {"user_id": 1, "type": 1, "delivery": 1}},
            {"$unwind": "$delivery"},
            {"$project": {"event": events, "user_id": 1, "type": 1, "delivery": 1}},
            {"$unwind": "$event"},
            {"$match": {"event.at": {"$gt": now - retention}}},
            {"$replaceWith": _event_document(retention)},
            {"$merge": {"into": "analytics_events", "on": "_id", "whenMatched": "keepExisting"}},
        ],
        hint=INDEX,
    )


def _match_changed(
    since: datetime, until: datetime, *, extra: dict[str, Any] | None = None
) -> Stages:
    changed = {"updated_at": {"$gte": since, "$lt": until}, "is_test": {"$ne": True}}
    return [{"$match": changed | (extra or {})}]


def _event_document(retention: timedelta) -> dict[str, Any]:
    is_failure = {"$eq": ["$event.name", "failed"]}
    code = {"$ifNull": ["$delivery.failure_code", "$$REMOVE"]}
    return {
        "_id": {"$concat": [{"$toString": "$_id"}, ".", "$delivery.channel", ".", "$event.name"]},
        "event_type": {"$concat": ["delivery.", "$event.name"]},
        "entity_id": {"$toString": "$_id"},
        "user_id": {"$ifNull": ["$user_id", "$$REMOVE"]},
        "data": {
            "channel": "$delivery.channel",
            "type": "$type",
            "provider": {"$ifNull": ["$delivery.provider", "$$REMOVE"]},
            "code": {"$cond": [is_failure, code, "$$REMOVE"]},
        },
        "created_at": "$event.at",
        "purge_at": {"$add": ["$event.at", retention // timedelta(milliseconds=1)]},
    }


@dataclass(frozen=True, slots=True)
class RollupReport:
    """How many minutes one roll-up counted and left."""

    counted: int
    remaining: int


def run(
    *, now: datetime, budget: float = BUDGET_SECONDS, clock: Clock = utc_now
) -> RollupReport | None:
    """Roll up the changed minutes. Return None if another process is doing so. Idempotent."""
    deadline = time.monotonic() + budget
    with _leased(now, clock) as lease:
        if lease is None:
            return None
        report = _run(lease, now, deadline)
        rollup_state.record(lease.claim, counted_at=now)
        log.info("rollup_finished", counted=report.counted, remaining=report.remaining)
        return report
    return None


def rebuild(
    *, since: datetime, until: datetime, now: datetime, clock: Clock = utc_now
) -> int | None:
    """Recount all hours of a period. Return the number of minutes, None if a roll-up is running."""
    start = metrics.interval_start(Interval.HOUR, since)
    minutes: list[datetime] = []
    while start + len(minutes) * MINUTE < until or len(minutes) % 60:
        minutes.append(start + len(minutes) * MINUTE)
    with _leased(now, clock) as lease:
        if lease is None:
            return None
        for consecutive in _split_consecutive(minutes):
            lease.recount(consecutive, now)
        lease.sum_up(minutes, now)
        return len(minutes)
    return None


@contextmanager
def _leased(now: datetime, clock: Clock) -> Iterator["_Lease | None"]:
    """Give the roll-up's lease, or None if another process has it. Ends the block if it's lost."""
    claim = rollup_state.acquire_lease(now=now)
    if claim is None:
        yield None
        return
    lease = _Lease(claim, clock)
    try:
        yield lease
    except LeaseLostError:
        log.warning("rollup_lease_lost")
    except BaseException:
        lease.claim.give_back()
        raise
    else:
        lease.claim.release()


@dataclass(slots=True)
class _Lease:
    """The roll-up's lease, which each write of metrics renews."""

    claim: Claim[RollupStateDocument]
    clock: Clock

    def recount(self, minutes: Sequence[datetime], now: datetime) -> None:
        """Count minutes and store their metrics. Raises LeaseLostError."""
        values = count_minutes(min(minutes), max(minutes) + MINUTE)
        metrics.replace(Interval.MINUTE, minutes, values, now=now)
        self._confirm(minutes)

    def sum_up(self, minutes: Sequence[datetime], now: datetime) -> None:
        """Store the metrics of the hours and days of minutes. Raises LeaseLostError."""
        _sum_up(minutes, now)
        self._confirm(minutes)

    def _confirm(self, minutes: Sequence[datetime]) -> None:
        now = self.clock()
        try:
            self.claim = rollup_state.renew_lease(self.claim, now=now)
        except LeaseLostError:
            # These values may have replaced newer ones of the new holder, so they're counted again.
            rollup_state.mark_changed(minutes, now=now)
            raise


def _run(lease: _Lease, now: datetime, deadline: float) -> RollupReport:
    _find_changes(lease, now, deadline)
    due = {mark.minute: mark for mark in rollup_state.due_minutes(now=now)}
    counted: list[ChangedMinute] = []
    for consecutive in _split_consecutive(sorted(due, reverse=True)):
        if counted and time.monotonic() > deadline:
            break
        lease.recount(consecutive, now)
        counted += [due[minute] for minute in consecutive]
    lease.sum_up([mark.minute for mark in counted], now)
    rollup_state.remove_counted(counted)
    return RollupReport(counted=len(counted), remaining=len(due) - len(counted))


def _find_changes(lease: _Lease, now: datetime, deadline: float) -> None:
    """Mark the minutes that have changed, in slices, since there may be many after a standstill."""
    since = rollup_state.changes_until() or now - FIRST_LOOKBACK
    while since < now:
        until = min(since + CHANGES_PER_READ, now)
        # Writes in progress are found by the next roll-up, within OVERLAP.
        rollup_state.mark_changed(changed_minutes(since - OVERLAP, until), now=now)
        write_events(since - OVERLAP, until, now=now)
        rollup_state.record(lease.claim, changes_until=until)
        since = until
        if time.monotonic() > deadline:
            break


def _sum_up(minutes: Iterable[datetime], now: datetime) -> None:
    hours = {metrics.interval_start(Interval.HOUR, minute) for minute in minutes}
    for hour in sorted(hours):
        metrics.sum_up(Interval.HOUR, hour, now=now)
    for day in sorted({metrics.interval_start(Interval.DAY, hour) for hour in hours}):
        metrics.sum_up(Interval.DAY, day, now=now)


def _split_consecutive(minutes: Sequence[datetime]) -> Iterator[list[datetime]]:
    consecutive: list[datetime] = []
    for minute in minutes:
        if consecutive and (
            abs(minute - consecutive[-1]) != MINUTE or len(consecutive) == MINUTES_PER_READ
        ):
            yield consecutive
            consecutive = []
        consecutive.append(minute)
    if consecutive:
        yield consecutive
