"""Handles wake-ups and pulls. Work beyond the limits of the process goes back to the queue."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog
from bson import ObjectId
from django.conf import settings

from domain.channels import Channel
from domain.states import Priority
from domain.time import Clock, utc_now
from notifications.broadcasts import runner
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import FairQueue, PullToken
from notifications.queueing.wakeups import Wakeup
from notifyproject.platform import crash_points, process
from notifyproject.platform.crash_points import Boundary

from . import pipeline
from .pipeline import channel_threads, in_flight, is_waiting_for_rate
from .runtime import SendingRuntime
from .settlement import BatchReport

log = structlog.get_logger(__name__)
REQUEUE_DELAY = timedelta(seconds=1)
"""Delay before a message returns if its channel has no free thread or its client no capacity."""
CRITICAL_REQUEUE_DELAY = timedelta(milliseconds=200)
"""The same for critical deliveries, which another process may be able to send at once."""
BATCHES_AHEAD = 3
"""Concurrent batches of one fair queue in a process that are prepared and settled while the
requests of others are in flight. With eight, an email cost a sixth more time."""


def handle_wakeup(
    runtime: SendingRuntime,
    ids: Sequence[ObjectId],
    *,
    channel: Channel,
    priority: Priority,
    clock: Clock = utc_now,
) -> None:
    """Send the due deliveries among ``ids``, and schedule wake-ups for those to send later."""
    with runtime.threads.try_acquire(channel, limit=channel_threads()) as has_thread:
        if not has_thread or process.is_shutting_down():
            now = clock()
            wakeups.send_wakeups(
                ids, channel=channel, priority=priority, at=now + _requeue_delay(priority), now=now
            )
            return
        report = pipeline.dispatch(runtime, ids, channel=channel, clock=clock)
    _wake_later([*report.wakeups, *report.moved_up], now=clock())


def _wake_later(found: Sequence[Wakeup], *, now: datetime) -> None:
    """Wake a worker for each delivery, but for those that pulls take: one for each second."""
    pulls = {
        (FairQueue(one.pulled_for, one.channel, one.priority), wakeups.wakeup_time(one.at, now=now))
        for one in found
        if one.pulled_for is not None
    }
    for queue, at in pulls:
        fair_queue.schedule_pull(queue, at=at, now=now)
    wakeups.send_later([one for one in found if one.pulled_for is None], now=now)


def pull(
    runtime: SendingRuntime,
    queue: FairQueue,
    token: PullToken | None,
    *,
    clock: Clock = utc_now,
) -> int:
    """Send one batch of a fair queue, and pull again while more is due. Return the claim count.

    At the process's maximum of batches for the queue, the pull is retried after a delay, because
    another process may have capacity.
    """
    if not queue.channel.is_known:
        log.warning("unknown_channel", channel=queue.channel.value)
        return 0
    fair_queue.release_token(queue, token)
    crash_points.reach(Boundary.PULL_STARTED)
    with (
        runtime.batches.try_acquire(queue, limit=_max_batches(runtime, queue)) as has_capacity,
        runtime.threads.try_acquire(queue.channel, limit=channel_threads()) as has_thread,
    ):
        now = clock()
        if not has_capacity:
            fair_queue.retry_pull(queue, at=now + _requeue_delay(queue.priority), now=now)
            return 0
        if not has_thread or process.is_shutting_down():
            fair_queue.enqueue_pulls(queue, at=now + _requeue_delay(queue.priority), now=now)
            return 0
        next_pull = _NextPull(runtime, queue, token, clock)
        try:
            found, has_more = _next_batch(queue, token, now=now)
            report = pipeline.dispatch(
                runtime,
                found,
                channel=queue.channel,
                clock=clock,
                on_in_flight=next_pull.enqueue_early if has_more else lambda _: None,
            )
        except Exception:
            # Celery logs the error but does not continue the pull.
            fair_queue.retry_pull(queue, at=now + REQUEUE_DELAY, now=now)
            raise
    pipeline.remember_lanes(runtime, queue, report)
    now = clock()
    # The next pull finds those of its own queue.
    others = [w for w in report.wakeups if w.channel is not queue.channel]
    wakeups.send_later([*others, *report.moved_up], now=now)
    if not has_more:
        _schedule_next_pull(queue, now)
    elif not next_pull.is_enqueued:
        next_pull.enqueue(report)
    return report.claimed


@dataclass(slots=True)
class _NextPull:
    """Enqueues the pull after this one once: with the batch in flight, or when it has ended."""

    runtime: SendingRuntime
    queue: FairQueue
    token: PullToken | None
    clock: Clock
    is_enqueued: bool = False

    def enqueue_early(self, report: BatchReport) -> None:
        """Let the next batch be claimed and rendered while this one's answers are awaited."""
        pipeline.remember_lanes(self.runtime, self.queue, report)
        if not self.is_enqueued and self._has_capacity():
            self.enqueue(report)

    def enqueue(self, report: BatchReport) -> None:
        """Enqueue the next pull, and one more if the process has capacity for another batch."""
        self.is_enqueued = True
        fair_queue.continue_pull(
            self.queue,
            self.token,
            has_capacity=self._has_capacity(besides=1),
            at=_next_pull_at(self.runtime, report, self.queue),
            now=self.clock(),
        )

    def _has_capacity(self, *, besides: int = 0) -> bool:
        """Return whether the process takes another batch of the queue, and ``besides`` more."""
        used = self.runtime.batches.in_use(self.queue)
        return used + besides < _max_batches(self.runtime, self.queue)


