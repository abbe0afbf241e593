"""Compares this process's clock with MongoDB's. A process with a wrong clock does no work.

It could send too early or too late, or take over a valid lease. For the reason why times aren't
corrected, see docs/decisions/0020-clock-skew.md.
"""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pymongo
import structlog
from celery import Task
from celery.exceptions import Ignore
from pymongo.errors import PyMongoError

from ..db.collections import database
from . import process

log = structlog.get_logger(__name__)
CHECK_SECONDS = 60.0
RECHECK_SECONDS = 3.0
"""Seconds between two comparisons while the clock is wrong or unknown."""
TIMEOUT = 2.0
"""Seconds for MongoDB's response. A slower one is ignored, because it is too imprecise."""
MAX_OFFSET = timedelta(seconds=2)


class ClockCheck:
    """Compares the clocks when a comparison is due, and keeps the result."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next_check_at = float("-inf")
        self._is_right: bool | None = None

    def is_right(self) -> bool:
        """Return whether the clock is known to be right. May compare the clocks."""
        self._check_if_due()
        return self._is_right is True

    def is_wrong(self) -> bool:
        """Return whether the clock is known to be wrong. May compare the clocks."""
        self._check_if_due()
        return self._is_right is False

    def _check_if_due(self) -> None:
        # While one thread compares, others use the last result, or wait for the first result.
        if time.monotonic() < self._next_check_at or not self._lock.acquire(
            blocking=self._is_right is None
        ):
            return
        try:
            if time.monotonic() >= self._next_check_at:
                is_known = self._compare()
                interval = CHECK_SECONDS if is_known and self._is_right else RECHECK_SECONDS
                self._next_check_at = time.monotonic() + interval
        finally:
            self._lock.release()

    def _compare(self) -> bool:
        started, sent = time.monotonic(), datetime.now(UTC)
        try:
            with pymongo.timeout(TIMEOUT):
                server_time: datetime = database().client.admin.command("hello")["localTime"]
        except PyMongoError as error:
            if self._is_right is None:
                log.warning("clock_not_compared", reason=type(error).__name__)
            return False
        round_trip = time.monotonic() - started
        if round_trip > TIMEOUT:
            return False
        offset = measure_offset(
            sent=sent, server_time=server_time.replace(tzinfo=UTC), round_trip=round_trip
        )
        is_right = abs(offset) <= MAX_OFFSET
        if not is_right and self._is_right is not False:
            log.error("clock_wrong", seconds_off=round(offset.total_seconds(), 3))
        elif is_right and self._is_right is False:
            log.warning("clock_corrected")
        self._is_right = is_right
        return True


def measure_offset(*, sent: datetime, server_time: datetime, round_trip: float) -> timedelta:
    """Return the minimum that this clock is ahead of MongoDB's, or 0 if they may be equal."""
    half = timedelta(seconds=round_trip / 2)
    difference = sent + half - server_time
    if abs(difference) <= half:
        return timedelta()
    return difference - half if difference > timedelta() else difference + half


_clock_check = ClockCheck()
is_right = _clock_check.is_right
is_wrong = _clock_check.is_wrong


def wait_until_right() -> None:
    """Block until this process's clock is known to be right."""
    while not is_right():
        process.pause(RECHECK_SECONDS)


class ClockCheckedTask(Task):
    """A Celery task that is dropped while the clock is wrong. The sweeper enqueues it again."""

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        """Raise Ignore if the clock is wrong."""
        if is_wrong():
            raise Ignore
