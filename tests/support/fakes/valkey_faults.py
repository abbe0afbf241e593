"""Valkey as the processes share it: there, gone, or silent."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pytest
from django.test import override_settings

from notifyproject.platform import valkey
from notifyproject.stack import servers
from tests.support.waiting import SILENT_FOR

T = TypeVar("T")

BRIEF = 0.3
"""Seconds for which a silent one is waited for."""


@contextmanager
def unavailable() -> Iterator[None]:
    """Have nothing listen where Valkey should be."""
    with _at(servers.free_port()):
        yield


class Silent:
    """Something that listens, reads, and never answers."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._open: list[socket.socket] = []
        self.asked = 0
        """How many have connected, each with a question."""
        self.most_at_once = 0
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._server.accept()
                one.setblocking(False)
                self._open = [*filter(_is_open, self._open), one]
                self.asked += 1
                self.most_at_once = max(self.most_at_once, len(self._open))

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        for one in self._open:
            one.close()


def _is_open(one: socket.socket) -> bool:
    """Return whether the other side still waits."""
    try:
        while one.recv(4096):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    one.close()
    return False


@contextmanager
def unresponsive(*, brief: float = BRIEF) -> Iterator[Silent]:
    """Have something listen there that never answers, and somebody ask who waits briefly.

    A question that was not answered is not repeated while the test lasts.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        patch.setattr(valkey, "TIMEOUT", brief)
        patch.setattr(valkey, "PAUSE_AFTER_FAILURE", SILENT_FOR)
        listener = Silent(server)
        try:
            with _at(server.getsockname()[1]):
                yield listener
        finally:
            listener.close()


@contextmanager
def own_valkey(data_dir: Path) -> Iterator[servers.Server]:
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
        valkey.clear()
        yield
    valkey.clear()


def at_once(number: int, ask: Callable[[], T]) -> list[T]:
    """Call ``ask`` in so many threads at the same moment."""
    barrier = Barrier(number)

    def call(_number: int) -> T:
        barrier.wait()
        return ask()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(call, range(number)))
