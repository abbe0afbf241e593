"""A connection to a host whose name somebody else chose, to an address that was looked at.

The name is resolved once, every address it has must be a public one, and the connection goes to
the very address that was looked at, not to the name again. The certificate is checked against the
name. Redirects are not followed, and neither cookies nor credentials nor a proxy of the environment
come into it.
"""

import http.client
import io
import socket
import ssl
from functools import cache, partial
from typing import Any

from .addresses import addresses_of, loopback_of
from .deadlines import Deadline, DeadlineReader


class _DeadlineSocket:
    """What http.client needs of a socket to read a response from it."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return _WholeLines(DeadlineReader(self._sock, self._deadline.left))


class _WholeLines(io.BufferedReader):
    """A response's input without half a line.

    http.client takes the end of the connection for the end of a head or of the last chunk, and the
    first digit of a chunk's size for all of it.
    """

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line.endswith(b"\n") and len(line) != size:
            raise http.client.IncompleteRead(line)
        return line


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **options: Any) -> None:
        readable: Any = _DeadlineSocket(sock, deadline)
        super().__init__(readable, *args, **options)


class Connection(http.client.HTTPConnection):
    """A connection by https, within a time limit. It is for one request.

    ``connect_timeout``: seconds that each address has to take it. Connecting raises NotPublic, and
    OSError as any connection does.
    """

    # The library's own class reads all certificates of the system anew for each connection.
    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int, *, deadline: Deadline, connect_timeout: float) -> None:
        super().__init__(host, port)
        self.response_class: Any = partial(_Response, deadline=deadline)
        self._deadline = deadline
        self._connect_timeout = connect_timeout

    def connect(self) -> None:
        """Connect, and see that it is the host."""
        plain = self._reach(addresses_of(self.host, self.port))
        try:
            plain.settimeout(self._deadline.left())
            # A connection that is cut off must not look like one that is over: see trust().
            self.sock: Any = trust().wrap_socket(
                plain, server_hostname=self.host, suppress_ragged_eofs=False
            )
        except OSError:
            plain.close()
            raise

    def send(self, data: Any) -> None:
        """Send some of a request, in what time is left."""
        if self.sock is not None:
            self.sock.settimeout(self._deadline.left())
        super().send(data)

    def _reach(self, addresses: list[tuple[str, int]]) -> socket.socket:
        """Return a connection to the first address that takes one; raises OSError."""
        failure = OSError("the host has no address")
        for address in addresses:
            timeout = min(self._connect_timeout, self._deadline.left())
            try:
                reached = socket.create_connection(address, timeout=timeout)
                # The head of a request leaves before its body: neither waits for the other.
                reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                failure = error
            else:
                return reached
        raise failure


class PlainConnection(Connection):
    """The same without encryption, and to nobody but this machine: for a stack that runs on one."""

    default_port = http.client.HTTP_PORT

    def connect(self) -> None:
        """Connect to this machine; raises NotPublic for any other."""
        self.sock = self._reach(loopback_of(self.host, self.port))


@cache
def trust() -> ssl.SSLContext:
    """Return whose certificates are believed, and how TLS ends: with a close_notify alone."""
    context = ssl.create_default_context()
    # Some releases of Python set it (3.11.2 does, 3.11.7 does not): OpenSSL 3 then reports the end
    # of TCP as the end of TLS. OpenSSL 1.1 has no such option and always tells the two apart.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    return context
