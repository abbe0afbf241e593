"""Turns: one round of a batch at a time is being sent to a provider by this process.

So a process that is killed leaves no more than one round in doubt, and a provider that hangs holds
up nothing but what goes to itself. What goes alone, a code say, waits for nobody.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from .store import Claimed

PATIENCE = timedelta(seconds=40)
"""How much of a lease must be left to begin a round: claiming again is better than being late."""


class Turns:
    """The turns of this process, by provider."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_provider: dict[str, threading.Lock] = {}

    @contextmanager
    def take(self, provider: str, claims: Sequence[Claimed], *, now: datetime) -> Iterator[bool]:
        """Wait for a turn at a provider, and say whether it came while the claims were ours."""
        if len(claims) == 1:
            yield True
            return
        with self._lock:
            turn = self._by_provider.setdefault(provider, threading.Lock())
        left = min(claimed.lease_until for claimed in claims) - PATIENCE - now
        is_ours = turn.acquire(timeout=max(left.total_seconds(), 0))
        try:
            yield is_ours
        finally:
            if is_ours:
                turn.release()


turns = Turns()
