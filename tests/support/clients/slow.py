"""Slow clients, which keep connections open and make the server wait."""

import contextlib
import select
import socket
import threading
from dataclasses import dataclass, field
from enum import StrEnum

from tests.support.waiting import LIMIT, ticks

RECEIVE_BUFFER_BYTES = 4_096
PIPELINED = 20
"""The number of requests that a slow reader sends at once; the answers exceed TCP's buffers."""


class Kind(StrEnum):
    """The way in which a client is slow."""

    SILENT = "silent"
    """Sends nothing."""
    HEAD = "head"
    """Sends the head of a request, a byte at a time."""
    BODY = "body"
    """Sends the body a byte at a time."""
    CHUNKED = "chunked"
    """Sends the body a byte at a time, in chunks."""
    READER = "reader"
    """Sends many requests and reads no answer."""
    IDLE = "idle"
    """Sends one request and keeps the connection."""


@dataclass(frozen=True, kw_only=True)
class TargetServer:
    """The server that the clients connect to."""

    host: str
    port: int
    large_path: str = "/static/unfold/css/styles.css"
    """A path with a large answer and without authentication."""
    post_path: str = "/api/v1/notifications"

    def initial_bytes(self, kind: Kind) -> bytes:
        """Return what a client of this kind sends first."""
        host = f"Host: {self.host}:{self.port}\r\n"
        post = f"POST {self.post_path} HTTP/1.1\r\n{host}Content-Type: application/json\r\n"
        return {
            Kind.SILENT: "",
            Kind.HEAD: f"GET /healthz HTTP/1.1\r\n{host}X-Slow: ",
            Kind.BODY: f"{post}Content-Length: 100000\r\n\r\n{{",
            Kind.CHUNKED: f"{post}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n",
            Kind.READER: f"GET {self.large_path} HTTP/1.1\r\n{host}\r\n" * PIPELINED,
            Kind.IDLE: f"GET /healthz HTTP/1.1\r\n{host}\r\n",
        }[kind].encode()


REPEATED_BYTES = {Kind.HEAD: b"x", Kind.BODY: b" ", Kind.CHUNKED: b"1\r\n \r\n"}
"""The bytes that a client sends after each pause."""


@dataclass(kw_only=True)
class SlowClients:
    """``count`` connections of each kind to one server, which are reopened if closed."""

    target: TargetServer
    kinds: tuple[Kind, ...]
    count: int
    pause: float = 3.0
    """Seconds between two sends on a connection."""
    opened: int = field(default=0, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _all_connected: threading.Event = field(default_factory=threading.Event, init=False)

    def __enter__(self) -> "SlowClients":
        """Open all connections in a thread, and wait until they are open."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._all_connected.wait(timeout=LIMIT)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        clients: dict[int, tuple[socket.socket, Kind]] = {}
        with select.epoll() as poll:

            def add(kind: Kind) -> None:
                if client := self._connect(kind):
                    clients[client.fileno()] = (client, kind)
                    # A slow reader leaves data unread, so only the connection's end is polled.
                    only_end = kind is Kind.READER
                    poll.register(client, select.EPOLLRDHUP if only_end else select.EPOLLIN)

            for kind in self.kinds * self.count:
                add(kind)
            self._all_connected.set()
            sent_at = ticks()
            while not self._stop.is_set():
                for number, _ in poll.poll(0.1):
                    client, kind = clients[number]
                    if kind is Kind.READER or _is_closed(client):
                        poll.unregister(client)
                        clients.pop(number)[0].close()
                        add(kind)
                if ticks() - sent_at >= self.pause:
                    sent_at = ticks()
                    for client, kind in clients.values():
                        _send(client, REPEATED_BYTES.get(kind, b""))
        for client, _ in clients.values():
            client.close()

    def _connect(self, kind: Kind) -> socket.socket | None:
        client = socket.socket()
        if kind is Kind.READER:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        client.settimeout(5)
        try:
            client.connect((self.target.host, self.target.port))
        except OSError:
            client.close()
            return None
        client.setblocking(False)
        _send(client, self.target.initial_bytes(kind))
        self.opened += 1
        return client


def _send(client: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        client.send(data)


def _is_closed(client: socket.socket) -> bool:
    try:
        return not client.recv(65_536)
    except BlockingIOError:
        return False
    except OSError:
        return True
