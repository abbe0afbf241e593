"""The sweep: finds what no hint reached, what a lost worker left, what nobody knows the end of.

Any number of sweepers at once is safe: they publish hints, and change state by compare-and-set.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from notifyproject.db.collections import collection

from . import hints, queries, receipts, retry, store, types
from .states import Channel, Priority

log = structlog.get_logger(__name__)

BATCH = 50
"""Deliveries in one hint of the sweep."""
LANE_CAP = 1_000
"""Hints that may wait in one queue before the sweep adds no more: they are repeats by then."""
HORIZON = timedelta(seconds=60)
"""What falls due before the next sweep is hinted at ahead, with a countdown."""
HEARTBEAT = "sweep"


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did."""

    hinted: int
    """Deliveries that hints were published for."""
    unpublished: int
    """Deliveries that are due and that the broker did not take a hint for.

    With no room in any queue, or no broker, they are not read: then notifications are counted.
    """
    rescued: int
    """Sends whose worker was lost: their outcome is unknown now."""
    resolved: int
    """Unknown outcomes that were decided by their type's policy."""


def sweep(*, now: datetime) -> SweepReport:
    """Rescue, resolve, and publish hints for what is due; safe to run anywhere, at any time."""
    receipts.apply_early(now=now)
    rescued = store.rescue(now=now)
    resolved = resolve_unknown(now=now)
    hinted = unpublished = 0
    for priority in Priority:
        done, left = _hint(priority, now)
        hinted, unpublished = hinted + done, unpublished + left
    collection("heartbeats").update_one({"_id": HEARTBEAT}, {"$set": {"at": now}}, upsert=True)
    report = SweepReport(hinted, unpublished, rescued, resolved)
    log.info("swept", hinted=hinted, unpublished=unpublished, rescued=rescued, resolved=resolved)
    return report


def last_sweep() -> datetime | None:
    """Return when the last sweep ended; None before the first."""
    heartbeat = collection("heartbeats").find_one({"_id": HEARTBEAT})
    return heartbeat["at"] if heartbeat else None


def resolve_unknown(*, now: datetime) -> int:
    """Decide, by its type's policy, each unknown outcome for which no receipt came in time."""
    waiting = store.unresolved(now=now)
    decisions = [
        (one, retry.decide_unknown(policy=_policy(one.type), standing=one.standing, now=now))
        for one in waiting
    ]
    return store.resolve(decisions, now=now)


def _policy(type_name: str) -> retry.UnknownPolicy:
    try:
        return types.get(type_name).on_unknown
    except types.UnknownType:
        # The type was switched off meanwhile: twice is worse than never.
        return retry.UnknownPolicy.FAIL


def _hint(priority: Priority, now: datetime) -> tuple[int, int]:
    """Publish hints for one priority; return for how many deliveries, and for how many not."""
    rooms = {channel: _room(channel, priority) for channel in Channel}
    limit = BATCH * max(rooms.values())
    if not limit:
        return 0, queries.count_due(priorities=[priority], until=now)
    due = queries.due(priority=priority, until=now + HORIZON, now=now, limit=limit)
    hinted = unpublished = 0
    for (channel, at), some in itertools.groupby(
        sorted(due, key=lambda d: (d.channel, _moment(d.at, now))),
        key=lambda d: (d.channel, _moment(d.at, now)),
    ):
        done, left = _publish(
            list(some), channel=channel, priority=priority, at=at, now=now, rooms=rooms
        )
        hinted, unpublished = hinted + done, unpublished + left
    return hinted, unpublished


def _publish(
    due: Sequence[queries.Due],
    *,
    channel: Channel,
    priority: Priority,
    at: datetime,
    now: datetime,
    rooms: dict[Channel, int],
) -> tuple[int, int]:
    """Publish hints for deliveries that fall due together, as far as their queue has room."""
    hinted = 0
    for start in range(0, len(due), BATCH):
        ids = [d.notification_id for d in due[start : start + BATCH]]
        if rooms[channel] <= 0 or not hints.publish(
            ids, channel=channel, priority=priority, at=at, now=now
        ):
            break
        rooms[channel] -= 1
        hinted += len(ids)
    return hinted, len(due) - hinted


def _moment(at: datetime, now: datetime) -> datetime:
    """Return when to look: now for what is due, else the end of the second it falls due in."""
    if at <= now:
        return now
    full = at.replace(microsecond=0) + timedelta(seconds=1 if at.microsecond else 0)
    return min(full, now + HORIZON)


def _room(channel: Channel, priority: Priority) -> int:
    waiting = hints.depth(hints.queue_of(channel, priority))
    return 0 if waiting is None else max(LANE_CAP - waiting, 0)
