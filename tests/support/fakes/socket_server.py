"""Servers made of bare sockets, for exact behavior on the wire."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

from tests.support.waiting import LIMIT, SILENT_FOR, lag, until

Handler = Callable[[socket.socket], None]
BACKLOG = 2048
"""Connections that wait to be accepted. Beyond it, Linux drops a connection request, and the client
repeats it after 1, 3, 7, and more seconds."""


class SocketServer:
    """A loopback server with one handler thread per connection."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._accepted: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port = int(self._listener.getsockname()[1])
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections the server has accepted."""
        return len(self._accepted)

    def close(self) -> None:
        # A closed listener does not wake up whoever waits for it on Linux; a shut down one does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._accepted:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in (self._acceptor, *self._threads):
            thread.join(LIMIT)

    def until_idle(self) -> None:
        """Wait until the server has closed all connections that it accepted."""
        until(lambda: self._closed() == self.connections)

    def until_closed(self, count: int) -> None:
        """Wait until the server has closed ``count`` connections."""
        until(lambda: self._closed() == count)

    def _closed(self) -> int:
        return sum(connection.fileno() < 0 for connection in list(self._accepted))

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.settimeout(SILENT_FOR)
            self._accepted.append(connection)
            thread = threading.Thread(target=self._handle, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _handle(self, connection: socket.socket) -> None:
        # What a test's client does to the connection is not the server's failure.
        with contextlib.suppress(OSError), connection:
            self._handler(connection)
            # The client sees the end before ``fileno`` does, which _closed() reads.
            connection.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def serving(handler: Handler) -> Iterator[SocketServer]:
    wire = SocketServer(handler)
    try:
        yield wire
    finally:
        wire.close()


def read_request(connection: socket.socket) -> bytes:
    """Return one complete HTTP request, or nothing when the client has hung up."""
    received = b""
    while b"\r\n\r\n" not in received:
        some = connection.recv(65536)
        if not some:
            return b""
        received += some
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def response(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def answering(*parts: bytes, pause: float = 0.0) -> Handler:
    """Return a handler that reads a request and sends ``parts``, ``pause`` seconds apart."""

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        for part in parts:
            connection.sendall(part)
            lag(pause)

    return handle


def stopping(*parts: bytes) -> Handler:
    """Return a handler that reads a request, sends ``parts``, and waits until the client leaves."""

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        for part in parts:
            connection.sendall(part)
        connection.recv(1)

    return handle


def unreading(connection: socket.socket) -> None:
    """Read nothing until the server is closed."""
    while connection.fileno() >= 0:
        lag(0.01)


def resetting(connection: socket.socket) -> None:
    """Read a request and reset the connection."""
    read_request(connection)
    reset(connection)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class KeepAlive:
    """A handler that answers every request of a connection and records it."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.requests: list[bytes] = []

    def __call__(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            self.requests.append(request)
            connection.sendall(self._answer)
