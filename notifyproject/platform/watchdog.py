"""Worker watchdog: recycles a worker, whose supervisor then starts another.

After an outage of the broker, Celery may report a connection and never take a message again,
without a log line (celery#8030, celery#8091); a restart is the only known remedy.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from celery.worker import state
from django.conf import settings
from pymongo.errors import PyMongoError

from notifyproject import __version__
from notifyproject.db.collections import collection

from . import broker, clock_check, heartbeat, process

log = structlog.get_logger(__name__)
MAX_SILENCE = 45.0
"""Seconds without a received message, while messages wait and a thread is free."""
SAMPLE_SECONDS = 5.0
SHUTDOWN_SECONDS = 60.0
"""Seconds for a graceful shutdown, after which the process exits at once."""
JITTER = 0.1
"""Largest random increase of the limits, so that workers do not all end at once."""
MEGABYTE = 1024 * 1024
WORKER_PREFIX = "worker:"
"""Before the name of a worker in the heartbeats."""
REPORT_INTERVAL = timedelta(seconds=15)
"""Time between two reports that the worker is alive."""
FORGOTTEN_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSample:
    """The current state of a worker."""

    waiting: int
    has_free_thread: bool
    megabytes: float
    is_clock_wrong: bool = False


@dataclass(kw_only=True)
class WorkerLimits:
    """Limits of a worker, and the history that is checked against them."""

    max_megabytes: float = float("inf")
    clock: Callable[[], float] = time.monotonic
    _deaf_since: float | None = field(default=None, init=False)
    _sampled_at: float = field(default=float("inf"), init=False)

    def record_message(self) -> None:
        """Record a received message."""
        self._deaf_since = None

    def recycle_reason(self, sample: WorkerSample) -> str | None:
        """Return the reason to recycle the worker, or None."""
        now = self.clock()
        was_suspended, self._sampled_at = now - self._sampled_at > 3 * SAMPLE_SECONDS, now
        if not sample.waiting or not sample.has_free_thread:
            self._deaf_since = None
        elif self._deaf_since is None or was_suspended:
            # A suspended process could not receive anything.
            self._deaf_since = now
        if sample.is_clock_wrong:
            return "clock_wrong"
        if self._deaf_since is not None and now - self._deaf_since >= MAX_SILENCE:
            return "receives_nothing"
        return "too_large" if sample.megabytes > self.max_megabytes else None


def start(*, queues: Collection[str], threads: int) -> Callable[..., None]:
    """Start the watchdog thread; return a receiver for Celery's signal ``task_received``."""
    jitter = 1 + JITTER * random.SystemRandom().random()
    limits = WorkerLimits(
        max_megabytes=settings.WORKER_MAX_MEMORY_MB * jitter or float("inf"),
    )

    def on_message(**_: Any) -> None:
        limits.record_message()

    threading.Thread(
        target=_watch, args=(limits, queues, threads), name="watchdog", daemon=True
    ).start()
    # In a thread of its own, because a MongoDB that hangs must not stop the watchdog.
    threading.Thread(target=_keep_reporting, args=(queues,), name="reporter", daemon=True).start()
    return on_message


def _watch(limits: WorkerLimits, queues: Collection[str], threads: int) -> None:
    while True:
        heartbeat.record("worker")
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
            # PID 1 of a container cannot kill itself by a signal.
            os._exit(1)


def _keep_reporting(queues: Collection[str]) -> None:
    started_at = datetime.now(UTC)
    while not process.is_shutting_down():
        _report(queues, started_at)
        process.pause(REPORT_INTERVAL.total_seconds())


def _report(queues: Collection[str], started_at: datetime) -> None:
    """Record that this worker is alive, for the console. Idle workers are known by this alone."""
    now = datetime.now(UTC)
    fields = {
        "at": now,
        "started_at": started_at,
        "queues": sorted(queues),
        "version": __version__,
    }
    try:
        collection("heartbeats").update_one(
            {"_id": f"{WORKER_PREFIX}{process.worker_name()}"}, {"$set": fields}, upsert=True
        )
        collection("heartbeats").delete_many(
            {"_id": {"$regex": f"^{WORKER_PREFIX}"}, "at": {"$lt": now - FORGOTTEN_AFTER}}
        )
    except PyMongoError as error:
        log.warning("worker_not_reported", reason=type(error).__name__)


def count_waiting(queues: Collection[str]) -> int:
    """Return the number of messages in these queues, or 0 if the broker is unavailable."""
    found = broker.queue_depths(queues)
    return sum(found.values()) if found else 0


def memory_megabytes() -> float:
    """Return the resident memory of this process, or 0 without /proc, as on macOS."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
