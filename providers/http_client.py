"""HTTP requests to providers by libcurl, one or many concurrently in one thread.

libcurl follows no redirect, reads no proxy or netrc from the environment, and repeats no request.
One thread drives all requests of a round. With a thread for each of 32 concurrent requests, each
request would cost 560 µs instead of 50 µs, because of the interpreter lock.
"""

import io
import os
import re
import select
import ssl
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Generic, Self, TypeVar

import pycurl

from domain.errors import FailureCode, ProviderError, ProviderUnavailableError, TransientError

from .http import CONNECT_TIMEOUT, INVALID_CONFIGURATION, TOTAL_TIMEOUT, Exchange, Request, Response

MAX_BODY = 64 * 1024
MAX_HEADERS = 100
"""Header lines; providers send about twenty."""
MAX_HEADER_BYTES = 64 * 1024
MIN_REFUSAL_STATUS = 300
ABORT_TRANSFER = 0
_STATUS_LINE = b"HTTP/"
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")
_TLS_ERRORS = frozenset(
    {
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER,
        pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_INVALIDCERTSTATUS,
    }
)
_URL_ERRORS = frozenset({pycurl.E_URL_MALFORMAT, pycurl.E_UNSUPPORTED_PROTOCOL})


def new_handle() -> pycurl.Curl:
    """Return a libcurl handle with the options that all requests share."""
    handle = pycurl.Curl()
    options = {
        pycurl.NOSIGNAL: 1,
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.PROXY: "",
        pycurl.NOPROXY: "*",
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        # No compression is requested; a compressed response is decompressed all the same.
        pycurl.ACCEPT_ENCODING: "identity",
        pycurl.SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
        # Firewalls forget idle connections, which makes the next request ambiguous.
        pycurl.TCP_KEEPALIVE: 1,
        pycurl.TCP_KEEPIDLE: 30,
        pycurl.TCP_KEEPINTVL: 10,
    }
    for option, value in options.items():
        handle.setopt(option, value)
    verify_paths = ssl.get_default_verify_paths()
    # The file is preferred: libcurl reads it once for many connections, a folder for each.
    if verify_paths.cafile:
        handle.setopt(pycurl.CAINFO, verify_paths.cafile)
    elif verify_paths.capath:
        handle.setopt(pycurl.CAPATH, verify_paths.capath)
    return handle


class Transfer:
    """An active request, and what has been received of its response."""

    def __init__(self, handle: pycurl.Curl, request: Request) -> None:
        """Prepare ``handle``. Raises ProviderUnavailableError for an invalid request."""
        self._handle = handle
        self._body = io.BytesIO(request.body or b"")
        self._may_have_sent = False
        self._has_headers = False
        """Whether all headers were received, so that the status is final."""
        self._header_lines: list[bytes] = []
        self._body_parts: list[bytes] = []
        self._body_bytes_left, self._header_bytes_left = MAX_BODY, MAX_HEADER_BYTES
        try:
            self._prepare(request)
        except (ValueError, pycurl.error) as error:
            # Such as a line break in a key. The error quotes the key, so its text is dropped.
            raise ProviderUnavailableError(INVALID_CONFIGURATION) from error

    def _prepare(self, request: Request) -> None:
        if not request.url.startswith(("https://", "http://")):
            # libcurl would assume HTTP, and send the key in clear text.
            raise ValueError("no scheme")
        handle, milliseconds = self._handle, max(int(request.timeout * 1000), 1)
        handle.setopt(pycurl.URL, _reject_control_characters(request.url))
        lines = map(_reject_control_characters, map(": ".join, request.headers.items()))
        handle.setopt(pycurl.HTTPHEADER, [*(line.encode("latin-1") for line in lines), b"Expect:"])
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, min(int(CONNECT_TIMEOUT * 1000), milliseconds))
        handle.setopt(pycurl.TIMEOUT_MS, milliseconds)
        # libcurl silently repeats a request if a reused connection breaks without a response, even
        # if the server read all of it. It can't if a function supplies the body without a way to
        # rewind it.
        handle.setopt(pycurl.POST if request.body is not None else pycurl.HTTPGET, 1)
        handle.setopt(pycurl.POSTFIELDSIZE_LARGE, len(request.body or b""))
        handle.setopt(pycurl.READFUNCTION, self._read_body)
        handle.setopt(pycurl.HEADERFUNCTION, self._receive_header)
        handle.setopt(pycurl.WRITEFUNCTION, self._receive_body)

    def outcome(self, code: int) -> Response | ProviderError:
        """Return the response or error of an ended transfer. ``code`` is libcurl's result code."""
        status = self._handle.getinfo(pycurl.RESPONSE_CODE)
        is_refusal = self._has_headers and status >= MIN_REFUSAL_STATUS
        if code == pycurl.E_OK or is_refusal:
            # The body of a rejection may be incomplete, because its status suffices.
            body = b"".join(self._body_parts)[:MAX_BODY]
            lines = (one.decode("latin-1").partition(":") for one in self._header_lines)
            headers = {name.strip().lower(): text.strip() for name, colon, text in lines if colon}
            return Response(status=status, headers=headers, body=body)
        if not self._may_have_sent and not self._handle.getinfo(pycurl.REQUEST_SIZE):
            return _unsent_error(code)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return TransientError(
                "The provider did not respond in time.", code=FailureCode.TIMEOUT, is_ambiguous=True
            )
        reason = "The connection closed before the response."
        if self._body_bytes_left < 0:
            reason = "The response is too large."
        return TransientError(reason, code=FailureCode.CONNECTION_LOST, is_ambiguous=True)

    def release(self) -> None:
        """Free the memory of request and response, since the handle may stay idle for hours."""
        self._body = io.BytesIO()
        self._header_lines, self._body_parts = [], []
        self._handle.unsetopt(pycurl.HTTPHEADER)

    def _read_body(self, size: int) -> bytes:
        self._may_have_sent = True
        return self._body.read(size)

    def _receive_header(self, line: bytes) -> int | None:
        if line.startswith(_STATUS_LINE):
            self._header_lines.clear()
            self._header_bytes_left, self._has_headers = MAX_HEADER_BYTES, False
        elif not line.strip():
            self._has_headers = True
        self._header_lines.append(line)
        self._header_bytes_left -= len(line)
        is_too_large = self._header_bytes_left < 0 or len(self._header_lines) > MAX_HEADERS
        return ABORT_TRANSFER if is_too_large else None

    def _receive_body(self, part: bytes) -> int | None:
        self._body_parts.append(part)
        self._body_bytes_left -= len(part)
        return ABORT_TRANSFER if self._body_bytes_left < 0 else None


