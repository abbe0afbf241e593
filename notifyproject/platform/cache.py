"""Caches of stored configuration: a change that was answered holds in every process.

Each cache has a version in MongoDB. A writer stores its change, then a new version, then answers.
A reader compares versions at the first read of each request, task and batch, all caches in one
round trip, and loads again what has another version. Valkey plays no part: a process that could
not reach it would miss a change that the others know of.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from bson import ObjectId
from pymongo.errors import AutoReconnect

from ..db.collections import collection, database

MAX_AGE = 1.0
"""Seconds for which a long request or task goes by the versions that it has read."""
MAX_LOADED = 30.0
"""Seconds after which a value is loaded again, whatever its version: it may have been changed
without one, in MongoDB's shell, by a restored backup, or by a process that died right before."""
_VERSIONS_ID = "all"

T = TypeVar("T")


class SharedCache(Generic[T]):
    """One process's copy of a value that is stored in MongoDB and seldom changes."""

    def __init__(self, name: str, load: Callable[[], T]) -> None:
        self._name = name
        self._load = load
        self._loaded: _Loaded[T] | None = None
        self._lock = threading.Lock()
        _caches.add(self)

    def get(self) -> T:
        """Return the value as of this request, task or batch. Raises PyMongoError."""
        version = _versions.version_of(self._name)
        loaded = self._loaded
        if loaded is None or not loaded.is_current(version):
            with self._lock:
                loaded = self._loaded
                # Of the threads that waited, the first has loaded it for all.
                if loaded is None or not loaded.is_current(version):
                    loaded_at = time.monotonic()
                    loaded = self._loaded = _Loaded(self._load(), version, loaded_at)
        return loaded.value

    def invalidate(self) -> None:
        """Make every process load the value again; call it after each write. Raises PyMongoError.

        A caller that gets an error must repeat the write: other processes may not know of it.
        """
        self.clear()
        collection("cache_versions").update_one(
            {"_id": _VERSIONS_ID}, {"$set": {self._name: ObjectId()}}, upsert=True
        )
        compare_at_next_read()

    def clear(self) -> None:
        """Load the value again at the next read, in this process."""
        self._loaded = None


def compare_at_next_read(**_: Any) -> None:
    """Compare versions before this thread's next read: a request, task or batch begins.

    Takes and ignores what Django's and Celery's signals send.
    """
    _thread.is_compared = False


def clear_all() -> None:
    """Load every value again at its next read, in this process."""
    for cache in _caches:
        cache.clear()
    compare_at_next_read()


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[T]):
    value: T
    version: ObjectId | None
    """Read before the value was: the value has all that this version stands for."""
    loaded_at: float

    def is_current(self, version: ObjectId | None) -> bool:
        return self.version == version and time.monotonic() - self.loaded_at <= MAX_LOADED


class _Thread(threading.local):
    """Whether this thread's request or task has compared versions."""

    is_compared = False


class _Versions:
    """The versions that this process read last."""

    def __init__(self) -> None:
        self._found: Mapping[str, Any] = {}
        self._read_at = float("-inf")
        self._reads_started = 0
        self._last_applied = 0
        self._lock = threading.Lock()

    def version_of(self, name: str) -> ObjectId | None:
        """Return the version of a cache; None if it never changed. Raises PyMongoError."""
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
        found = _fetch()
        with self._lock:
            # A read that began later has seen all that this one had to see.
            if number > self._last_applied:
                self._last_applied, self._found, self._read_at = number, found, read_at


def _fetch() -> Mapping[str, Any]:
    """Return the stored versions. A bare command costs two thirds of the processor of a find."""
    try:
        reply = database().command(
            "find", "cache_versions", filter={"_id": _VERSIONS_ID}, limit=1, singleBatch=True
        )
    except AutoReconnect:
        # The driver repeats a find while a primary is elected, but no command.
        return collection("cache_versions").find_one({"_id": _VERSIONS_ID}) or {}
    return next(iter(reply["cursor"]["firstBatch"]), {})


_caches: "WeakSet[SharedCache[Any]]" = WeakSet()
_thread = _Thread()
_versions = _Versions()
