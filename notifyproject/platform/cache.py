"""Caches of this process: stored configuration (SharedCache) and measurements (TimedCache).

A change of configuration is visible in all processes once its writer has a response. A writer
stores its change, then a new version of its cache, then responds. A reader compares versions at the
first read of each request, task, and batch, for all caches in one round trip. Versions are in
MongoDB, because a process that could not reach Valkey would miss a change.

A request may instead rely on the copies of its process, and compare versions by a read that it
needs anyway. It must do so before its first write, and starts again if a version has changed.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from bson import ObjectId

from .. import lockstep
from ..db.collections import Documents
from ..db.trips import find_few
from ..db.trips import find_in_several as find_documents

MAX_AGE = 1.0
"""Seconds for which a long request or task relies on the versions that it has read."""
MAX_LOADED = 30.0
"""Seconds after which a value is reloaded, even if its version is the same. A shell, a restored
backup, or a process that died may have changed the value without a new version."""
_VERSIONS = Documents("cache_versions", dict[str, ObjectId | str])
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
        comparison = _versions.latest_of_request()
        loaded = self._loaded
        if loaded is None or loaded.comparison is not comparison:
            loaded = self._compare(comparison)
        return loaded.value

    def _compare(self, comparison: "_Comparison") -> "_Loaded[T]":
        version = comparison.versions.get(self._name)
        loaded = self._loaded
        if loaded is None or not loaded.is_current(version):
            with lockstep.alone(), self._lock:
                loaded = self._loaded
                # Another thread may have loaded the value meanwhile.
                if loaded is None or not loaded.is_current(version):
                    loaded_at = time.monotonic()
                    loaded = self._loaded = _Loaded(self._load(), version, loaded_at, comparison)
        loaded.comparison = comparison
        return loaded

    def invalidate(self) -> None:
        """Make every process reload the value. Call after each write; repeat on PyMongoError."""
        self.clear()
        _VERSIONS().update_one(
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
        with lockstep.alone(), self._lock:
            if self.latest is None or not self._is_fresh():
                self.latest = compute()
                self._computed_at = time.monotonic()
            return self.latest

    def clear(self) -> None:
        """Compute the value at the next read."""
        self.latest, self._computed_at = None, float("-inf")

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._computed_at <= self.seconds


class ChangedError(Exception):
    """The copies on which this request relied are old: a version has changed since."""


def compare_at_next_read(**_: Any) -> None:
    """Compare versions before this request's next read. A receiver of signals."""
    _is_compared.set(False)
    _relied_on.set(None)


def relying_on_copies(handle: Callable[[], T]) -> T:
    """Call ``handle``, which relies on the copies of this process, and again if they were old.

    It must confirm the copies before its first write.
    """
    _relied_on.set(_versions.latest if _versions.latest.versions else None)
    try:
        result = handle()
        # A refusal may not have read anything.
        confirm_copies()
    except ChangedError:
        return handle()
    return result


def confirm_copies() -> None:
    """Compare versions, unless this request has. Raises ChangedError and PyMongoError."""
    if _relied_on.get() is not None:
        find_in_several({})


def find_in_several(wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return a few matching documents of each collection, read in one request.

    Confirms the copies that this request relies on. Raises ChangedError and PyMongoError.
    """
    relied_on = _relied_on.get()
    if relied_on is None:
        return find_documents(wanted)
    began = _versions.begin()
    found = find_documents({**wanted, _VERSIONS.name: {"_id": _VERSIONS_ID}})
    (versions,) = found.pop(_VERSIONS.name) or [{}]
    _relied_on.set(None)
    _versions.end(began, versions)
    _is_compared.set(True)
    if versions != relied_on.versions:
        raise ChangedError
    return found


def clear_all() -> None:
    """Reload every shared value at its next read, in this process."""
    for cache in _caches:
        cache.clear()
    compare_at_next_read()


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The versions of all caches, as read at an instant."""

    versions: Mapping[str, Any]
    number: int  # Of the read, in the order in which reads began
    read_at: float


@dataclass(slots=True)
class _Loaded(Generic[T]):
    value: T
    version: ObjectId | None
    loaded_at: float
    comparison: _Comparison  # The latest one by which the value is current

    def is_current(self, version: ObjectId | None) -> bool:
        return self.version == version and time.monotonic() - self.loaded_at <= MAX_LOADED


class _Versions:
    def __init__(self) -> None:
        self.latest = _Comparison({}, 0, float("-inf"))
        self._reads_begun = 0
        self._lock = threading.Lock()

    def latest_of_request(self) -> _Comparison:
        """Return the versions that apply to this request. Raises PyMongoError."""
        if (relied_on := _relied_on.get()) is not None:
            return relied_on
        if not _is_compared.get() or time.monotonic() - self.latest.read_at > MAX_AGE:
            began = self.begin()
            found = find_few(_VERSIONS, {"_id": _VERSIONS_ID}, limit=1)
            self.end(began, next(iter(found), {}))
            _is_compared.set(True)
        return self.latest

    def begin(self) -> tuple[int, float]:
        """Return the number and the time of a read that begins now."""
        with self._lock:
            self._reads_begun += 1
            return self._reads_begun, time.monotonic()

    def end(self, began: tuple[int, float], versions: Mapping[str, Any]) -> None:
        """Keep the versions, unless a read that began later has ended: it is newer."""
        number, read_at = began
        with self._lock:
            if number > self.latest.number:
                self.latest = _Comparison(versions, number, read_at)


_caches: "WeakSet[SharedCache[Any]]" = WeakSet()
_is_compared: ContextVar[bool] = ContextVar("is_compared", default=False)
"""Whether this request or task has compared versions."""
_relied_on: ContextVar[_Comparison | None] = ContextVar("relied_on", default=None)
"""The versions that this request relies on without a comparison."""
_versions = _Versions()
