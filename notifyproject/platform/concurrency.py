"""Per-process concurrency limiter: a semaphore that does not wait."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class ConcurrencyLimiter:
    """Limits the concurrent holders of each key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_use: Counter[Hashable] = Counter()

    @contextmanager
    def try_acquire(self, key: Hashable, *, limit: int) -> Iterator[bool]:
        """Hold the key in a context if fewer than ``limit`` hold it; yield whether it is held."""
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
        """Return the current number of holders of a key."""
        with self._lock:
            return self._in_use[key]
