"""Times of the last sweep and of the last worker heartbeat."""

from datetime import datetime

from notifications.documents.records import HEARTBEATS

SWEEP, WORKER_HEARTBEAT = "sweep", "canary"
"""Names of the heartbeats of the sweeper and of the workers."""


def last_sweep() -> datetime | None:
    """Return when the last sweep ended, or None before the first."""
    return _recorded_at(SWEEP)


def record_worker_heartbeat(*, now: datetime) -> None:
    """Record that a worker received the heartbeat message that each sweep publishes."""
    record(WORKER_HEARTBEAT, now)


def last_worker_heartbeat() -> datetime | None:
    """Return when a worker last received a heartbeat message, or None before the first."""
    return _recorded_at(WORKER_HEARTBEAT)


def record(name: str, now: datetime) -> None:
    """Store the time of a heartbeat."""
    HEARTBEATS().update_one({"_id": name}, {"$set": {"at": now}}, upsert=True)


def _recorded_at(name: str) -> datetime | None:
    heartbeat = HEARTBEATS().find_one({"_id": name})
    return heartbeat["at"] if heartbeat else None
