"""The event loop of the process: coroutines from other threads, blocking functions, and forks."""

import asyncio
import resource
import threading

import pytest

from notifyproject.platform import event_loop
from tests.support.fork import become_child
from tests.support.threads import at_once
from tests.support.waiting import LIMIT, until


def test_threads_share_one_loop() -> None:
    async def name() -> str:
        return threading.current_thread().name

    names = at_once(*[lambda: event_loop.run(name())] * 8)
    assert set(names) == {"event-loop"}


def test_error_of_a_coroutine_reaches_its_caller() -> None:
    async def fail() -> None:
        raise LookupError("nothing here")

    with pytest.raises(LookupError, match="nothing here"):
        event_loop.run(fail())


def test_blocking_functions_leave_the_loop_free() -> None:
    together = threading.Barrier(4, timeout=LIMIT)

    async def run_four() -> list[int]:
        calls = (event_loop.run_blocking(together.wait, pool="barrier") for _ in range(4))
        return await asyncio.gather(*calls)

    assert sorted(event_loop.run(run_four())) == [0, 1, 2, 3]


def test_pool_that_hangs_blocks_no_other() -> None:
    stop = threading.Event()

    async def wait_beside_a_full_pool() -> str:
        hanging = [
            asyncio.ensure_future(event_loop.run_blocking(stop.wait, LIMIT, pool="hanging"))
            for _ in range(600)
        ]
        try:
            return await event_loop.run_blocking(str, "through", pool="other")
        finally:
            stop.set()
            await asyncio.gather(*hanging)

    assert event_loop.run(wait_beside_a_full_pool()) == "through"


def test_forked_child_has_its_own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = event_loop.event_loop()
    child = become_child(monkeypatch, event_loop)
    childs = event_loop.event_loop()
    assert childs is not parents
    monkeypatch.undo()
    assert event_loop.event_loop() is parents
    del event_loop._loops[child]
    childs.call_soon_threadsafe(childs.stop)
    until(lambda: not childs.is_running())
    childs.close()


def test_loop_raises_the_limit_of_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 1_048_576))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: allowed.append(limits))
    event_loop._raise_descriptor_limit()
    assert allowed == [(event_loop.MAX_DESCRIPTORS, 1_048_576)]
