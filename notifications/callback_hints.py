"""Hints that there is something to tell apps: "look now", and nothing else.

What is to be told is marked in MongoDB, and beat asks for a look once a minute without any
hint: one may be lost, repeated or late. Without a callback anywhere, it costs a comparison.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from pymongo.errors import PyMongoError

from callbacks import subscriptions
from domain.queues import CALLBACKS
from notifyproject.platform import broker

from .store import NewNotification

log = structlog.get_logger(__name__)

TELL = "notifications.tell"
PAUSE = timedelta(seconds=0.5)
"""A hint is for so much later: one is enough for all that changes meanwhile."""


class _Last:
    """Until when the last hint of this process covers what changes."""

    def __init__(self) -> None:
        self.until = float("-inf")


_last = _Last()


def awaited(new: Sequence[NewNotification]) -> list[NewNotification]:
    """Return notifications that are about to be accepted, marked if their app is to be told.

    Raises PyMongoError.
    """
    return [
        replace(one, calls_back=True) if subscriptions.is_subscribed(one.client_id) else one
        for one in new
    ]


def changed(*, now: datetime) -> None:
    """Tell workers that something was written that apps may be waiting to hear of."""
    if time.monotonic() < _last.until or not _is_anybody_waiting():
        return
    _last.until = time.monotonic() + PAUSE.total_seconds()
    broker.publish(TELL, args=[], queue=CALLBACKS, at=now + PAUSE, now=now)


def look(*, now: datetime) -> None:
    """Have a worker look at once: there is more than was told."""
    broker.publish(TELL, args=[], queue=CALLBACKS, at=None, now=now)


def forget() -> None:
    """Hint at the next change, whenever the last hint was."""
    _last.until = float("-inf")


def _is_anybody_waiting() -> bool:
    try:
        return subscriptions.has_subscribers()
    except PyMongoError as error:
        # What was written is marked: it is found by the sweep.
        log.warning("callbacks_unknown", reason=type(error).__name__)
        return False
