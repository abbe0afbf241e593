"""Per-process concurrency limiter: a semaphore that does not wait."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class ConcurrencyLimiter:
    """Places, by what they are taken for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[Hashable] = Counter()

    @contextmanager
    def enter(self, key: Hashable, *, most: int) -> Iterator[bool]:
        """Take a place, if fewer than ``most`` are taken; say whether it has been."""
        with self._lock:
            is_in = self._taken[key] < most
            self._taken[key] += is_in
        try:
            yield is_in
        finally:
            with self._lock:
                self._taken[key] -= is_in
                if not self._taken[key]:
                    del self._taken[key]

    def taken(self, key: Hashable) -> int:
        """Return how many places are taken just now."""
        with self._lock:
            return self._taken[key]
