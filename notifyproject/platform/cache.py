"""Caches of this process: stored configuration (SharedCache) and measurements (TimedCache).

A change of configuration is visible in all processes once its writer has a response. A writer
stores its change, then a new version of its cache, then responds. A reader compares versions at the
first read of each request, task, and batch, for all caches in one round trip. Versions are in
MongoDB, because a process that could not reach Valkey would miss a change.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from bson import ObjectId

from ..db.collections import collection, find_few

MAX_AGE = 1.0
"""Seconds for which a long request or task relies on the versions that it has read."""
MAX_LOADED = 30.0
"""Seconds after which a value is reloaded, even if its version is the same. A shell, a restored
backup, or a process that died may have changed the value without a new version."""
_VERSIONS_ID = "all"

T = TypeVar("T")


class SharedCache(Generic[T]):
    """Per-process copy of a value that is stored in MongoDB and seldom changes."""

    def __init__(self, name: str, load: Callable[[], T]) -> None:
        self._name = name
        self._load = load
        self._loaded: _Loaded[T] | None = None
        self._lock = threading.Lock()
        _caches.add(self)

    def get(self) -> T:
        """Return the value as of this request, task, or batch. Raises PyMongoError."""
        version = _versions.version_of(self._name)
        loaded = self._loaded
        if loaded is None or not loaded.is_current(version):
            with self._lock:
                loaded = self._loaded
                # Another thread may have loaded the value meanwhile.
                if loaded is None or not loaded.is_current(version):
                    loaded_at = time.monotonic()
                    loaded = self._loaded = _Loaded(self._load(), version, loaded_at)
        return loaded.value

    def invalidate(self) -> None:
        """Make every process reload the value. Call after each write; repeat on PyMongoError."""
        self.clear()
        collection("cache_versions").update_one(
            {"_id": _VERSIONS_ID}, {"$set": {self._name: ObjectId()}}, upsert=True
        )
        compare_at_next_read()

    def clear(self) -> None:
        """Reload the value at the next read, in this process."""
        self._loaded = None


class TimedCache(Generic[T]):
    """Per-process copy of a value that is expensive to compute and may be some seconds old.

    One thread computes it; the others wait, or with ``serve_stale`` get the previous value.
    """

    def __init__(self, *, seconds: float, serve_stale: bool = False) -> None:
        self.latest: T | None = None
        self.seconds = seconds
        self._serve_stale = serve_stale
        self._lock = threading.Lock()
        self._computed_at = float("-inf")

    def get(self, compute: Callable[[], T]) -> T:
        """Return the value. Computes it if it is over ``seconds`` old."""
        latest = self.latest
        is_computing = self._lock.locked()
        if latest is not None and (self._is_fresh() or (self._serve_stale and is_computing)):
            return latest
        with self._lock:
            if self.latest is None or not self._is_fresh():
                self.latest = compute()
                self._computed_at = time.monotonic()
            return self.latest

    def clear(self) -> None:
        """Compute the value at the next read."""
        self.latest, self._computed_at = None, float("-inf")

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._computed_at <= self.seconds


def compare_at_next_read(**_: Any) -> None:
    """Compare versions before this thread's next read. A receiver of signals."""
    _thread.is_compared = False


def clear_all() -> None:
    """Reload every shared value at its next read, in this process."""
    for cache in _caches:
        cache.clear()
    compare_at_next_read()


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[T]):
    value: T
    version: ObjectId | None
    loaded_at: float

    def is_current(self, version: ObjectId | None) -> bool:
        return self.version == version and time.monotonic() - self.loaded_at <= MAX_LOADED


class _Thread(threading.local):
    """Whether this thread's request or task has compared versions."""

    is_compared = False


class _Versions:
    def __init__(self) -> None:
        self._found: Mapping[str, Any] = {}
        self._read_at = float("-inf")
        self._reads_started = 0
        self._last_applied = 0
        self._lock = threading.Lock()

    def version_of(self, name: str) -> ObjectId | None:
        """Return the version of a cache, or None if it never changed. Raises PyMongoError."""
        is_old = time.monotonic() - self._read_at > MAX_AGE
        if is_old or not _thread.is_compared:
            self._read()
            _thread.is_compared = True
        return self._found.get(name)

    def _read(self) -> None:
        with self._lock:
            self._reads_started += 1
            number = self._reads_started
        read_at = time.monotonic()
        found = next(iter(find_few("cache_versions", {"_id": _VERSIONS_ID}, limit=1)), {})
        with self._lock:
            # Keep the result of a read that began later, which is newer.
            if number > self._last_applied:
                self._last_applied, self._found, self._read_at = number, found, read_at


_caches: "WeakSet[SharedCache[Any]]" = WeakSet()
_thread = _Thread()
_versions = _Versions()
