"""Calls that run together in one thread, and share round trips."""

from collections.abc import Callable
from functools import partial
from typing import Any

from notifyproject.lockstep import LockStep


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run calls together; return the result or the exception of each."""
    results: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        try:
            results[number] = calls[number]()
        except Exception as error:
            results[number] = error

    step = LockStep([partial(run, number) for number in range(len(calls))])
    while step.run():
        pass
    return results
