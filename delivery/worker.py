"""Handles a wake-up or a pull within the concurrency limits of this process.

Never more than the process can do; what it can't take now goes back to the queue.
"""

import math
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from bson import ObjectId
from django.conf import settings

from domain.states import Channel, Priority
from domain.time import Clock, utc_now
from notifications.broadcasts import runner
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import FairQueue, PullToken
from notifications.queueing.wakeups import ISOLATED_PER_WAKEUP
from notifyproject.platform import crash_points, process
from notifyproject.platform.concurrency import ConcurrencyLimiter
from notifyproject.platform.crash_points import Boundary

from . import dispatcher
from .dispatcher import BatchReport, channel_threads

REQUEUE_DELAY = timedelta(seconds=1)
"""How long a message waits for a thread of its channel, or for its queue."""
MAX_BATCHES_PER_CLIENT = 3
"""Batches of a queue that a process is at: one is being sent, one made ready, one settled. More of
them wait for their turn with what they have claimed, in the way of those who look for the rest: at
24 a mail cost a sixth more."""


def handle_wakeup(
    ids: Sequence[ObjectId], *, channel: Channel, priority: Priority, clock: Clock = utc_now
) -> None:
    """Send what of these is due, and see to it that what must wait is looked at again."""
    with _thread_limiter.try_acquire(channel, limit=channel_threads()) as has_thread:
        if not has_thread or process.is_shutting_down():
            now = clock()
            wakeups.send_wakeups(
                ids, channel=channel, priority=priority, at=now + REQUEUE_DELAY, now=now
            )
            return
        report = dispatcher.dispatch(ids, channel=channel, clock=clock)
    now = clock()
    at = now + REQUEUE_DELAY
    wakeups.send_wakeups(
        report.remaining_candidates,
        channel=channel,
        priority=priority,
        at=at,
        now=now,
        size=ISOLATED_PER_WAKEUP,
    )
    wakeups.send_later(report.wakeups, now=now)


def pull(queue: FairQueue, token: PullToken | None, *, clock: Clock = utc_now) -> int:
    """Send a batch of what is due in a client's queue, and draw again while there is more.

    Returns how many deliveries it claimed. Where this process is at all the batches of the queue
    that it may be at, each of those looks at what is left when it is through; one draw comes back a
    second later all the same, for if these hang another process has room.
    """
    fair_queue.release_token(queue, token)
    crash_points.reach(Boundary.PULL_STARTED)
    with (
        _batch_limiter.try_acquire(queue, limit=_max_batches_per_client()) as has_capacity,
        _thread_limiter.try_acquire(queue.channel, limit=channel_threads()) as has_thread,
    ):
        now = clock()
        if not has_capacity:
            fair_queue.retry_pull(queue, at=now + REQUEUE_DELAY, now=now)
            return 0
        if not has_thread or process.is_shutting_down():
            fair_queue.enqueue_pulls(queue, at=now + REQUEUE_DELAY, now=now)
            return 0
        try:
            found, has_more = _next_batch(queue, token, now=now)
            report = dispatcher.dispatch(found, channel=queue.channel, clock=clock)
        except Exception:
            # Of the database, say. Whoever logs it does not know that this was to go on.
            fair_queue.retry_pull(queue, at=now + REQUEUE_DELAY, now=now)
            raise
    now = clock()
    wakeups.send_later([w for w in report.wakeups if w.channel is not queue.channel], now=now)
    if has_more:
        has_capacity = _batch_limiter.in_use(queue) < _max_batches_per_client() - 1
        fair_queue.continue_pull(
            queue, token, has_capacity=has_capacity, at=_next_pull_at(report, queue), now=now
        )
    else:
        _schedule_next_pull(queue, now)
    return report.claimed


def run_inline(*, seconds: float = math.inf, clock: Clock = utc_now) -> int:
    """Send what is due in this process, without a broker; return how many that was.

    Until nothing is due, or so many seconds are over. The urgent before the less urgent, and of
    each client a batch in turn.
    """
    total, ends_at = 0, time.monotonic() + seconds
    while not process.is_shutting_down() and time.monotonic() < ends_at:
        pages = runner.run_inline(clock=clock)
        claimed = _dispatch_most_urgent(clock)
        if not pages and not claimed:
            break
        total += claimed
    return total


def _dispatch_most_urgent(clock: Clock) -> int:
    """Send a batch of each client of the most urgent priority that has something due."""
    for priority in Priority:
        claimed = 0
        for client_id in fair_queue.waiting_clients(priority=priority):
            for channel in Channel:
                now = clock()
                queue = FairQueue(client_id, channel, priority)
                found = _due(
                    queue, now=now, limit=wakeups.WAKEUP_SIZE, include_poison_candidates=True
                )
                claimed += dispatcher.dispatch(found, channel=channel, clock=clock).claimed
        if claimed:
            return claimed
    return 0


def _next_batch(
    queue: FairQueue, token: PullToken | None, *, now: datetime
) -> tuple[list[ObjectId], bool]:
    """Return the batch of what is due that is a draw's, and whether there is more for another.

    Draws that look at once take one batch behind the other; of few the first that looks takes all.
    """
    size = batch_size()
    offset = size * (token.slot % fair_queue.MAX_PULLS if token else 0)
    found = _due(queue, now=now, limit=size + 1, skip=offset)
    if offset and not found:
        found = _due(queue, now=now, limit=size + 1)
        offset = 0
    return found[:size], len(found) > size or bool(offset)


def batch_size() -> int:
    """Return how many a draw takes: as many full rounds of this process's threads as a hint has."""
    threads = settings.WORKER_THREADS
    return wakeups.WAKEUP_SIZE // threads * threads or wakeups.WAKEUP_SIZE


def _due(
    queue: FairQueue,
    *,
    now: datetime,
    limit: int,
    skip: int = 0,
    include_poison_candidates: bool = False,
) -> list[ObjectId]:
    """Return what is due; a draw leaves what goes alone to the hints that a sweep publishes."""
    found = fair_queue.due(
        client_id=queue.client_id,
        channel=queue.channel,
        priority=queue.priority,
        until=now,
        now=now,
        limit=limit,
        skip=skip,
        include_poison_candidates=include_poison_candidates,
    )
    return [one.notification_id for one in found]


def _next_pull_at(report: BatchReport, queue: FairQueue) -> datetime | None:
    """Return when to draw again: at once, or when the provider takes something again.

    Behind a rate or an open circuit, drawing on would only park one after the other.
    """
    deferred_until = [w.at for w in report.wakeups if w.channel is queue.channel]
    if len(deferred_until) * 2 < report.claimed or not deferred_until:
        return None
    return min(deferred_until)


def _schedule_next_pull(queue: FairQueue, now: datetime) -> None:
    """See to it that what falls due in a queue within a minute is drawn then."""
    found = fair_queue.due(
        client_id=queue.client_id,
        channel=queue.channel,
        priority=queue.priority,
        until=now + wakeups.HORIZON,
        now=now,
        limit=1,
        include_poison_candidates=False,
    )
    for one in found:
        if one.at <= now:
            # Just accepted, it seems: most often its own draw is on its way.
            fair_queue.enqueue_pulls(queue, count=1, now=now)
        else:
            fair_queue.schedule_pull(queue, at=wakeups.wakeup_time(one.at, now=now), now=now)


_thread_limiter = ConcurrencyLimiter()
_batch_limiter = ConcurrencyLimiter()


def _max_batches_per_client() -> int:
    """Return how many batches of a queue this process may be at: fewer than a channel's threads."""
    return max(min(MAX_BATCHES_PER_CLIENT, channel_threads() - 1), 1)
