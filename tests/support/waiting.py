"""Waiting for what other threads and processes do, on a machine of any speed.

A test waits for a condition and ends as soon as it holds. The time this takes on a busy machine
says nothing about the product, so no test has a shorter limit than LIMIT. A time limit of the
product is tested with a peer that is silent for far longer. No other module of the tests sleeps or
reads a running clock: see tests/architecture/test_waiting.py.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
LIMIT = 60.0
"""Seconds. What takes longer has failed, on any machine."""
SHORT = 1.0
"""Seconds of a time limit that a test lets pass: enough for what comes before, on any machine."""
SILENT_FOR = 2 * LIMIT
"""Seconds a silent peer keeps a connection open: a client without a time limit fails the test."""
_PAUSES = (0.005, 0.05)
"""Seconds between two looks, at first and at last: a condition may be dear to look at."""


def until(condition: Callable[[], T], *, otherwise: str = "it did not happen in time") -> T:
    """Wait until a condition holds and return its value."""
    end = time.monotonic() + LIMIT
    pause, longest = _PAUSES
    while not (value := condition()):
        assert time.monotonic() < end, otherwise
        time.sleep(pause)
        pause = min(2 * pause, longest)
    return value


@contextmanager
def ending(*, after: float = 0.0) -> Iterator[None]:
    """Expect a block to end at all, and no sooner than so many seconds."""
    began = time.monotonic()
    try:
        yield
    finally:
        assert after <= time.monotonic() - began < LIMIT


@contextmanager
def computing(*, at_most: float) -> Iterator[None]:
    """Expect a block to cost at most so many seconds of processor time, of this thread alone."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < at_most


def ticks() -> float:
    """Return a clock's seconds, for a test kit that takes another clock in their place."""
    return time.monotonic()


def lag(seconds: float) -> None:
    """Be slow, as a peer may be. A test that sleeps until something has happened uses until()."""
    time.sleep(seconds)
