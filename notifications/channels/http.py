"""One pooled HTTP client for every provider, and what can happen on the wire.

No retries, no redirects, no proxy or netrc from the environment; a request has a deadline and an
answer has a cap. What failed before the first byte left is told from what failed after: only the
latter may have been delivered.
"""

import http.client
import io
import os
import re
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    ReadTimeoutError,
)
from urllib3.util.url import parse_url

from notifyproject.outside.deadlines import Deadline, DeadlineReader

from ..errors import ChannelUnavailable, FailureCode, ProviderError, TransientError

CONNECT_TIMEOUT = 3.0
TOTAL_TIMEOUT = 15.0
MAX_BODY = 64 * 1024
FIRST_REFUSAL = 300
"""From this status on, an answer says that the message was not taken."""
MAX_RETRY_AFTER = 24 * 3600.0
"""A provider that asks for a longer pause is taken at a day."""
POOL_SIZE = 64
KEEP_ALIVE: Sequence[tuple[int, int, int]] = (
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)
"""Firewalls forget a connection that lies idle: what is sent on it then has an unknown outcome."""
EXCERPT_LENGTH = 1000
UNUSABLE = "The provider's address or key, as configured, cannot be used."

# Every part is bounded or begins where a word does, so that no text takes long.
_GAP = r"[\s().-]{0,3}"
_ADDRESS = re.compile(
    rf"""
    (?P<harmless>
        (?<![\d+.-])
        (?:
            [245]\d\d[ -][245]\.\d{{1,3}}\.\d{{1,3}}  # a mail server's reply codes
            | (?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])  # a date
        )
        (?![.-]?\d)
    )
    | (?:"[^"\n]{{1,64}}"|(?<![^\s"<>@])[^\s"<>@]+)(?:@|%40)[^\s"'<>]+
    | (?:\+(?=(?:\d{_GAP}){{7}})|(?=(?:\d{_GAP}){{8}}))\d(?:{_GAP}\d)+
    """,
    re.VERBOSE,
)
_wire = threading.local()
_pools: dict[int, urllib3.PoolManager] = {}
_origins: WeakValueDictionary[tuple[int, str], urllib3.HTTPConnectionPool] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A provider's whole answer."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        """The body, whatever its encoding."""
        return self.body.decode(errors="replace")

    @property
    def excerpt(self) -> str:
        """The beginning of the body with addresses taken out, for the attempt's record."""
        return excerpt(self.text)


def redact(text: str) -> str:
    """Return ``text`` with everything that looks like an address or phone number taken out.

    A number of eight digits counts as one, with a plus before it one of seven; reply codes and
    dates do not.
    """
    return _ADDRESS.sub(lambda found: found["harmless"] or "[address]", text)


def excerpt(text: str) -> str:
    """Return the beginning of ``text`` without addresses, for the attempt's record."""
    # Cut afterwards: half an address looks like none.
    return redact(text)[:EXCERPT_LENGTH]


def post(
    url: str, *, body: bytes, headers: Mapping[str, str], timeout: float = TOTAL_TIMEOUT
) -> Response:
    """Send a POST and return the answer, whatever its status.

    Raises TransientError: not ambiguous when no byte has left (DNS, refused, TLS, connect timeout),
    ambiguous after that (no answer in ``timeout`` seconds, a cut answer, an acceptance of over
    64 KB). Raises ChannelUnavailable when the URL or a header, as configured, cannot be one.
    """
    if not url.startswith(("https://", "http://")):
        # The library would take it for http, and the key would go in clear text.
        raise ChannelUnavailable(UNUSABLE)
    _wire.used, _wire.deadline = False, Deadline.after(timeout)
    try:
        origin, path = _parted(url)
        answer = _pool_of(os.getpid(), origin).urlopen(
            "POST",
            path,
            body=body,
            headers=dict(headers),
            retries=False,
            timeout=urllib3.Timeout(connect=min(CONNECT_TIMEOUT, timeout), read=timeout),
            redirect=False,
            preload_content=False,
        )
    except (HTTPError, ValueError) as error:
        raise _failure(error) from error
    try:
        content = _read_capped(answer)
    finally:
        answer.release_conn()
    return Response(
        status=answer.status,
        headers={name.lower(): value for name, value in answer.headers.items()},
        body=content,
    )


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the pause in seconds a provider asks for: Retry-After in seconds or as a date.

    None without the header, with nonsense in it, or with a time that has passed.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), MAX_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return bounded_pause((moment - now).total_seconds())


