"""What goes alone: it was claimed before and never sent, so its worker may have died of it.

Of these a process has one at a time between its claim and the begin of its sending: if that kills
the process, no other is blamed for it. The next one is claimed while this one is being sent.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from domain.states import Channel
from notifyproject.platform.concurrency import ConcurrencyLimiter

from .room import channel_threads

ALONE = 4
"""Deliveries that go alone, one after the other, in one message: a minute at 15 s for each, and a
message is not thought lost before two."""

_threads = ConcurrencyLimiter()
_claim = threading.Lock()
_held = threading.local()


@contextmanager
def some(channel: Channel) -> Iterator[int]:
    """Say how many may go in this thread: none while as many threads as may are at it.

    That is half of a channel's threads: what is not suspected goes on beside them.
    """
    with _threads.enter(channel, most=max(channel_threads() // 2, 1)) as has_room:
        yield ALONE if has_room else 0


@contextmanager
def one() -> Iterator[None]:
    """Wait until no other thread has one that is claimed and not being sent."""
    _claim.acquire()
    _held.is_ours = True
    try:
        yield
    finally:
        begun()


def begun() -> None:
    """Let the next one be claimed; of a thread that keeps none from it, this does nothing."""
    if getattr(_held, "is_ours", False):
        _held.is_ours = False
        _claim.release()
