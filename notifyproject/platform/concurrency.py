"""Per-process concurrency limiter: a semaphore that does not wait."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class ConcurrencyLimiter:
    """Places, by what they are taken for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_use: Counter[Hashable] = Counter()

    @contextmanager
    def try_acquire(self, key: Hashable, *, limit: int) -> Iterator[bool]:
        """Take a place, if fewer than ``most`` are taken; say whether it has been."""
        with self._lock:
            is_acquired = self._in_use[key] < limit
            self._in_use[key] += is_acquired
        try:
            yield is_acquired
        finally:
            with self._lock:
                self._in_use[key] -= is_acquired
                if not self._in_use[key]:
                    del self._in_use[key]

    def in_use(self, key: Hashable) -> int:
        """Return how many places are taken just now."""
        with self._lock:
            return self._in_use[key]
