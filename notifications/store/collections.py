"""The collections the store reads and writes."""

import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import structlog
from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from notifyproject.db.collections import collection, is_transient

log = structlog.get_logger(__name__)

MAX_RETRY_SECONDS = 30.0
"""Seconds a worker goes on trying to write what it knows: well within its lease."""
PAUSE = 0.2
P = ParamSpec("P")
R = TypeVar("R")


def notifications() -> Collection[dict[str, Any]]:
    """Return the collection of notifications, with majority writes."""
    return collection("notifications")


def attempts() -> Collection[dict[str, Any]]:
    """Return the log of attempts, with majority writes."""
    return collection("delivery_attempts")


def visits() -> Collection[dict[str, Any]]:
    """Return up to when each inbox was last looked at."""
    return collection("inbox_visits")


def retry_transient(write: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Return what a write returns, repeating it while there is no primary or no majority.

    For writes that may be repeated, because their filter no longer matches what they have changed:
    a worker knows what became of a send, and nobody else does. Raises PyMongoError after 30 s.
    """
    deadline = time.monotonic() + MAX_RETRY_SECONDS
    while True:
        try:
            return write(*args, **options)
        except PyMongoError as error:
            if not is_transient(error) or time.monotonic() > deadline:
                raise
            log.warning("store_write_repeated", reason=type(error).__name__)
            time.sleep(PAUSE)
