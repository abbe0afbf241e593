"""Fetching a file over https from a host whose name somebody else chose.

Nothing private is ever connected to: the name is resolved here, every address it has must be a
public one, and the connection goes to the very address that was looked at, not to the name again.
The certificate is checked against the name. Redirects are not followed, nothing is unpacked, and
neither cookies nor credentials nor a proxy of the environment come into it.
"""

import http.client
import io
import ipaddress
import socket
import ssl
from functools import cache, partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

from ..attachments import HTTPS_PORT, host_of
from ..errors import FailureCode, PermanentError, TransientError
from .deadlines import Deadline, DeadlineReader
from .http import CONNECT_TIMEOUT

UNAVAILABLE = FailureCode.ATTACHMENT_UNAVAILABLE
CHUNK = 64 * 1024
LATER = frozenset({408, 425, 429})
"""Statuses from 400 to 499 that may be others another time."""
FIRST_SERVER_ERROR = 500
HEADERS = {"User-Agent": "notifyproject", "Accept": "*/*", "Connection": "close"}
_IN_A_PATH = "/%:@!$&'()*+,;=~-._"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))
"""6to4 and Teredo: an IPv4 address is hidden in them."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class DownloadFailed(TransientError):
    """A file could not be fetched just now; nothing of the message has left.

    It says nothing about the provider that the message was to go to.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code=UNAVAILABLE)


def fetch(url: str, *, limit: int, deadline: Deadline) -> bytes:
    """Return what is at an https URL: at least one byte, at most ``limit``.

    Raises DownloadFailed when it may work later, PermanentError when it will not: the code is
    TOO_LARGE for more than ``limit``. Their reasons begin in lower case and hold no part of the
    URL.
    """
    host = host_of(url)
    if host is None:
        raise PermanentError("its address is not one", code=UNAVAILABLE)
    connection = _Connection(host, deadline)
    try:
        connection.request("GET", _target(url), headers=HEADERS)
        # The answer holds the connection open, too.
        with connection.getresponse() as answer:
            _check(answer, limit)
            return _content(answer, limit)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadFailed(_reason(error, deadline)) from error
    except ValueError as error:
        raise PermanentError("its address is not one", code=UNAVAILABLE) from error
    finally:
        connection.close()


def is_public(address: Address) -> bool:
    """Return whether an address is one of the public Internet, and of one machine."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    hidden = address.ipv4_mapped
    if address in _NAT64:
        hidden = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if hidden is not None:
        return is_public(hidden)
    is_tunnel = any(address in network for network in _TUNNELS)
    return address.is_global and address in _UNICAST and not is_tunnel


def addresses_of(host: str) -> list[tuple[str, int]]:
    """Return where to connect to for a host.

    Raises PermanentError if any of its addresses is not public: such a name is a mistake or a
    trap. Raises OSError if it has none.
    """
    # It may take any time, and nothing hurries it; the deadline is looked at again after it.
    found = socket.getaddrinfo(host, HTTPS_PORT, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(is_public(ipaddress.ip_address(a.partition("%")[0])) for a in addresses):
        raise PermanentError("its host is not on the public Internet", code=UNAVAILABLE)
    return [(address, HTTPS_PORT) for address in addresses]


class _DeadlineSocket:
    """What http.client needs of a socket to read a response from it."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(DeadlineReader(self._sock, self._deadline.left))


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: Deadline, **options: Any) -> None:
        readable: Any = _DeadlineSocket(sock, deadline)
        super().__init__(readable, *args, **options)


class _Connection(http.client.HTTPSConnection):
    """A connection to an address that was looked at, within a time limit."""

    def __init__(self, host: str, deadline: Deadline) -> None:
        super().__init__(host, HTTPS_PORT)
        self.response_class: Any = partial(_Response, deadline=deadline)
        self._deadline = deadline

    def connect(self) -> None:
        plain = _reach(addresses_of(self.host), self._deadline)
        try:
            plain.settimeout(self._deadline.left())
            # A connection that is cut off must not look like one that is over.
            self.sock: Any = _context().wrap_socket(
                plain, server_hostname=self.host, suppress_ragged_eofs=False
            )
        except OSError:
            plain.close()
            raise


def _reach(addresses: list[tuple[str, int]], deadline: Deadline) -> socket.socket:
    """Return a connection to the first address that takes one; raises OSError."""
    failure = OSError("the host has no address")
    for address in addresses:
        try:
            return socket.create_connection(address, timeout=min(CONNECT_TIMEOUT, deadline.left()))
        except OSError as error:
            failure = error
    raise failure


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _target(url: str) -> str:
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe=_IN_A_PATH)
    return f"{path}?{quote(parts.query, safe=_IN_A_PATH + '?')}" if parts.query else path


def _check(answer: http.client.HTTPResponse, limit: int) -> None:
    """Raise the error an answer is, by its head alone, if it is not the file."""
    status = answer.status
    if status in LATER or status >= FIRST_SERVER_ERROR:
        raise DownloadFailed(f"its server cannot give it now ({status})")
    if status != HTTPStatus.OK:
        raise PermanentError(f"it is not there ({status})", code=UNAVAILABLE)
    if answer.getheader("Content-Encoding", "identity").lower() != "identity":
        raise PermanentError("its server gives it only packed", code=UNAVAILABLE)
    if answer.length is not None and answer.length > limit:
        raise _too_large()


def _content(answer: http.client.HTTPResponse, limit: int) -> bytes:
    content = bytearray()
    while chunk := answer.read1(CHUNK):
        content += chunk
        if len(content) > limit:
            raise _too_large()
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    if not content:
        raise PermanentError("it is empty", code=UNAVAILABLE)
    return bytes(content)


def _too_large() -> PermanentError:
    return PermanentError("it is larger than is allowed", code=FailureCode.TOO_LARGE)


def _reason(error: Exception, deadline: Deadline) -> str:
    if deadline.is_over:
        return "its server did not give it in time"
    if isinstance(error, socket.gaierror):
        return "its host has no address"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its server's certificate is not valid"
    if isinstance(error, http.client.HTTPException):
        return "its server broke off"
    return "its server cannot be reached or broke off"
