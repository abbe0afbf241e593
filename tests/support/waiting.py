"""Waiting for other threads and processes, on a machine of any speed.

A test waits until a condition holds, or fails after LIMIT, because the time on a busy machine means
nothing. A time limit of the product is tested with a peer that is silent for far longer. No other
test module sleeps or reads a running clock: see tests/architecture/test_waiting.py.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
LIMIT = 60.0
"""Seconds after which a wait fails, on any machine."""
SHORT = 1.0
"""Seconds of a time limit that a test waits for."""
SILENT_FOR = 2 * LIMIT
"""Seconds a silent peer keeps a connection open."""
_PAUSES = (0.005, 0.05)
"""The shortest and the longest pause between two checks, in seconds."""


def until(
    condition: Callable[[], T], *, otherwise: str | Callable[[], str] = "it did not happen in time"
) -> T:
    """Wait until a condition holds. Return its value.

    Only the pauses count, because a virtual machine may be suspended for longer than LIMIT.
    """
    waited = 0.0
    pause, longest = _PAUSES
    while not (value := condition()):
        assert waited < LIMIT, otherwise if isinstance(otherwise, str) else otherwise()
        time.sleep(pause)
        waited += pause
        pause = min(2 * pause, longest)
    return value


@contextmanager
def ending(*, after: float = 0.0) -> Iterator[None]:
    """Expect a block to end, after at least this many seconds."""
    began = time.monotonic()
    try:
        yield
    finally:
        assert after <= time.monotonic() - began < LIMIT


@contextmanager
def computing(*, at_most: float) -> Iterator[None]:
    """Expect a block to cost at most this much CPU time of its thread."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < at_most


def ticks() -> float:
    """Return a monotonic clock's seconds."""
    return time.monotonic()


def lag(seconds: float) -> None:
    """Sleep, to simulate a slow peer. To wait for a condition, use until()."""
    time.sleep(seconds)