def bounded_pause(seconds: float) -> float | None:
    """Return a pause between now and a day; None for one that is over."""
    return min(seconds, MAX_RETRY_AFTER) if seconds > 0 else None


def pool() -> urllib3.PoolManager:
    """Return this process's connection pool; a forked child gets one of its own."""
    return _pools.get(os.getpid()) or _pools.setdefault(os.getpid(), _new_pool())


@lru_cache(maxsize=100)
def _parted(url: str) -> tuple[str, str]:
    """Return a URL's origin, and the rest; raises ValueError or HTTPError."""
    parsed = parse_url(url)
    return parsed._replace(path=None, query=None, fragment=None).url, parsed.request_uri


def _pool_of(process_id: int, origin: str) -> urllib3.HTTPConnectionPool:
    """Return the connections to one origin, for as long as the process's pool keeps them."""
    found = _origins.get((process_id, origin)) or pool().connection_from_url(origin)
    return _origins.setdefault((process_id, origin), found)


class _DeadlineSocket:
    """What http.client needs of a socket to read a response from it."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(DeadlineReader(self._sock, self._deadline.left))


class _DeadlineResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        readable: Any = _DeadlineSocket(sock, _wire.deadline)
        super().__init__(readable, *args, **kwargs)


class _Watched(http.client.HTTPConnection):
    """A connection that notes when a request's first byte leaves, and keeps to its deadline."""

    response_class = _DeadlineResponse

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        # To look up a host may take any time, and whoever asked does not wait that long: after
        # the deadline somebody else may be sending the same.
        self.sock.settimeout(_wire.deadline.left())
        _wire.used = True
        super().send(data)


class _WatchedHTTP(_Watched, HTTPConnection):
    pass


class _WatchedHTTPS(_Watched, HTTPSConnection):
    pass


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _WatchedHTTP


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _WatchedHTTPS


def _new_pool() -> urllib3.PoolManager:
    manager = urllib3.PoolManager(
        num_pools=20, maxsize=POOL_SIZE, block=False, retries=False, socket_options=KEEP_ALIVE
    )
    manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
    return manager


def _read_capped(answer: urllib3.BaseHTTPResponse) -> bytes:
    """Return the body; of a refusal as much as is read, for its status says what matters."""
    content = b""
    try:
        while chunk := answer.read1(MAX_BODY):
            content += chunk
            if len(content) > MAX_BODY:
                answer.close()
                if answer.status >= FIRST_REFUSAL:
                    return content[:MAX_BODY]
                raise TransientError(
                    "The provider's answer is too long to read.",
                    code=FailureCode.CONNECTION_LOST,
                    ambiguous=True,
                )
    except HTTPError as error:
        answer.close()
        raise _failure(error) from error
    return content


def _failure(error: Exception) -> ProviderError:
    if not _wire.used:
        return _not_sent(error)
    if isinstance(error, ReadTimeoutError) or _wire.deadline.is_over:
        return TransientError(
            "The provider did not answer in time.", code=FailureCode.TIMEOUT, ambiguous=True
        )
    return TransientError(
        "The connection broke before the provider had answered.",
        code=FailureCode.CONNECTION_LOST,
        ambiguous=True,
    )


def _not_sent(error: Exception) -> ProviderError:
    if isinstance(error, ValueError):
        # A line break in a key, a host that is none. The error repeats the key: we do not.
        return ChannelUnavailable(UNUSABLE)
    reasons: dict[type[Exception], str] = {
        ConnectTimeoutError: "The provider did not take the connection in time.",
        NameResolutionError: "The provider's host name has no address.",
        urllib3.exceptions.SSLError: "No secure connection to the provider.",
    }
    reason = reasons.get(type(error), "The provider refused the connection.")
    if _wire.deadline.is_over:
        reason = reasons[ConnectTimeoutError]
    return TransientError(reason, code=FailureCode.CONNECTION_FAILED)
