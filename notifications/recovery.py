"""The sweep: finds what no hint reached, what a lost worker left, what nobody knows the end of.

Any number of sweepers at once is safe: they publish hints, and change state by compare-and-set.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from domain import queues, retry
from domain.states import Channel, Priority
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from . import broadcasts, hints, lanes, operations, queries, receipts, schedule, store, types
from .alone import ALONE
from .lanes import CROWD, HORIZON, Lane

log = structlog.get_logger(__name__)

LANE_CAP = 1_000
"""Messages that may wait in one queue before the sweep adds no more: they are repeats by then."""
LOOK = 500
"""What is due in a lane that a sweep looks at: more than a lost worker leaves of a client."""
ENOUGH = timedelta(seconds=schedule.SWEEP_SECONDS / 3)
"""How long a sweep is as good as one just now."""
SWEEP, CANARY = "sweep", "canary"
"""Signs of life: of whoever sweeps, and of a worker that gets what is published."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did."""

    hinted: int
    """Deliveries that hints were published for."""
    drawn: int
    """Crowds, of a client in a lane, that workers were told to draw from."""
    unpublished: int
    """Deliveries that are due and that the broker did not take a hint for; of a crowd, some.

    Broadcasts that are due and that nobody could be called to count like one each.
    """
    rescued: int
    """Sends whose worker was lost: their outcome is unknown now."""
    resolved: int
    """Unknown outcomes that were decided by their type's policy."""


def sweep(*, now: datetime) -> SweepReport:
    """Rescue, resolve, and publish hints for what is due; safe to run anywhere, at any time."""
    crash_points.reach(Boundary.SWEEP_BEGINS)
    receipts.apply_early(now=now)
    rescued = rescue(now=now)
    crash_points.reach(Boundary.RESCUED)
    resolved = resolve_unknown(now=now)
    crash_points.reach(Boundary.RESOLVED)
    forgotten = store.forget_secrets(now=now)
    counts = _Counts()
    for priority in Priority:
        _publish_due(priority, counts, now)
    operated = operations.revive(now=now)
    counts.unpublished += broadcasts.wake(now=now)
    crash_points.reach(Boundary.SWEEP_HINTED)
    hints.publish_canary(now=now)
    _sign(SWEEP, now)
    report = SweepReport(counts.hinted, counts.drawn, counts.unpublished, rescued, resolved)
    log.info(
        "swept",
        hinted=report.hinted,
        drawn=report.drawn,
        unpublished=report.unpublished,
        rescued=rescued,
        resolved=resolved,
        forgotten=forgotten,
        operated=operated,
    )
    return report


def sweep_in_turn(*, now: datetime) -> None:
    """Sweep unless somebody just has: where no worker was for a while, hundreds of turns wait."""
    last = last_sweep()
    if last is None or now - last > ENOUGH:
        sweep(now=now)


def last_sweep() -> datetime | None:
    """Return when the last sweep ended; None before the first."""
    return _sign_of(SWEEP)


def note_canary(*, now: datetime) -> None:
    """Note that a worker took a message from the broker."""
    _sign(CANARY, now)


def last_canary() -> datetime | None:
    """Return when a worker last took the message that each sweep publishes for it."""
    return _sign_of(CANARY)


def rescue(*, now: datetime) -> int:
    """End what lost workers were sending, batch by batch; return how many there were."""
    rescued = more = store.rescue(now=now)
    while more:
        more = store.rescue(now=now)
        rescued += more
    return rescued


def resolve_unknown(*, now: datetime) -> int:
    """Decide, by its type's policy, each unknown outcome for which no receipt came in time."""
    resolved = 0
    while waiting := store.unresolved(now=now):
        decisions = [
            (one, retry.decide_unknown(policy=_policy(one.type), standing=one.standing, now=now))
            for one in waiting
        ]
        done = store.resolve(decisions, now=now)
        resolved += done
        if not done:
            # Others are faster: what is left is theirs.
            break
    return resolved


def _policy(type_name: str) -> retry.UnknownPolicy:
    try:
        return types.get(type_name).on_unknown
    except types.UnknownType:
        # The type was switched off meanwhile: twice is worse than never.
        return retry.UnknownPolicy.FAIL


def _sign(who: str, now: datetime) -> None:
    collection("heartbeats").update_one({"_id": who}, {"$set": {"at": now}}, upsert=True)


def _sign_of(who: str) -> datetime | None:
    heartbeat = collection("heartbeats").find_one({"_id": who})
    return heartbeat["at"] if heartbeat else None


@dataclass(slots=True)
class _Counts:
    """What a sweep has published so far."""

    hinted: int = 0
    drawn: int = 0
    unpublished: int = 0


def _publish_due(priority: Priority, counts: _Counts, now: datetime) -> None:
    """Publish hints for what is due of one priority: for each client and channel its own."""
    clients = queries.waiting_clients(priority=priority)
    for channel in Channel if clients else ():
        waiting = hints.depth(queues.queue_name(channel, priority))
        has_room = waiting is not None and waiting < LANE_CAP
        for client_id in clients:
            lane = Lane(client_id, channel, priority)
            due = queries.due(
                client_id=client_id,
                channel=channel,
                priority=priority,
                until=now + HORIZON,
                now=now,
                limit=LOOK,
            )
            if has_room:
                _publish_lane(lane, due, counts, now)
            else:
                counts.unpublished += sum(1 for one in due if one.at <= now)


def _publish_lane(lane: Lane, due: Sequence[queries.Due], counts: _Counts, now: datetime) -> None:
    """Have workers look at what goes alone, some in each message, and at all the rest."""
    _publish_few(lane, [one for one in due if one.is_suspect], counts, now, size=ALONE)
    if len(due) > CROWD:
        _publish_crowd(lane, due, counts, now)
    else:
        _publish_few(lane, [one for one in due if not one.is_suspect], counts, now)


def _publish_crowd(lane: Lane, due: Sequence[queries.Due], counts: _Counts, now: datetime) -> None:
    """Have workers draw from a lane when the first of a crowd falls due; they go on themselves."""
    first = min(one.at for one in due)
    if first <= now:
        is_known = lanes.invite(lane, now=now)
    else:
        is_known = lanes.look_again(lane, at=lanes.moment(first, now=now), now=now)
    counts.drawn += is_known
    counts.unpublished += 0 if is_known else len(due)


def _publish_few(
    lane: Lane,
    due: Sequence[queries.Due],
    counts: _Counts,
    now: datetime,
    size: int = lanes.HINT,
) -> None:
    """Publish hints by id for deliveries, those that fall due in the same second together."""

    def second(one: queries.Due) -> datetime:
        return lanes.moment(one.at, now=now)

    for at, some in itertools.groupby(sorted(due, key=second), key=second):
        ids = [one.notification_id for one in some]
        done = lanes.publish(
            ids, channel=lane.channel, priority=lane.priority, at=at, now=now, size=size
        )
        counts.hinted += done
        counts.unpublished += len(ids) - done