def _reject_control_characters(text: str) -> str:
    if _CONTROL_CHARACTERS.search(text):
        raise ValueError("a control character")
    return text


def _unsent_error(code: int) -> ProviderError:
    if code in _URL_ERRORS:
        return ProviderUnavailableError(INVALID_CONFIGURATION)
    if code == pycurl.E_COULDNT_RESOLVE_HOST:
        reason = "DNS lookup of the provider failed."
    elif code in _TLS_ERRORS:
        reason = "TLS connection to the provider failed."
    elif code == pycurl.E_OPERATION_TIMEDOUT:
        reason = "Connecting to the provider timed out."
    else:
        reason = "The provider refused the connection."
    return TransientError(reason, code=FailureCode.CONNECTION_FAILED)


T = TypeVar("T")
MAX_IDLE_CONNECTIONS = 64
"""Maximum of idle connections in a pool. Each thread that is sending has a pool."""
UNCHECKED_SECONDS = 1.5
"""Connections used more recently, in seconds, are checked here: libcurl 8.23 checks older ones."""
MAX_IDLE_SECONDS = 60.0
"""Seconds after which an unused pool is closed."""
MAX_POLL_SECONDS = 1.0
"""Longest wait for a socket event before libcurl is polled."""
NO_SOCKET_WAIT = 0.01
"""Seconds to wait while there is no socket, such as during a DNS lookup."""


def post(
    url: str, *, body: bytes, headers: Mapping[str, str], timeout: float = TOTAL_TIMEOUT
) -> Response:
    """Send a POST and return the response, whatever its status.

    Raises TransientError, which is ambiguous if a byte was sent, or ProviderUnavailableError for an
    invalid URL or header.
    """

    def exchange() -> Exchange[Response]:
        return (yield Request(url=url, headers=headers, body=body, timeout=timeout))

    return run_exchange(exchange())


def run_exchange(exchange: Exchange[T]) -> T:
    """Run one exchange. Return its result or raise its exception."""
    (outcome,) = run_exchanges([exchange])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def run_exchanges(exchanges: Iterable[Exchange[T]]) -> list[T | Exception]:
    """Run exchanges concurrently in this thread. Return the result or exception of each."""
    return _Exchanges(exchanges).run()


