"""One clock for all machines: MongoDB's.

Who claims, who sends and when a lease ends is decided by comparing times, so a machine whose clock
is wrong would send early, or what has expired. Each process asks MongoDB now and then what time it
is, and corrects its own clock where that is plainly wrong.
"""

import threading
import time
from datetime import UTC, datetime, timedelta

import pymongo
import structlog
from pymongo.errors import PyMongoError

from domain.time import wall

from .db.collections import database

log = structlog.get_logger(__name__)

CHECK_SECONDS = 30.0
"""Seconds after which a process asks again."""
TIMEOUT = 1.0
"""Seconds an answer may take; a later one says too little of the time."""
FIRST_TRIES = 5
"""How often one asks that does not know the time yet: the first question opens connections."""
TOLERANCE = timedelta(seconds=1)
"""A difference that is left alone: clocks that are kept by NTP differ by milliseconds."""


class ClockChecker:
    """When to compare, and what to make of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next_check_at = float("-inf")
        self._is_known = False

    def check_clock(self) -> None:
        """Compare this process's clock with MongoDB's if that is due, and correct it.

        The first time, everybody waits for it: a wrong clock sends early.
        """
        if time.monotonic() < self._next_check_at or not self._lock.acquire(
            blocking=not self._is_known
        ):
            return
        try:
            if time.monotonic() >= self._next_check_at:
                self._compare_now()
        finally:
            self._lock.release()

    def _compare_now(self) -> None:
        for _ in range(1 if self._is_known else FIRST_TRIES):
            if self._compare():
                self._is_known = True
                self._next_check_at = time.monotonic() + CHECK_SECONDS
                return
        self._next_check_at = time.monotonic() + TIMEOUT

    def _compare(self) -> bool:
        """Compare once; return whether MongoDB told the time soon enough to be believed."""
        started, sent = time.monotonic(), datetime.now(UTC)
        try:
            with pymongo.timeout(TIMEOUT):
                server_time: datetime = database().client.admin.command("hello")["localTime"]
        except PyMongoError:
            return False
        round_trip = time.monotonic() - started
        if round_trip > TIMEOUT:
            # The process was held up meanwhile: nobody can tell when MongoDB said so.
            return False
        self._apply(
            correction(
                sent=sent, server_time=server_time.replace(tzinfo=UTC), round_trip=round_trip
            )
        )
        return True

    def _apply(self, new_correction: timedelta) -> None:
        if abs(new_correction - wall.correction) > TOLERANCE or (
            wall.correction and not new_correction
        ):
            log.warning("clock_corrected", seconds=round(new_correction.total_seconds(), 3))
            wall.correction = new_correction


def correction(*, sent: datetime, server_time: datetime, round_trip: float) -> timedelta:
    """Return what is to be added to our clock, given what MongoDB told in answer to a question.

    ``sent`` is when it was asked by our clock, ``took`` the seconds until the answer came: MongoDB
    read its clock at some moment between the two. Nothing, where both may well be the same.
    """
    midpoint = sent + timedelta(seconds=round_trip / 2)
    difference = server_time - midpoint
    return (
        difference
        if abs(difference) > TOLERANCE + timedelta(seconds=round_trip / 2)
        else timedelta()
    )


_clock = ClockChecker()


def check_clock() -> None:
    """Compare this process's clock with MongoDB's, at most every half minute."""
    _clock.check_clock()
