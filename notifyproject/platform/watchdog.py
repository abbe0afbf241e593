"""When a worker ends itself, so that whoever runs it starts another.

It has grown too large, it has done as many tasks as it should, or it hears its broker no longer:
after the broker was away Celery may say that it is connected and take no message ever again, with
nothing in its log (celery#8030, celery#8091), and to start anew is the only remedy known. What it
had in its hands is finished or given back, or rescued when its lease is over.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from celery.worker import state
from django.conf import settings

from . import clock_check, process, valkey

log = structlog.get_logger(__name__)
MAX_SILENCE = 45.0
"""Seconds in which messages wait, threads are free and none comes: then it does not hear."""
SAMPLE_SECONDS = 5.0
"""Seconds between two looks."""
SHUTDOWN_SECONDS = 60.0
"""Seconds it has to end in good order."""
JITTER = 0.1
"""Workers that were started at once do not all end at once: limits differ by up to so much."""
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSample:
    """A worker as it is now."""

    waiting: int
    """Messages in its queues."""
    has_free_thread: bool
    """It could take one."""
    megabytes: float
    """What it has in memory."""
    is_clock_wrong: bool = False


@dataclass(kw_only=True)
class WorkerLimits:
    """A worker's life so far, and when it is over."""

    max_tasks: float = float("inf")
    max_megabytes: float = float("inf")
    clock: Callable[[], float] = time.monotonic
    _tasks: int = field(default=0, init=False)
    _deaf_since: float | None = field(default=None, init=False)
    _sampled_at: float = field(default=float("inf"), init=False)

    def record_message(self) -> None:
        """Note that a message has come."""
        self._tasks += 1
        self._deaf_since = None

    def recycle_reason(self, sample: WorkerSample) -> str | None:
        """Return why it is to end, if it is."""
        now = self.clock()
        was_suspended, self._sampled_at = now - self._sampled_at > 3 * SAMPLE_SECONDS, now
        if not sample.waiting or not sample.has_free_thread:
            self._deaf_since = None
        elif self._deaf_since is None or was_suspended:
            # A process that was frozen had no chance to hear anything.
            self._deaf_since = now
        if sample.is_clock_wrong:
            return "clock_wrong"
        if self._deaf_since is not None and now - self._deaf_since >= MAX_SILENCE:
            return "receives_nothing"
        if sample.megabytes > self.max_megabytes:
            return "too_large"
        return "task_limit_reached" if self._tasks >= self.max_tasks else None


def start(*, queues: Collection[str], threads: int) -> Callable[..., None]:
    """Look after this process for as long as it runs; return what is to be called with a message.

    That is a receiver of Celery's ``task_received``. ``threads``: how many tasks it takes at once.
    A limit of 0 is none.
    """
    jitter = 1 + JITTER * random.SystemRandom().random()
    limits = WorkerLimits(
        max_tasks=settings.WORKER_MAX_TASKS * jitter or float("inf"),
        max_megabytes=settings.WORKER_MAX_MEMORY_MB * jitter or float("inf"),
    )

    def on_message(**_: Any) -> None:
        limits.record_message()

    threading.Thread(
        target=_watch, args=(limits, queues, threads), name="watchdog", daemon=True
    ).start()
    return on_message


def _watch(limits: WorkerLimits, queues: Collection[str], threads: int) -> None:
    while True:
        process.pause(SAMPLE_SECONDS)
        sample = WorkerSample(
            waiting=count_waiting(queues),
            has_free_thread=len(state.active_requests) < threads,
            megabytes=memory_megabytes(),
            is_clock_wrong=clock_check.is_wrong(),
        )
        if reason := limits.recycle_reason(sample):
            log.error("worker_recycled", reason=reason, waiting=sample.waiting)
            os.kill(os.getpid(), signal.SIGTERM)
            process.pause(SHUTDOWN_SECONDS)
            # The first process of a container cannot kill itself by a signal.
            os._exit(1)


def count_waiting(queues: Collection[str]) -> int:
    """Return how many messages wait in these queues; none if the broker does not say."""
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.llen(queue)
            return sum(pipe.execute())
    except valkey.Unavailable:
        return 0


def memory_megabytes() -> float:
    """Return what this process has in memory; 0 where the system does not say, as on macOS."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