class _Exchanges(Generic[T]):
    def __init__(self, exchanges: Iterable[Exchange[T]]) -> None:
        self._exchanges = list(exchanges)
        self._outcomes: dict[int, T | Exception] = {}

    def run(self) -> list[T | Exception]:
        # Connections are acquired at the first request, so others keep the warm ones until then.
        with _PoolLease() as lease:
            for number, exchange in enumerate(self._exchanges):
                self._advance(lease, number, partial(next, exchange))
            while len(self._outcomes) < len(self._exchanges):
                for number, response in lease.pool.responses():
                    self._advance(lease, number, self._resume_step(number, response))
        return [self._outcomes[number] for number in range(len(self._exchanges))]

    def _resume_step(
        self, number: int, response: Response | ProviderError
    ) -> Callable[[], Request]:
        exchange = self._exchanges[number]
        if isinstance(response, ProviderError):
            return partial(exchange.throw, response)
        return partial(exchange.send, response)

    def _advance(self, lease: "_PoolLease", number: int, step: Callable[[], Request]) -> None:
        while True:
            try:
                request = step()
            except StopIteration as end:
                self._outcomes[number] = end.value
                return
            except Exception as error:
                # The caller handles the exception.
                self._outcomes[number] = error
                return
            refusal = lease.pool.start(number, request)
            if refusal is None:
                return
            step = self._resume_step(number, refusal)


class _ConnectionPool:
    """Connections and active transfers, used by one thread at a time."""

    def __init__(self) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, MAX_IDLE_CONNECTIONS)
        self._idle: list[pycurl.Curl] = []
        self._active: dict[pycurl.Curl, tuple[int, Transfer]] = {}
        self._sockets: set[int] = set()
        self._last_used_at = time.monotonic()

    def has_dropped_connection(self) -> bool:
        """Return whether a server closed a connection that libcurl would reuse unchecked."""
        if time.monotonic() - self._last_used_at > UNCHECKED_SECONDS:
            self._sockets.clear()
        watched = select.poll()
        for number in self._sockets:
            watched.register(number, select.POLLIN)
        return bool(watched.poll(0))

    def is_stale(self) -> bool:
        """Return whether the pool was unused for MAX_IDLE_SECONDS."""
        return time.monotonic() - self._last_used_at > MAX_IDLE_SECONDS

    def start(self, number: int, request: Request) -> ProviderError | None:
        """Start a request. Return an error if the request is invalid."""
        handle = self._idle.pop() if self._idle else new_handle()
        try:
            transfer = Transfer(handle, request)
        except ProviderError as error:
            handle.close()
            return error
        self._multi.add_handle(handle)
        self._active[handle] = number, transfer
        # The request's timeout starts now, not when the last request of the round has started.
        self._multi.perform()
        return None

    def responses(self) -> Iterator[tuple[int, Response | ProviderError]]:
        """Wait for activity, and yield the number and outcome of each completed transfer."""
        timeout_ms = self._multi.timeout()
        seconds = MAX_POLL_SECONDS if timeout_ms < 0 else min(timeout_ms / 1000, MAX_POLL_SECONDS)
        if self._multi.select(seconds) < 0:
            time.sleep(NO_SOCKET_WAIT)
        self._multi.perform()
        yield from list(self._completed())

    def close(self) -> None:
        """Abort active transfers and close all connections."""
        for handle in self._active:
            self._multi.remove_handle(handle)
            handle.close()
        for handle in self._idle:
            handle.close()
        self._active.clear()
        self._idle.clear()
        self._multi.close()

    def _completed(self) -> Iterator[tuple[int, Response | ProviderError]]:
        remaining = 1
        while remaining:
            remaining, done, failed = self._multi.info_read()
            ended = [(handle, pycurl.E_OK) for handle in done]
            ended += [(handle, code) for handle, code, _ in failed]
            for handle, code in ended:
                exchange, transfer = self._active.pop(handle)
                outcome = transfer.outcome(code)
                transfer.release()
                self._last_used_at = time.monotonic()
                if (descriptor := handle.getinfo(pycurl.ACTIVESOCKET)) >= 0:
                    self._sockets.add(descriptor)
                self._multi.remove_handle(handle)
                self._idle.append(handle)
                yield exchange, outcome


_pools: defaultdict[int, deque[_ConnectionPool]] = defaultdict(deque)
"""Idle pools of each process: a forked child must not use its parent's connections."""


class _PoolLease:
    """Lends a connection pool from its first use to the end of the ``with`` block."""

    def __init__(self) -> None:
        self._idle = _pools[os.getpid()]
        self._pool: _ConnectionPool | None = None

    @property
    def pool(self) -> _ConnectionPool:
        """The most recently used idle pool whose connections are alive, or a new pool."""
        if self._pool is None:
            with suppress(IndexError):
                while (pool := self._idle.pop()).has_dropped_connection():
                    pool.close()
                self._pool = pool
            self._pool = self._pool or _ConnectionPool()
        return self._pool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        if kind is not None:
            self._pool.close()
            return
        self._idle.append(self._pool)
        with suppress(IndexError):
            while self._idle[0].is_stale():
                self._idle.popleft().close()


def close_idle_connections() -> None:
    """Close this process's idle connections."""
    idle = _pools[os.getpid()]
    while idle:
        idle.pop().close()
