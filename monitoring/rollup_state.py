"""Stores which minutes to recount, and the roll-up's lease and progress."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from pymongo import DeleteOne, UpdateOne

from access.clients import registry
from notifyproject.db.leases import Claim, Leases
from notifyproject.platform import audit, process

from . import metrics
from .documents import METRICS_DUE, ROLLUP_STATE, RollupStateDocument
from .models import Interval, RollupState

RECENT = timedelta(minutes=10)
"""A minute younger than this is recounted at once."""
RECOUNT_AGE_DIVISOR = 12
"""An older minute is recounted after this share of its age: at a day, every two hours at most."""
MAX_RECOUNT_AGE = timedelta(days=3)
"""Older minutes aren't recounted, since receipts hardly ever arrive later."""
MAX_MINUTES = 600
STOPPED_MESSAGE = "Stopped: three workers in a row ended while they counted."
LEASES = Leases(collection=ROLLUP_STATE, length=timedelta(minutes=5), max_claims=3)
"""After three claims without a count, the roll-up stops: it may be what ends its workers."""
STATE = "rollup"
log = structlog.get_logger(__name__)


class LeaseLostError(Exception):
    """Another worker has the roll-up's lease by now."""


@dataclass(frozen=True, slots=True)
class ChangedMinute:
    """A minute whose metrics must be recounted."""

    minute: datetime
    touched_at: datetime


def mark_changed(minutes: Iterable[datetime], *, now: datetime) -> None:
    """Mark minutes for a recount, except those older than MAX_RECOUNT_AGE."""
    writes = []
    for minute in minutes:
        if now - minute <= MAX_RECOUNT_AGE:
            new = {"minute": minute, "due_at": _due_at(minute, now)}
            change = {"$set": {"touched_at": now}, "$setOnInsert": new}
            writes.append(UpdateOne({"_id": _id(minute)}, change, upsert=True))
    if writes:
        METRICS_DUE().bulk_write(writes, ordered=False)


def mark_attempt_changed(attempted_at: datetime, *, now: datetime) -> None:
    """Mark the minute of an attempt whose notification stayed as it was, so that none is found."""
    mark_changed([metrics.interval_start(Interval.MINUTE, attempted_at)], now=now)


def due_minutes(*, now: datetime) -> list[ChangedMinute]:
    """Return the minutes due for a recount, newest first."""
    found = METRICS_DUE().find({"due_at": {"$lte": now}}).hint("mdu_due")
    found = found.sort("due_at", -1).limit(MAX_MINUTES)
    changed = [ChangedMinute(minute["minute"], minute["touched_at"]) for minute in found]
    return sorted(changed, key=lambda mark: mark.minute, reverse=True)


def remove_counted(counted: Sequence[ChangedMinute]) -> None:
    """Remove recounted minutes, except those that changed meanwhile."""
    writes = [
        DeleteOne({"_id": _id(mark.minute), "touched_at": mark.touched_at}) for mark in counted
    ]
    if writes:
        METRICS_DUE().bulk_write(writes, ordered=False)


def acquire_lease(*, now: datetime) -> Claim[RollupStateDocument] | None:
    """Acquire the roll-up's lease. Return None if another worker has it, or if it is stopped.

    It is stopped if too many workers in a row ended while they held its lease.
    """
    ROLLUP_STATE().update_one({"_id": STATE}, {"$setOnInsert": {}}, upsert=True)
    running = {"_id": STATE, "stopped_at": None}
    claim = LEASES.claim_one(running, worker=process.worker_name(), now=now)
    if claim is not None and claim.is_exhausted:
        if claim.release({"$set": {"stopped_at": now}}):
            log.error("rollup_stopped", lost_workers=LEASES.max_claims)
            _record_stop(now)
        return None
    return claim


def _record_stop(now: datetime) -> None:
    audit.record(
        by=registry.system_client_id(now=now),
        model=RollupState,
        object_id=STATE,
        name="Metrics roll-up",
        message=STOPPED_MESSAGE,
    )


def resume() -> bool:
    """Let a stopped roll-up run again. Return False if it isn't stopped."""
    stopped = {"_id": STATE, "stopped_at": {"$ne": None}}
    return ROLLUP_STATE().update_one(stopped, {"$unset": {"stopped_at": ""}}).modified_count > 0


def renew_lease(claim: Claim[RollupStateDocument], *, now: datetime) -> Claim[RollupStateDocument]:
    """Renew the lease after a count, and return the renewed claim. Raises LeaseLostError."""
    renewed = claim.renew(now=now)
    if renewed is None:
        raise LeaseLostError
    return renewed[0]


def record(claim: Claim[RollupStateDocument], **times: datetime) -> None:
    """Store ``changes_until``, or at the end ``counted_at``. Raises LeaseLostError."""
    if claim.write({"$set": times}) is None:
        raise LeaseLostError


def changes_until() -> datetime | None:
    """Return up to when changes have been marked, or None before the first roll-up."""
    return _state().get("changes_until")


def counted_at() -> datetime | None:
    """Return when the last roll-up ended, or None before the first."""
    return _state().get("counted_at")


def stopped_at() -> datetime | None:
    """Return when the roll-up was stopped, or None if it runs."""
    return _state().get("stopped_at")


def _state() -> RollupStateDocument:
    return ROLLUP_STATE().find_one({"_id": STATE}) or {"_id": STATE}


def _id(minute: datetime) -> str:
    return f"{minute:%Y-%m-%dT%H:%M}"


def _due_at(minute: datetime, now: datetime) -> datetime:
    age = now - minute
    return now if age <= RECENT else now + age / RECOUNT_AGE_DIVISOR
