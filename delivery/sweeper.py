"""Sweeper: recovers expired leases, resolves unknown outcomes, and enqueues due work again.

Finds what no wake-up reached and what a lost worker left. Any number of sweepers at once is safe:
they enqueue wake-ups, and change state by compare-and-set.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from domain import queues, retry
from domain.states import Channel, Priority
from notifications import store
from notifications.broadcasts import control
from notifications.bulk import runner
from notifications.catalog import types
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import BURST, FairQueue
from notifications.queueing.wakeups import HORIZON, ISOLATED_PER_WAKEUP
from notifications.receipts import processor
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from .heartbeats import SWEEP, last_sweep, record

SWEEP_SECONDS = 15
"""A lost worker's delivery is found within a lease and a sweep. If whoever sweeps is lost, too, and
whoever took what it found, it is found by the sweep after that: within 150 s. A sweep takes 0.1 s
with a million due."""
log = structlog.get_logger(__name__)
LANE_CAP = 1_000
"""Messages that may wait in one queue before the sweep adds no more: they are repeats by then."""
LOOK = 500
"""What is due in a lane that a sweep looks at: more than a lost worker leaves of a client."""
ENOUGH = timedelta(seconds=SWEEP_SECONDS / 3)
"""How long a sweep is as good as one just now."""


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
    processor.apply_early_receipts(now=now)
    rescued = recover_expired_leases(now=now)
    crash_points.reach(Boundary.LEASES_EXPIRED)
    resolved = resolve_unknown(now=now)
    crash_points.reach(Boundary.RESOLVED)
    forgotten = store.purge_secrets(now=now)
    counts = _Counts()
    for priority in Priority:
        _publish_due(priority, counts, now)
    operated = runner.enqueue_due(now=now)
    counts.unpublished += control.enqueue_due(now=now)
    crash_points.reach(Boundary.SWEEP_ENQUEUED)
    wakeups.request_heartbeat(now=now)
    record(SWEEP, now)
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


def sweep_if_due(*, now: datetime) -> None:
    """Sweep unless somebody just has: where no worker was for a while, hundreds of turns wait."""
    last = last_sweep()
    if last is None or now - last > ENOUGH:
        sweep(now=now)


def recover_expired_leases(*, now: datetime) -> int:
    """End what lost workers were sending, batch by batch; return how many there were."""
    rescued = more = store.expire_leases(now=now)
    while more:
        more = store.expire_leases(now=now)
        rescued += more
    return rescued


def resolve_unknown(*, now: datetime) -> int:
    """Decide, by its type's policy, each unknown outcome for which no receipt came in time."""
    resolved = 0
    while waiting := store.unknown_outcomes(now=now):
        decisions = [
            (one, retry.decide_unknown(policy=_policy(one.type), state=one.standing, now=now))
            for one in waiting
        ]
        done = store.resolve_unknown(decisions, now=now)
        resolved += done
        if not done:
            # Others are faster: what is left is theirs.
            break
    return resolved


def _policy(type_name: str) -> retry.UnknownPolicy:
    try:
        return types.get_type(type_name).on_unknown
    except types.UnknownTypeError:
        # The type was switched off meanwhile: twice is worse than never.
        return retry.UnknownPolicy.FAIL


@dataclass(slots=True)
class _Counts:
    """What a sweep has published so far."""

    hinted: int = 0
    drawn: int = 0
    unpublished: int = 0


def _publish_due(priority: Priority, counts: _Counts, now: datetime) -> None:
    """Publish hints for what is due of one priority: for each client and channel its own."""
    clients = fair_queue.waiting_clients(priority=priority)
    for channel in Channel if clients else ():
        waiting = wakeups.depth(queues.queue_name(channel, priority))
        has_room = waiting is not None and waiting < LANE_CAP
        for client_id in clients:
            lane = FairQueue(client_id, channel, priority)
            due = fair_queue.due(
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


def _publish_lane(
    lane: FairQueue, due: Sequence[fair_queue.Due], counts: _Counts, now: datetime
) -> None:
    """Have workers look at what goes alone, some in each message, and at all the rest."""
    _publish_few(
        lane, [one for one in due if one.is_suspect], counts, now, size=ISOLATED_PER_WAKEUP
    )
    if len(due) > BURST:
        _publish_crowd(lane, due, counts, now)
    else:
        _publish_few(lane, [one for one in due if not one.is_suspect], counts, now)


def _publish_crowd(
    lane: FairQueue, due: Sequence[fair_queue.Due], counts: _Counts, now: datetime
) -> None:
    """Have workers draw from a lane when the first of a crowd falls due; they go on themselves."""
    first = min(one.at for one in due)
    if first <= now:
        is_known = fair_queue.enqueue_pulls(lane, now=now)
    else:
        is_known = fair_queue.schedule_pull(lane, at=wakeups.moment(first, now=now), now=now)
    counts.drawn += is_known
    counts.unpublished += 0 if is_known else len(due)


def _publish_few(
    lane: FairQueue,
    due: Sequence[fair_queue.Due],
    counts: _Counts,
    now: datetime,
    size: int = wakeups.WAKEUP_SIZE,
) -> None:
    """Publish hints by id for deliveries, those that fall due in the same second together."""

    def second(one: fair_queue.Due) -> datetime:
        return wakeups.moment(one.at, now=now)

    for at, some in itertools.groupby(sorted(due, key=second), key=second):
        ids = [one.notification_id for one in some]
        done = wakeups.send_wakeups(
            ids, channel=lane.channel, priority=lane.priority, at=at, now=now, size=size
        )
        counts.hinted += done
        counts.unpublished += len(ids) - done
