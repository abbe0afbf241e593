"""SSRF-safe connections with a deadline.

All addresses of a host must be public. A connection uses one of them, without another DNS lookup.
A response that ends before its framing says so is an error.
"""

import http.client
import io
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))
"""6to4 and Teredo: they embed an IPv4 address."""
_RESERVED = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("3fff::/20"))
"""Special purposes in IANA's registries that Python doesn't know or takes for public."""
MAX_INTERIM_RESPONSES = 10
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"


class NotPublicError(Exception):
    """A host has an address that is not public."""


def is_public(address: Address) -> bool:
    """Return whether an address is public and unicast."""
    if any(address in network for network in _RESERVED):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    embedded = address.ipv4_mapped
    if address in _NAT64:
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if embedded is not None:
        return is_public(embedded)
    is_tunnel = any(address in network for network in _TUNNELS)
    return address.is_global and address in _UNICAST and not is_tunnel


def request_target(path: str, query: str) -> str:
    """Return the target of a request line, percent-encoded where necessary."""
    quoted = quote(path or "/", safe=_PATH_SAFE)
    return f"{quoted}?{quote(query, safe=_PATH_SAFE + '?')}" if query else quoted


def addresses_of(host: str, port: int) -> list[tuple[str, int]]:
    """Resolve a host to its public addresses. Raises NotPublicError or OSError."""
    return _resolve(host, port, is_public)


def _resolve(host: str, port: int, is_allowed: Callable[[Address], bool]) -> list[tuple[str, int]]:
    # The resolver has no timeout, so the deadline is checked again afterwards.
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(is_allowed(ipaddress.ip_address(a.partition("%")[0])) for a in addresses):
        raise NotPublicError("the host is not on the public Internet")
    return [(address, port) for address in addresses]


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of an exchange, on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline that is ``seconds`` from now."""
        return cls(time.monotonic() + seconds)

    @property
    def is_expired(self) -> bool:
        """Whether no time is left."""
        return self.seconds_left <= 0

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, and less than 0 after it."""
        return self.at - time.monotonic()

    def remaining(self) -> float:
        """Return the seconds left. Raises TimeoutError if there are none."""
        seconds = self.seconds_left
        if seconds <= 0:
            raise TimeoutError("the time limit is over")
        return seconds


class DeadlineReader(io.RawIOBase):
    """Reads from a socket until a deadline, and at most ``allowance`` bytes unless it is None."""

    def __init__(
        self, sock: socket.socket, remaining: Callable[[], float], *, allowance: int | None = None
    ) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._remaining = remaining
        self.allowance = allowance

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read once. Raises TimeoutError at the deadline, and OSError after the allowance."""
        if self.allowance is not None and self.allowance <= 0:
            raise OSError("the response is larger than allowed")
        self._sock.settimeout(self._remaining())
        count = self._raw.readinto(buffer)
        if self.allowance is not None:
            self.allowance -= count or 0
        return count

    def close(self) -> None:
        """Close the input, but not the socket."""
        self._raw.close()
        super().close()


class _DeadlineSocket:
    """The part of a socket that http.client needs to read a response."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return _CompleteLineReader(DeadlineReader(self._sock, self._deadline.remaining))


class _CompleteLineReader(io.BufferedReader):
    """Rejects incomplete lines, which http.client accepts at the connection's end."""

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line.endswith(b"\n") and len(line) != size:
            raise http.client.IncompleteRead(line)
        return line


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **options: Any) -> None:
        readable: Any = _DeadlineSocket(sock, deadline)
        super().__init__(readable, *args, **options)

    def begin(self) -> None:
        """Read the head of the final response. Interim ones before it say nothing."""
        super().begin()
        # http.client skips 100 alone, and takes 103 for the final response.
        for _ in range(MAX_INTERIM_RESPONSES):
            if not HTTPStatus.PROCESSING <= self.status < HTTPStatus.OK:
                return
            unread: Any = None
            self.headers = unread
            super().begin()
        raise http.client.HTTPException("too many interim responses")


class Connection(http.client.HTTPConnection):
    """An HTTPS connection with a deadline, for one request. Raises NotPublicError and OSError."""

    # Not http.client.HTTPSConnection, which loads all certificates for each connection.
    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int, *, deadline: Deadline, connect_timeout: float) -> None:
        super().__init__(host, port)
        self.response_class: Any = partial(_Response, deadline=deadline)
        self._deadline = deadline
        self._connect_timeout = connect_timeout

    def connect(self) -> None:
        """Connect, and verify the host's certificate."""
        plain = self._connect_first(self._addresses())
        try:
            plain.settimeout(self._deadline.remaining())
            # A truncated connection must not look like a closed one: see tls_context().
            self.sock: Any = tls_context().wrap_socket(
                plain, server_hostname=self.host, suppress_ragged_eofs=False
            )
        except OSError:
            plain.close()
            raise

    def _addresses(self) -> list[tuple[str, int]]:
        return addresses_of(self.host, self.port)

    def send(self, data: Any) -> None:
        """Send a part of a request before the deadline."""
        if self.sock is not None:
            self.sock.settimeout(self._deadline.remaining())
        super().send(data)

    def _connect_first(self, addresses: list[tuple[str, int]]) -> socket.socket:
        failure = OSError("the host has no address")
        for address in addresses:
            timeout = min(self._connect_timeout, self._deadline.remaining())
            try:
                sock = socket.create_connection(address, timeout=timeout)
                # Head and body are separate writes: the body must not wait for the head's ACK.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                failure = error
            else:
                return sock
        raise failure


class ConfiguredConnection(Connection):
    """An HTTPS connection to a host of the settings, which may be in a private network."""

    def _addresses(self) -> list[tuple[str, int]]:
        return _resolve(self.host, self.port, lambda _address: True)


class PlainConnection(Connection):
    """An HTTP connection to this machine only, for a local stack."""

    default_port = http.client.HTTP_PORT

    def connect(self) -> None:
        """Connect. Raises NotPublicError for another machine."""
        loopback = _resolve(self.host, self.port, lambda address: address.is_loopback)
        self.sock = self._connect_first(loopback)


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context, in which only close_notify ends a connection without an error."""
    context = ssl.create_default_context()
    # Some Python releases set this option (3.11.2, not 3.11.7): OpenSSL 3 then reports the end
    # of TCP as the end of TLS. OpenSSL 1.1 has no such option and always distinguishes them.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    return context
