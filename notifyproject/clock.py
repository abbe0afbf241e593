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

EVERY = 30.0
"""Seconds after which a process asks again."""
ANSWER = 1.0
"""Seconds an answer may take; a later one says too little of the time."""
TRIES = 5
"""How often one asks that does not know the time yet: the first question opens connections."""
TOLERANCE = timedelta(seconds=1)
"""A difference that is left alone: clocks that are kept by NTP differ by milliseconds."""


class Clock:
    """When to compare, and what to make of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ask_at = float("-inf")
        self._is_known = False

    def keep_right(self) -> None:
        """Compare this process's clock with MongoDB's if that is due, and correct it.

        The first time, everybody waits for it: a wrong clock sends early.
        """
        if time.monotonic() < self._ask_at or not self._lock.acquire(blocking=not self._is_known):
            return
        try:
            if time.monotonic() >= self._ask_at:
                self._compare_now()
        finally:
            self._lock.release()

    def _compare_now(self) -> None:
        for _ in range(1 if self._is_known else TRIES):
            if self._compare():
                self._is_known = True
                self._ask_at = time.monotonic() + EVERY
                return
        self._ask_at = time.monotonic() + ANSWER

    def _compare(self) -> bool:
        """Compare once; return whether MongoDB told the time soon enough to be believed."""
        began, sent = time.monotonic(), datetime.now(UTC)
        try:
            with pymongo.timeout(ANSWER):
                told: datetime = database().client.admin.command("hello")["localTime"]
        except PyMongoError:
            return False
        took = time.monotonic() - began
        if took > ANSWER:
            # The process was held up meanwhile: nobody can tell when MongoDB said so.
            return False
        self._apply(correction(sent=sent, told=told.replace(tzinfo=UTC), took=took))
        return True

    def _apply(self, found: timedelta) -> None:
        if abs(found - wall.correction) > TOLERANCE or (wall.correction and not found):
            log.warning("clock_corrected", seconds=round(found.total_seconds(), 3))
            wall.correction = found


def correction(*, sent: datetime, told: datetime, took: float) -> timedelta:
    """Return what is to be added to our clock, given what MongoDB told in answer to a question.

    ``sent`` is when it was asked by our clock, ``took`` the seconds until the answer came: MongoDB
    read its clock at some moment between the two. Nothing, where both may well be the same.
    """
    middle = sent + timedelta(seconds=took / 2)
    off = told - middle
    return off if abs(off) > TOLERANCE + timedelta(seconds=took / 2) else timedelta()


_clock = Clock()


def keep_right() -> None:
    """Compare this process's clock with MongoDB's, at most every half minute."""
    _clock.keep_right()
