"""Threads that start together."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from tests.support.waiting import LIMIT

T = TypeVar("T")


def at_once(*calls: Callable[[], T]) -> list[T]:
    """Call the functions in threads that start together. Return their results."""
    together = Barrier(len(calls), timeout=LIMIT)

    def run(call: Callable[[], T]) -> T:
        together.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
