"""The shared configuration cache: loads, comparisons, and invalidation."""

import threading
import time
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from bson import ObjectId
from pymongo import monitoring

from notifyproject.db.collections import collection
from notifyproject.db.trips import find_few
from notifyproject.platform import cache
from notifyproject.platform.cache import SharedCache, TimedCache
from tests.support.fakes.mongo_failpoints import CUT, NOT_PRIMARY, Trouble, fail_commands
from tests.support.mongo.written_collections import StartedListener
from tests.support.threads import at_once
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db")


@dataclass
class Stored:
    """A stored value, and how often it was loaded."""

    value: str = "old"
    loaded: int = 0

    def load(self) -> str:
        self.loaded += 1
        return self.value


@pytest.fixture
def stored() -> Stored:
    return Stored()


@pytest.fixture
def cached(stored: Stored) -> SharedCache[str]:
    return SharedCache("test", stored.load)


def other_process_changes(stored: Stored, value: str) -> None:
    """Write the value and its version, as another process does."""
    stored.value = value
    collection("cache_versions").update_one(
        {"_id": "all"}, {"$set": {"test": ObjectId()}}, upsert=True
    )


class _Finds(StartedListener):
    def __init__(self) -> None:
        self.count = 0

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.count += event.command.get("find") == "cache_versions"


FINDS = _Finds()
monitoring.register(FINDS)


@pytest.fixture
def finds() -> _Finds:
    FINDS.count = 0
    return FINDS


def test_value_is_loaded_once_for_many_requests(stored: Stored, cached: SharedCache[str]) -> None:
    for _ in range(10):
        cache.compare_at_next_read()
        assert cached.get() == "old"
    assert stored.loaded == 1


def test_next_request_sees_another_process_change(stored: Stored, cached: SharedCache[str]) -> None:
    for number in range(20):
        cached.get()
        other_process_changes(stored, str(number))
        cache.compare_at_next_read()
        assert cached.get() == str(number)


def test_request_uses_one_version_throughout(stored: Stored, cached: SharedCache[str]) -> None:
    cache.compare_at_next_read()
    cached.get()
    other_process_changes(stored, "new")
    assert cached.get() == "old"


@pytest.fixture
def relied_on(stored: Stored, cached: SharedCache[str]) -> SharedCache[str]:
    """Return a cache with a version, which a request may rely on."""
    other_process_changes(stored, "first")
    cached.get()
    cache.compare_at_next_read()
    return cached


ADA = {"recipients": {"_id": "ada"}}


def test_request_relies_on_copies_until_its_first_read(
    relied_on: SharedCache[str], finds: _Finds
) -> None:
    def handle() -> list[str]:
        values = [relied_on.get()]
        assert cache.find_in_several(ADA) == {"recipients": []}
        cache.confirm_copies()
        return [*values, relied_on.get()]

    assert cache.relying_on_copies(handle) == ["first", "first"]
    assert finds.count == 0, "the versions come with the recipients"


@pytest.mark.parametrize("reads", [{}, ADA])
@pytest.mark.parametrize("confirms", [True, False])
def test_request_that_relied_on_an_old_copy_starts_again(
    stored: Stored, relied_on: SharedCache[str], reads: dict[str, Any], confirms: bool
) -> None:
    other_process_changes(stored, "new")
    values: list[str] = []

    def handle() -> str:
        values.append(relied_on.get())
        if reads:
            cache.find_in_several(reads)
        if confirms:
            cache.confirm_copies()
        return relied_on.get()

    assert cache.relying_on_copies(handle) == "new"
    assert values == ["first", "new"]


