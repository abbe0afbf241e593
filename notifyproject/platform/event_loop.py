"""The event loop of this process: one thread runs asyncio for all requests to providers.

Other threads submit coroutines. A forked child has its own loop.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from django.conf import settings

T = TypeVar("T")
_loops: dict[int, asyncio.AbstractEventLoop] = {}
_lock = threading.Lock()


def event_loop() -> asyncio.AbstractEventLoop:
    """Return this process's loop; the first call starts its thread."""
    process_id = os.getpid()
    with _lock:
        if process_id not in _loops:
            loop = _loops[process_id] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
        return _loops[process_id]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop; return its result or raise its exception."""
    return asyncio.run_coroutine_threadsafe(coroutine, event_loop()).result()


def call(function: Callable[[], object]) -> None:
    """Call a function in the loop's thread, without waiting for it."""
    event_loop().call_soon_threadsafe(function)


async def run_blocking(function: Callable[..., T], *args: object, pool: str) -> T:
    """Run a blocking function in a thread of a pool. Pools don't block one another."""
    threads = _thread_pool(os.getpid(), pool)
    return await asyncio.get_running_loop().run_in_executor(threads, function, *args)


@cache
def _thread_pool(_process_id: int, name: str) -> ThreadPoolExecutor:
    """Return the pool of this process, with WORKER_THREADS threads. Forks have their own."""
    return ThreadPoolExecutor(max_workers=settings.WORKER_THREADS, thread_name_prefix=name)
