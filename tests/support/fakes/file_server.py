"""An HTTPS server for files.example.com with a trusted certificate."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifyproject.platform import egress
from notifyproject.platform.egress import Deadline
from providers import mail
from tests.support.fakes import socket_server
from tests.support.fakes.certificates import self_signed
from tests.support.waiting import LIMIT

HOST = "files.example.com"
URL = f"https://{HOST}/invoices/7.pdf"


def certificate(folder: Path, *, host: str = HOST) -> Path:
    return self_signed(folder, host=host)


def encrypted(handler: socket_server.Handler, file: Path) -> socket_server.Handler:
    """Return a handler that speaks TLS, and closes the TLS connection properly."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    def handle(connection: socket.socket) -> None:
        secure = context.wrap_socket(connection, server_side=True)
        try:
            handler(secure)
            secure.unwrap()
        finally:
            secure.close()

    return handle


class Files:
    """Returns the same bytes for each request, and records requests."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.requests: list[bytes] = []

    def __call__(self, connection: socket.socket) -> None:
        self.requests.append(read_head(connection))
        for part in self.parts:
            connection.sendall(part)


def read_head(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        some = connection.recv(65536)
        if not some:
            break
        head += some
    return head


@contextlib.contextmanager
def files_at(
    handler: socket_server.Handler, file: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket_server.SocketServer]:
    """Resolve every host to this server, and trust its certificate."""
    with socket_server.serving(encrypted(handler, file)) as server:
        here = [("127.0.0.1", server.port)]
        monkeypatch.setattr(egress, "addresses_of", lambda host, port: here)
        # The product's own context, and with it all that it says of how a connection ends.
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        egress.tls_context.cache_clear()
        try:
            yield server
        finally:
            egress.tls_context.cache_clear()


def get(url: str = URL, *, limit: int = 1_000, seconds: float = LIMIT) -> bytes:
    return mail.download(url, limit=limit, deadline=Deadline.after(seconds))
