"""Times of the last sweep and of the last worker heartbeat."""

from datetime import datetime

from notifyproject.db.collections import collection

SWEEP, WORKER_HEARTBEAT = "sweep", "canary"
"""Signs of life: of whoever sweeps, and of a worker that gets what is published."""


def last_sweep() -> datetime | None:
    """Return when the last sweep ended; None before the first."""
    return recorded_at(SWEEP)


def record_worker_heartbeat(*, now: datetime) -> None:
    """Note that a worker took a message from the broker."""
    record(WORKER_HEARTBEAT, now)


def last_worker_heartbeat() -> datetime | None:
    """Return when a worker last took the message that each sweep publishes for it."""
    return recorded_at(WORKER_HEARTBEAT)


def record(name: str, now: datetime) -> None:
    """Store the time of a heartbeat."""
    collection("heartbeats").update_one({"_id": name}, {"$set": {"at": now}}, upsert=True)


def recorded_at(name: str) -> datetime | None:
    """Return the time of the last heartbeat; None before the first."""
    heartbeat = collection("heartbeats").find_one({"_id": name})
    return heartbeat["at"] if heartbeat else None
