"""Valkey as the processes share it: there, gone, or silent."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pytest
from django.test import override_settings

from notifyproject import valkey
from notifyproject.stack import servers

T = TypeVar("T")

BRIEF = 0.3
"""Seconds for which a silent one is waited for."""


@contextmanager
def away() -> Iterator[None]:
    """Have nothing listen where Valkey should be."""
    with _at(servers.free_port()):
        yield


@contextmanager
def silent() -> Iterator[None]:
    """Have something listen there that never answers, and somebody ask who waits briefly."""
    with (
        pytest.MonkeyPatch.context() as patch,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        patch.setattr(valkey, "ANSWER", BRIEF)
        with _at(server.getsockname()[1]):
            yield


@contextmanager
def of_our_own(data_dir: Path) -> Iterator[servers.Server]:
    """Have a Valkey there that nobody else uses, to be killed and started again."""
    server = servers.valkey(data_dir=data_dir, port=servers.free_port())
    server.start()
    try:
        with _at(server.port):
            yield server
    finally:
        server.kill()


@contextmanager
def _at(port: int) -> Iterator[None]:
    with override_settings(REDIS_URL=f"redis://127.0.0.1:{port}/0"):
        valkey.forget()
        yield
    valkey.forget()


def at_once(number: int, ask: Callable[[], T]) -> list[T]:
    """Call ``ask`` in so many threads at the same moment."""
    barrier = Barrier(number)

    def call(_number: int) -> T:
        barrier.wait()
        return ask()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(call, range(number)))