def test_process_without_versions_compares_first(
    cached: SharedCache[str], finds: _Finds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_versions", cache._Versions())
    assert cache.relying_on_copies(cached.get) == "old"
    assert finds.count == 1


def test_long_task_sees_a_change_within_a_second(
    stored: Stored, cached: SharedCache[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cached.get()
    other_process_changes(stored, "new")
    monkeypatch.setattr(cache, "MAX_AGE", -1.0)
    assert cached.get() == "new"


def test_change_without_a_version_is_seen_eventually(
    stored: Stored, cached: SharedCache[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cached.get()
    stored.value = "from the shell"
    cache.compare_at_next_read()
    assert cached.get() == "old"
    monkeypatch.setattr(cache, "MAX_LOADED", -1.0)
    cache.compare_at_next_read()
    assert cached.get() == "from the shell"


def test_restored_backup_has_other_versions(stored: Stored, cached: SharedCache[str]) -> None:
    other_process_changes(stored, "new")
    cache.compare_at_next_read()
    cached.get()
    stored.value = "restored"
    collection("cache_versions").delete_one({"_id": "all"})
    cache.compare_at_next_read()
    assert cached.get() == "restored"


def test_own_change_is_seen_at_once_by_all_threads(
    stored: Stored, cached: SharedCache[str]
) -> None:
    cached.get()
    found = []
    threads_read, changed = threading.Event(), threading.Event()

    def request() -> None:
        cached.get()
        threads_read.set()
        assert changed.wait(60)
        found.append(cached.get())

    thread = threading.Thread(target=request)
    thread.start()
    assert threads_read.wait(60)
    stored.value = "new"
    cached.invalidate()
    changed.set()
    thread.join(60)
    assert found == ["new"]


def test_all_caches_of_a_request_cost_one_query(stored: Stored, finds: _Finds) -> None:
    caches = [SharedCache(f"test_{number}", stored.load) for number in range(5)]
    cache.compare_at_next_read()
    for shared in caches * 3:
        shared.get()
    assert finds.count == 1


def test_change_of_one_cache_keeps_the_others(stored: Stored) -> None:
    mine, other = Stored(), Stored()
    first, second = SharedCache("first", mine.load), SharedCache("second", other.load)
    first.get(), second.get()
    first.invalidate()
    first.get(), second.get()
    assert (mine.loaded, other.loaded) == (2, 1)


def test_late_old_version_does_not_undo_a_newer_one(
    stored: Stored, cached: SharedCache[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread can read versions, and stall until another thread has read newer versions."""
    cached.get()
    stalled, go_on = threading.Event(), threading.Event()
    real = find_few

    def stalling(*args: Any, **options: Any) -> list[Any]:
        found = real(*args, **options)
        stalled.set()
        assert go_on.wait(60)
        return found

    monkeypatch.setattr(cache, "find_few", stalling)
    slow = threading.Thread(target=cached.get)
    slow.start()
    assert stalled.wait(60)
    monkeypatch.setattr(cache, "find_few", real)
    other_process_changes(stored, "new")
    cache.compare_at_next_read()
    assert cached.get() == "new"
    go_on.set()
    slow.join(60)
    assert cached.get() == "new"
    assert stored.loaded == 2


def test_concurrent_threads_load_once(cached: SharedCache[str], stored: Stored) -> None:
    at_once(*[cached.get] * 8)
    assert stored.loaded == 1


@pytest.mark.parametrize("trouble", [NOT_PRIMARY, CUT], ids=["not_primary", "cut"])
def test_primary_election_is_waited_for(
    stored: Stored, cached: SharedCache[str], trouble: Trouble
) -> None:
    cached.get()
    other_process_changes(stored, "new")
    cache.compare_at_next_read()
    with fail_commands("find", "cache_versions", trouble):
        assert cached.get() == "new"


class TestTimedCache:
    def test_value_is_computed_again_when_it_is_too_old(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: now)
        timed, values = TimedCache[int](seconds=5), count()
        assert timed.get(lambda: next(values)) == 0
        now += 5
        assert timed.get(lambda: next(values)) == 0
        now += 1
        assert timed.get(lambda: next(values)) == 1

    def test_cleared_value_is_computed_again(self) -> None:
        timed = TimedCache[int](seconds=5)
        assert timed.get(lambda: 1) == 1
        timed.clear()
        assert timed.get(lambda: 2) == 2

    @pytest.mark.parametrize(("serve_stale", "expected"), [(True, 1), (False, 2)])
    def test_other_threads_get_the_previous_value_or_wait(
        self, serve_stale: bool, expected: int
    ) -> None:
        timed = TimedCache[int](seconds=0, serve_stale=serve_stale)
        timed.get(lambda: 1)
        begun, may_end, results = threading.Event(), threading.Event(), list[int]()

        def compute() -> int:
            begun.set()
            may_end.wait(LIMIT)
            return 2

        slow = threading.Thread(target=lambda: timed.get(compute))
        slow.start()
        begun.wait(LIMIT)
        other = threading.Thread(target=lambda: results.append(timed.get(lambda: 2)))
        other.start()
        other.join(0.1 if not serve_stale else LIMIT)
        may_end.set()
        slow.join()
        other.join()
        assert results == [expected]
