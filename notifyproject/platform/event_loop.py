"""The event loop of this process: one thread runs asyncio for all requests to providers.

Other threads submit coroutines. A forked child has its own loop.
"""

import asyncio
import os
import resource
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from django.conf import settings

T = TypeVar("T")
MAX_DESCRIPTORS = 65_536
_loops: dict[int, asyncio.AbstractEventLoop] = {}
_lock = threading.Lock()


def event_loop() -> asyncio.AbstractEventLoop:
    """Return this process's loop; the first call starts its thread."""
    process_id = os.getpid()
    with _lock:
        if process_id not in _loops:
            _raise_descriptor_limit()
            loop = _loops[process_id] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
        return _loops[process_id]


def _raise_descriptor_limit() -> None:
    """Allow as many connections as the system does: shells often limit a process to 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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
