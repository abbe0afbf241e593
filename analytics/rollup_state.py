"""Which minutes have to be counted again, and who is counting."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pymongo import DeleteOne, UpdateOne
from pymongo.errors import DuplicateKeyError

from notifyproject.db.collections import collection

RECENT = timedelta(minutes=10)
"""A minute that is younger is counted again at once."""
RECOUNT_AGE_DIVISOR = 12
"""An older one after this part of its age: a day-old minute at most every two hours."""
MAX_RECOUNT_AGE = timedelta(days=3)
"""Figures of older minutes stay as they are: reports hardly ever come later."""
MAX_MINUTES = 600
"""Minutes that are looked at in one go."""
LEASE = timedelta(minutes=5)
STATE = "rollup"


@dataclass(frozen=True, slots=True)
class ChangedMinute:
    """A minute to be counted again."""

    minute: datetime
    touched_at: datetime


def mark_changed(minutes: Iterable[datetime], *, now: datetime) -> None:
    """Note that something of these minutes has changed; what is too old is left as it is."""
    writes = [
        UpdateOne(
            {"_id": _id(minute)},
            {
                "$set": {"touched_at": now},
                "$setOnInsert": {"minute": minute, "due_at": _due_at(minute, now)},
            },
            upsert=True,
        )
        for minute in minutes
        if now - minute <= MAX_RECOUNT_AGE
    ]
    if writes:
        collection("metrics_due").bulk_write(writes, ordered=False)


def due_minutes(*, now: datetime) -> list[ChangedMinute]:
    """Return minutes to be counted now, the newest first."""
    found = (
        collection("metrics_due")
        .find({"due_at": {"$lte": now}})
        .sort("due_at", -1)
        .limit(MAX_MINUTES)
        .hint("mdu_due")
    )
    changed = [ChangedMinute(one["minute"], one["touched_at"]) for one in found]
    return sorted(changed, key=lambda mark: mark.minute, reverse=True)


def remove_counted(counted: Sequence[ChangedMinute]) -> None:
    """Forget minutes that were counted, unless something has changed meanwhile."""
    writes = [
        DeleteOne({"_id": _id(mark.minute), "touched_at": mark.touched_at}) for mark in counted
    ]
    if writes:
        collection("metrics_due").bulk_write(writes, ordered=False)


def acquire_lease(*, now: datetime) -> bool:
    """Take the lease that one roll-up at a time holds; return whether it was free."""
    free = {"_id": STATE, "$or": [{"lease_until": None}, {"lease_until": {"$lte": now}}]}
    try:
        collection("rollup_state").update_one(
            free, {"$set": {"lease_until": now + LEASE}}, upsert=True
        )
    except DuplicateKeyError:
        return False
    return True


def renew_lease(*, now: datetime) -> None:
    """Renew the lease, in the middle of something long."""
    collection("rollup_state").update_one(
        {"_id": STATE}, {"$set": {"lease_until": now + LEASE}}, upsert=True
    )


def release_lease() -> None:
    """Give the lease back."""
    collection("rollup_state").update_one({"_id": STATE}, {"$set": {"lease_until": None}})


def record_counted(*, now: datetime) -> None:
    """Note that the figures are up to date, but for what is left to the next roll-up."""
    collection("rollup_state").update_one({"_id": STATE}, {"$set": {"counted_at": now}})


def changes_until() -> datetime | None:
    """Return up to when changes were found; None before the first roll-up."""
    state = collection("rollup_state").find_one({"_id": STATE})
    return state.get("changes_until") if state else None


def record_changes_until(*, until: datetime) -> None:
    """Note up to when changes were found."""
    collection("rollup_state").update_one(
        {"_id": STATE}, {"$set": {"changes_until": until}}, upsert=True
    )


def counted_at() -> datetime | None:
    """Return when a roll-up last ended; None before the first."""
    state = collection("rollup_state").find_one({"_id": STATE})
    return state.get("counted_at") if state else None


def _id(minute: datetime) -> str:
    return f"{minute:%Y-%m-%dT%H:%M}"


def _due_at(minute: datetime, now: datetime) -> datetime:
    age = now - minute
    return now if age <= RECENT else now + age / RECOUNT_AGE_DIVISOR
