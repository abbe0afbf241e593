"""HTTP requests to providers by libcurl, as coroutines of the process's event loop.

libcurl follows no redirect, reads no proxy and no netrc from the environment, and sends nothing
twice. One thread drives all requests: a thread each would spend more CPU time on the interpreter
lock, 560 µs against 50 µs for each of 32 concurrent requests.
"""

import asyncio
import io
import re
import select
import ssl
import time
from collections import deque
from contextlib import suppress
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pycurl

from domain.errors import FailureCode, ProviderError, ProviderUnavailableError, TransientError

from .http import CONNECT_TIMEOUT, INVALID_CONFIGURATION, Request, Response

MAX_BODY = 64 * 1024
MAX_IDLE_SECONDS = 60
"""Connections and handles that were idle for longer are closed at the next request."""
MAX_HEADERS = 100
"""Header lines; providers send about twenty."""
MAX_HEADER_BYTES = 64 * 1024
MIN_REFUSAL_STATUS = 300
ABORT_TRANSFER = 0
MAX_ADDRESSES = 5
"""Addresses of a request that are tried, so that their name has the length of a host's."""
DEFAULT_PORTS = {"https": 443, "http": 80}
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
MAX_CONNECTIONS = 4_096
"""Connections that a process keeps open: no fewer than requests in flight to all providers."""
UNCHECKED_SECONDS = 1.5
"""Seconds for which libcurl reuses a connection unchecked; it checks after one second (8.23)."""
CLOSE_INTERVAL = 1.0
"""Seconds between checks of whether a discarded pool may be closed."""


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
        pycurl.MAXAGE_CONN: MAX_IDLE_SECONDS,
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
        self._is_pinned = False
        try:
            self._prepare(request)
        except (ValueError, pycurl.error) as error:
            # Such as a line break in a key. The error quotes the key, so its text is dropped.
            raise ProviderUnavailableError(INVALID_CONFIGURATION) from error

    def _prepare(self, request: Request) -> None:
        if not request.url.startswith(("https://", "http://")):
            # libcurl would assume HTTP, and send the key in clear text.
            raise ValueError("no scheme")
        handle = self._handle
        handle.setopt(pycurl.URL, _reject_control_characters(request.url))
        lines = map(_reject_control_characters, map(": ".join, request.headers.items()))
        handle.setopt(pycurl.HTTPHEADER, [*(line.encode("latin-1") for line in lines), b"Expect:"])
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, int(CONNECT_TIMEOUT * 1000))
        if request.connect_to:
            self._pin(request)
        # libcurl silently repeats a request if a reused connection breaks without a response, even
        # if the server read all of it. It can't if a function supplies the body without a way to
        # rewind it.
        handle.setopt(pycurl.POST if request.body is not None else pycurl.HTTPGET, 1)
        handle.setopt(pycurl.POSTFIELDSIZE_LARGE, len(request.body or b""))
        handle.setopt(pycurl.READFUNCTION, self._read_body)
        handle.setopt(pycurl.HEADERFUNCTION, self._receive_header)
        handle.setopt(pycurl.WRITEFUNCTION, self._receive_body)

    def _pin(self, request: Request) -> None:
        """Connect to the request's addresses, whichever answers first."""
        # A name that only these addresses have, and no name server knows: a connection is used
        # again for the same addresses alone, and nothing is looked up.
        addresses = request.connect_to[:MAX_ADDRESSES]
        name = ".".join((*(re.sub(r"[.:]", "-", address) for address in addresses), "invalid"))
        parts = urlsplit(request.url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        self._is_pinned = True
        self._handle.setopt(
            pycurl.RESOLVE, [f"+{name}:{port}:{','.join(map(_in_brackets, addresses))}"]
        )
        self._handle.setopt(pycurl.CONNECT_TO, [f"::{name}:"])

    def outcome(self, code: int) -> Response | ProviderError:
        """Return the response or error of an ended transfer. ``code`` is libcurl's result code."""
        status = self._handle.getinfo(pycurl.RESPONSE_CODE)
        is_refusal = self._has_headers and status >= MIN_REFUSAL_STATUS
        if code == pycurl.E_OK or is_refusal:
            # The body of a rejection may be incomplete, because its status suffices.
            body = b"".join(self._body_parts)[:MAX_BODY]
            lines = (line.decode("latin-1").partition(":") for line in self._header_lines)
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
        if self._is_pinned:
            self._handle.unsetopt(pycurl.CONNECT_TO)
            self._handle.unsetopt(pycurl.RESOLVE)

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


def _in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


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


async def send(request: Request) -> Response:
    """Send a request and return the response, whatever its status.

    Raises TransientError, which is ambiguous if a byte was sent, or ProviderUnavailableError for an
    invalid URL or header.
    """
    outcome = await _current_pool().start(request)
    if isinstance(outcome, ProviderError):
        raise outcome
    return outcome


class _ConnectionPool:
    """The connections of an event loop, and their active transfers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, MAX_CONNECTIONS)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._timer: asyncio.Handle | None = None
        self._epoll = select.epoll()
        self._registered: set[int] = set()
        """Sockets that were registered with epoll. The kernel removes those that are closed."""
        self._watched: set[int] = set()
        """Sockets for which libcurl waits."""
        self._new: dict[pycurl.Curl, float] = {}
        """Handles whose transfer libcurl has not begun, and when it must end."""
        loop.add_reader(self._epoll.fileno(), self._handle_events)
        self._handles: deque[tuple[float, pycurl.Curl]] = deque()
        """Idle handles and when each was last used, the longest idle first."""
        self._active: dict[pycurl.Curl, tuple[asyncio.Future[Response | ProviderError], Transfer]]
        self._active = {}
        self._idle: dict[int, float] = {}
        """When each idle connection was last used, by socket."""
        self._is_checked = False
        """Whether idle connections were checked in this run of the loop."""

    def start(self, request: Request) -> asyncio.Future[Response | ProviderError]:
        """Start a request and return the future of its outcome. Raises ProviderError."""
        handle = self._handles.pop()[1] if self._handles else new_handle()
        try:
            transfer = Transfer(handle, request)
        except ProviderError:
            handle.close()
            raise
        outcome = self._loop.create_future()
        self._active[handle] = outcome, transfer
        self._multi.add_handle(handle)
        if not self._new:
            # One call begins all transfers of this run of the loop.
            self._loop.call_soon(self._proceed, pycurl.SOCKET_TIMEOUT, 0)
        self._new[handle] = time.monotonic() + request.timeout
        return outcome

    def has_dropped_connection(self) -> bool:
        """Return whether a server has closed a connection that was used a moment ago.

        libcurl checks a connection only if it was idle for over UNCHECKED_SECONDS.
        """
        if self._is_checked or not self._idle:
            return False
        self._is_checked = True
        self._loop.call_soon(self._expect_check)
        oldest = time.monotonic() - UNCHECKED_SECONDS
        for number in [number for number, at in self._idle.items() if at < oldest]:
            del self._idle[number]
        recent = select.poll()
        for number in self._idle:
            recent.register(number, select.POLLIN)
        # POLLNVAL alone: libcurl has closed it itself.
        return any(event & select.POLLIN for _, event in recent.poll(0))

    def close_when_idle(self) -> None:
        """Close all connections as soon as no transfer is active."""
        if self._active:
            self._loop.call_later(CLOSE_INTERVAL, self.close_when_idle)
            return
        self._close_handles(idle_since=float("inf"))
        self._multi.close()
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _expect_check(self) -> None:
        self._is_checked = False

    def _watch(self, events: int, number: int, _multi: object, _data: object) -> None:
        # Called by libcurl when it wants to wait for other events of a socket.
        if events == pycurl.POLL_REMOVE:
            # It stays registered, because the next request probably uses its connection.
            self._watched.discard(number)
            return
        self._watched.add(number)
        self._idle.pop(number, None)
        wanted = (select.EPOLLIN if events & pycurl.POLL_IN else 0) | (
            select.EPOLLOUT if events & pycurl.POLL_OUT else 0
        )
        if number in self._registered:
            # It has left if this is a new connection with the number of a closed one.
            with suppress(FileNotFoundError):
                self._epoll.modify(number, wanted)
                return
        self._epoll.register(number, wanted)
        self._registered.add(number)

    def _handle_events(self) -> None:
        for number, event in self._epoll.poll(0):
            if number not in self._watched:
                # The server has closed an idle connection, which libcurl notices at its next use.
                # An earlier event of this poll may have made libcurl close the socket.
                self._registered.discard(number)
                with suppress(OSError):
                    self._epoll.unregister(number)
                continue
            # After an error or a hang-up, libcurl tries both and finds out.
            self._proceed(
                number,
                (pycurl.CSELECT_IN if event & ~select.EPOLLOUT else 0)
                | (pycurl.CSELECT_OUT if event & ~select.EPOLLIN else 0),
            )

    def _set_timer(self, milliseconds: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if milliseconds >= 0:
            self._timer = self._loop.call_later(
                milliseconds / 1000, self._proceed, pycurl.SOCKET_TIMEOUT, 0
            )

    def _proceed(self, number: int, events: int) -> None:
        self._limit_new()
        self._multi.socket_action(number, events)
        remaining = 1
        while remaining:
            remaining, done, failed = self._multi.info_read()
            for handle in done:
                self._finish(handle, pycurl.E_OK)
            for handle, code, _ in failed:
                self._finish(handle, code)

    def _limit_new(self) -> None:
        """Set the timeouts of transfers that are about to begin, to what the loop has left them."""
        new, self._new = self._new, {}
        for handle, ends_at in new.items():
            left = ends_at - time.monotonic()
            if left > 0:
                handle.setopt(pycurl.TIMEOUT_MS, max(int(left * 1000), 1))
            else:
                self._end(handle, _unsent_error(pycurl.E_OPERATION_TIMEDOUT))

    def _finish(self, handle: pycurl.Curl, code: int) -> None:
        self._end(handle, self._active[handle][1].outcome(code))

    def _end(self, handle: pycurl.Curl, result: Response | ProviderError) -> None:
        outcome, transfer = self._active.pop(handle)
        if not outcome.done():
            outcome.set_result(result)
        transfer.release()
        number = handle.getinfo(pycurl.ACTIVESOCKET)
        self._multi.remove_handle(handle)
        now = time.monotonic()
        # The call that ended it may have begun the next request on its connection.
        if number >= 0 and number not in self._watched:
            self._idle[number] = now
        self._handles.append((now, handle))
        self._close_handles(idle_since=now - MAX_IDLE_SECONDS)

    def _close_handles(self, *, idle_since: float) -> None:
        # A handle has 45 kB: those of a burst of a thousand requests would keep 45 MB.
        while self._handles and self._handles[0][0] < idle_since:
            self._handles.popleft()[1].close()


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _ConnectionPool] = WeakKeyDictionary()


def _current_pool() -> _ConnectionPool:
    """Return the running loop's pool: a new one once a connection of the last was dropped."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is not None and pool.has_dropped_connection():
        pool.close_when_idle()
        pool = None
    if pool is None:
        pool = _pools[loop] = _ConnectionPool(loop)
    return pool


async def close_idle_connections() -> None:
    """Close the running event loop's connections once its active requests have ended."""
    pool = _pools.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        pool.close_when_idle()