def run_inline(
    runtime: SendingRuntime, *, seconds: float = math.inf, clock: Clock = utc_now
) -> int:
    """Send due deliveries without a broker for up to ``seconds``. Return how many were claimed."""
    total, ends_at = 0, time.monotonic() + seconds
    while not process.is_shutting_down() and time.monotonic() < ends_at:
        pages = runner.run_inline(clock=clock)
        claimed = _dispatch_most_urgent(runtime, clock)
        if not pages and not claimed:
            break
        total += claimed
    return total


def _dispatch_most_urgent(runtime: SendingRuntime, clock: Clock) -> int:
    for priority in Priority:
        claimed = 0
        for client_id in fair_queue.waiting_clients(priority=priority):
            for channel in Channel:
                now = clock()
                queue = FairQueue(client_id, channel, priority)
                found = fair_queue.due(queue, until=now, now=now, limit=wakeups.WAKEUP_SIZE)
                ids = [due.notification_id for due in found]
                claimed += pipeline.dispatch(runtime, ids, channel=channel, clock=clock).claimed
        if claimed:
            return claimed
    return 0


def _next_batch(
    queue: FairQueue, token: PullToken | None, *, now: datetime
) -> tuple[list[ObjectId], bool]:
    """Return this pull's batch, and whether more is due. Concurrent pulls take other parts."""
    size = batch_size()
    offset = size * (token.slot % fair_queue.MAX_PULLS if token else 0)
    # The sweeper wakes poison candidates by ID.
    due = partial(
        fair_queue.due, queue, until=now, now=now, limit=size + 1, include_poison_candidates=False
    )
    found = due(skip=offset)
    if offset and not found:
        # Less is due than expected: take the part of the first pull.
        found, offset = due(), 0
    return [due.notification_id for due in found[:size]], len(found) > size or bool(offset)


def batch_size() -> int:
    """Return the size of a pulled batch: a multiple of the threads, at most a wake-up's size."""
    threads = settings.WORKER_THREADS
    return wakeups.WAKEUP_SIZE // threads * threads or wakeups.WAKEUP_SIZE


def _next_pull_at(
    runtime: SendingRuntime, report: BatchReport, queue: FairQueue
) -> datetime | None:
    """Return when to pull again: None for at once, later if no account of the queue sends.

    What half of the batch waits for may concern only them: a host, a room, a country, a brand's
    account, or the night of a recipient. The rest of the queue doesn't wait for that.
    """
    waits = report.account_waits
    if not waits or len(waits) * 2 < report.claimed:
        return None
    blocked = {account for _, accounts in waits for account in accounts}
    return min(at for at, _ in waits) if pipeline.are_all(runtime, blocked, queue) else None


def _schedule_next_pull(queue: FairQueue, now: datetime) -> None:
    horizon = now + wakeups.HORIZON
    for due in fair_queue.due(
        queue, until=horizon, now=now, limit=1, include_poison_candidates=False
    ):
        if due.at <= now:
            # The delivery was probably just accepted, with a pull of its own.
            fair_queue.enqueue_pulls(queue, count=1, now=now)
        else:
            fair_queue.schedule_pull(queue, at=wakeups.wakeup_time(due.at, now=now), now=now)


def _requeue_delay(priority: Priority) -> timedelta:
    return CRITICAL_REQUEUE_DELAY if priority is Priority.CRITICAL else REQUEUE_DELAY


def _max_batches(runtime: SendingRuntime, queue: FairQueue) -> int:
    if is_waiting_for_rate(runtime, queue):
        # Several batches would share the tokens, and small groups cost several times as much.
        return 1
    # Fewer than a channel's threads, so that one client never takes them all.
    limit = BATCHES_AHEAD + in_flight(runtime, queue) // batch_size()
    return max(min(limit, channel_threads() - 1), 1)
