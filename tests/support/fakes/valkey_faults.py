"""An unavailable or unresponsive Valkey."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from django.test import override_settings

from notifyproject.platform import server_health, valkey
from notifyproject.stack import servers
from tests.support import threads
from tests.support.waiting import SILENT_FOR

T = TypeVar("T")
BRIEF = 0.3
"""Client time limit in seconds."""


@contextmanager
def unavailable() -> Iterator[None]:
    """Make connections to Valkey be refused during the block."""
    with _at(servers.free_port()):
        yield


class Silent:
    """A server that never answers."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._open: list[socket.socket] = []
        self.connections = 0
        """Number of connections."""
        self.most_at_once = 0
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                connection.setblocking(False)
                self._open = [*filter(_is_open, self._open), connection]
                self.connections += 1
                self.most_at_once = max(self.most_at_once, len(self._open))

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        for connection in self._open:
            connection.close()


def _is_open(connection: socket.socket) -> bool:
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    connection.close()
    return False


@contextmanager
def unresponsive(*, brief: float = BRIEF) -> Iterator[Silent]:
    """Let Valkey's address accept connections without answering.

    The client's time limit is short, and it doesn't retry during the test.
    """
    with pytest.MonkeyPatch.context() as patch, socket.create_server(("127.0.0.1", 0)) as server:
        patch.setattr(valkey, "TIMEOUT", brief)
        patch.setattr(server_health, "PAUSE_AFTER_FAILURE", SILENT_FOR)
        listener = Silent(server)
        try:
            with _at(server.getsockname()[1]):
                yield listener
        finally:
            listener.close()


@contextmanager
def own_valkey(data_dir: Path) -> Iterator[servers.Server]:
    """Run a Valkey of the test's own, which may be killed and restarted."""
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
    """Call ``ask`` in threads that start together."""
    return threads.at_once(*[ask] * number)
