"""HTTP requests to providers by libcurl: one, or many at once in one thread.

libcurl follows no redirect, reads no proxy and no netrc from the environment, and sends nothing
twice. A request has a deadline and a response has a size limit. A failure before the first byte
left is distinct from a failure after it: only the latter may have been delivered.

One thread drives all requests of a round. A thread for each would spend more processor time waiting
for the interpreter than libcurl needs: 560 µs against 50 for each of 32 requests at once.
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
"""Lines; a provider sends some twenty."""


MAX_HEADER_BYTES = 64 * 1024


MIN_REFUSAL_STATUS = 300
"""From this status on, an answer says that the message was not taken."""


ABORT_TRANSFER = 0
"""What a callback returns instead of a number of bytes to end a transfer."""


_STATUS_LINE = b"HTTP/"


_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")


_DNS_ERRORS = frozenset({pycurl.E_COULDNT_RESOLVE_HOST})


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
    """Return a handle with all that is the same for every request."""
    handle = pycurl.Curl()
    options = {
        pycurl.NOSIGNAL: 1,
        pycurl.POST: 1,
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.PROXY: "",
        pycurl.NOPROXY: "*",
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        # Nothing packed is asked for; what comes packed all the same is unpacked.
        pycurl.ACCEPT_ENCODING: "identity",
        pycurl.SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
        # Firewalls forget a connection that lies idle: what is sent on it has an unknown outcome.
        pycurl.TCP_KEEPALIVE: 1,
        pycurl.TCP_KEEPIDLE: 30,
        pycurl.TCP_KEEPINTVL: 10,
    }
    for option, value in options.items():
        handle.setopt(option, value)
    verify_paths = ssl.get_default_verify_paths()
    # The file alone: libcurl reads it once for many connections, a folder for each.
    if verify_paths.cafile:
        handle.setopt(pycurl.CAINFO, verify_paths.cafile)
    elif verify_paths.capath:
        handle.setopt(pycurl.CAPATH, verify_paths.capath)
    return handle


class Transfer:
    """A request on its way, and as much of its answer as has come."""

    def __init__(self, handle: pycurl.Curl, request: Request) -> None:
        """Prepare ``handle``; raises ProviderUnavailableError for what cannot be a request."""
        self._handle = handle
        self._body = io.BytesIO(request.body)
        self._may_have_sent = False
        """Bytes may have left."""
        self._has_headers = False
        """All of the answer's headers have come, and so its status is no interim one."""
        self._header_lines: list[bytes] = []
        self._body_parts: list[bytes] = []
        self._body_bytes_left, self._header_bytes_left = MAX_BODY, MAX_HEADER_BYTES
        try:
            self._prepare(request)
        except (ValueError, pycurl.error) as error:
            # A line break in a key, a host that is none. The error repeats the key: we do not.
            raise ProviderUnavailableError(INVALID_CONFIGURATION) from error

    def _prepare(self, request: Request) -> None:
        if not request.url.startswith(("https://", "http://")):
            # libcurl would take it for http, and the key would go in clear text.
            raise ValueError("no scheme")
        handle, milliseconds = self._handle, max(int(request.timeout * 1000), 1)
        handle.setopt(pycurl.URL, _reject_control_characters(request.url))
        handle.setopt(
            pycurl.HTTPHEADER, [*map(_encode_header, request.headers.items()), b"Expect:"]
        )
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, min(int(CONNECT_TIMEOUT * 1000), milliseconds))
        handle.setopt(pycurl.TIMEOUT_MS, milliseconds)
        # libcurl repeats a request by itself if a connection that it used before breaks without an
        # answer, even if the server has read all of it. It cannot where the body is read from a
        # function and there is none to wind it back.
        handle.setopt(pycurl.POSTFIELDSIZE_LARGE, len(request.body))
        handle.setopt(pycurl.READFUNCTION, self._read_body)
        handle.setopt(pycurl.HEADERFUNCTION, self._receive_header)
        handle.setopt(pycurl.WRITEFUNCTION, self._receive_body)

    def outcome(self, code: int) -> Response | ProviderError:
        """Return what came of it: ``code`` is libcurl's, 0 if all went well."""
        status = self._handle.getinfo(pycurl.RESPONSE_CODE)
        is_refusal = self._has_headers and status >= MIN_REFUSAL_STATUS
        if code == pycurl.E_OK or is_refusal:
            # Of a refusal as much as has come and is read, for its status says what matters.
            body = b"".join(self._body_parts)[:MAX_BODY]
            return Response(status=status, headers=_parse_headers(self._header_lines), body=body)
        if not self._may_have_sent and not self._handle.getinfo(pycurl.REQUEST_SIZE):
            return _unsent_error(code)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return TransientError(
                "The provider did not answer in time.", code=FailureCode.TIMEOUT, is_ambiguous=True
            )
        return TransientError(
            "The answer is too long to read."
            if self._body_bytes_left < 0
            else "The connection broke before the provider had answered.",
            code=FailureCode.CONNECTION_LOST,
            is_ambiguous=True,
        )

    def release(self) -> None:
        """Forget what was said: the handle waits for its next request, maybe for hours."""
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
        return (
            ABORT_TRANSFER
            if self._header_bytes_left < 0 or len(self._header_lines) > MAX_HEADERS
            else None
        )

    def _receive_body(self, part: bytes) -> int | None:
        self._body_parts.append(part)
        self._body_bytes_left -= len(part)
        return ABORT_TRANSFER if self._body_bytes_left < 0 else None


def _encode_header(header: tuple[str, str]) -> bytes:
    """Return a header's line; raises ValueError if it cannot be one."""
    return _reject_control_characters(": ".join(header)).encode("latin-1")


def _reject_control_characters(text: str) -> str:
    if _CONTROL_CHARACTERS.search(text):
        raise ValueError("a control character")
    return text


def _parse_headers(lines: list[bytes]) -> dict[str, str]:
    """Return the headers of an answer, their names in lower case."""
    pairs = (line.decode("latin-1").partition(":") for line in lines if b":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _unsent_error(code: int) -> ProviderError:
    if code in _URL_ERRORS:
        return ProviderUnavailableError(INVALID_CONFIGURATION)
    if code in _DNS_ERRORS:
        reason = "The provider's host name has no address."
    elif code in _TLS_ERRORS:
        reason = "No secure connection to the provider."
    elif code == pycurl.E_OPERATION_TIMEDOUT:
        reason = "The provider did not take the connection in time."
    else:
        reason = "The provider refused the connection."
    return TransientError(reason, code=FailureCode.CONNECTION_FAILED)


T = TypeVar("T")


MAX_IDLE_CONNECTIONS = 64
"""Idle connections that are kept, of each thread that sends at the same time."""


UNCHECKED_SECONDS = 1.5
"""Seconds in which libcurl takes it that a connection which has just been used still stands. It
looks itself after one second (8.23)."""


MAX_IDLE_SECONDS = 60.0
"""Seconds without use after which connections that a rush has left behind are closed."""


MAX_POLL_SECONDS = 1.0
"""Seconds after which libcurl is asked again, although nothing has come and no deadline is near."""


NO_SOCKET_WAIT = 0.01
"""Seconds to wait where there is no socket to wait for: while a host is looked up, say."""


def post(
    url: str, *, body: bytes, headers: Mapping[str, str], timeout: float = TOTAL_TIMEOUT
) -> Response:
    """Send a POST and return the answer, whatever its status.

    Raises TransientError: not ambiguous when no byte has left (DNS, refused, TLS, connect timeout),
    ambiguous after that (no answer in ``timeout`` seconds, a cut answer, an acceptance of over
    64 KB). Raises ProviderUnavailableError when the URL or a header, as configured, cannot be one.
    """
    return run_exchange(
        _request_exchange(Request(url=url, headers=headers, body=body, timeout=timeout))
    )


def run_exchange(exchange: Exchange[T]) -> T:
    """Return what an exchange returns; raises what it raises."""
    (outcome,) = run_exchanges([exchange])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def run_exchanges(exchanges: Iterable[Exchange[T]]) -> list[T | Exception]:
    """Return what each of these exchanges returns or raises; all go on at once, in this thread.

    Each begins in its turn, so what it does before its first request holds up the ones after it.
    """
    return _Exchanges(exchanges).run()


def _request_exchange(request: Request) -> Exchange[Response]:
    return (yield request)


class _Exchanges(Generic[T]):
    """Exchanges under way, by their number."""

    def __init__(self, exchanges: Iterable[Exchange[T]]) -> None:
        self._exchanges = list(exchanges)
        self._outcomes: dict[int, T | Exception] = {}

    def run(self) -> list[T | Exception]:
        # Who asks nothing by HTTP keeps nobody from the connections that are warm.
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
        """Let an exchange come to its next request, or to its end."""
        while True:
            try:
                request = step()
            except StopIteration as end:
                self._outcomes[number] = end.value
                return
            except Exception as error:
                # Whoever asked for the exchange knows what an error makes of it.
                self._outcomes[number] = error
                return
            refusal = lease.pool.start(number, request)
            if refusal is None:
                return
            step = self._resume_step(number, refusal)


class _ConnectionPool:
    """Connections, and what is under way on them; for one thread at a time."""

    def __init__(self) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, MAX_IDLE_CONNECTIONS)
        self._idle: list[pycurl.Curl] = []
        self._active: dict[pycurl.Curl, tuple[int, Transfer]] = {}
        self._sockets: set[int] = set()
        """Those that were used last, by their numbers."""
        self._last_used_at = time.monotonic()

    def has_dropped_connection(self) -> bool:
        """Whether a server has hung up since; of what lay idle for longer, libcurl finds out."""
        if time.monotonic() - self._last_used_at > UNCHECKED_SECONDS:
            self._sockets.clear()
        watched = select.poll()
        for number in self._sockets:
            watched.register(number, select.POLLIN)
        return bool(watched.poll(0))

    def is_stale(self) -> bool:
        """Whether nobody has wanted it for so long that nobody will soon: it was for a rush."""
        return time.monotonic() - self._last_used_at > MAX_IDLE_SECONDS

    def start(self, number: int, request: Request) -> ProviderError | None:
        """Begin a request; return why it cannot be one, if so."""
        handle = self._idle.pop() if self._idle else new_handle()
        try:
            transfer = Transfer(handle, request)
        except ProviderError as error:
            handle.close()
            return error
        self._multi.add_handle(handle)
        self._active[handle] = number, transfer
        # Its time runs from here on, and not from when the last of many has begun.
        self._multi.perform()
        return None

    def responses(self) -> Iterator[tuple[int, Response | ProviderError]]:
        """Yield what has come, after waiting for it."""
        timeout_ms = self._multi.timeout()
        if (
            self._multi.select(
                MAX_POLL_SECONDS if timeout_ms < 0 else min(timeout_ms / 1000, MAX_POLL_SECONDS)
            )
            < 0
        ):
            time.sleep(NO_SOCKET_WAIT)
        self._multi.perform()
        yield from list(self._completed())

    def close(self) -> None:
        """End what is under way, and all connections."""
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
                number, transfer = self._active.pop(handle)
                outcome = transfer.outcome(code)
                transfer.release()
                self._record_use(handle)
                self._multi.remove_handle(handle)
                self._idle.append(handle)
                yield number, outcome

    def _record_use(self, handle: pycurl.Curl) -> None:
        self._last_used_at = time.monotonic()
        if (number := handle.getinfo(pycurl.ACTIVESOCKET)) >= 0:
            self._sockets.add(number)


_pools: defaultdict[int, deque[_ConnectionPool]] = defaultdict(deque)
"""Idle ones of each process: a forked child must not speak on its parent's connections."""


class _PoolLease:
    """Connections that are taken when they are wanted first, and given back."""

    def __init__(self) -> None:
        self._idle = _pools[os.getpid()]
        self._pool: _ConnectionPool | None = None

    @property
    def pool(self) -> _ConnectionPool:
        """Those that were used last, so that they are warm, or new ones."""
        if self._pool is None:
            self._pool = self._pop_last_used() or _ConnectionPool()
        return self._pool

    def _pop_last_used(self) -> _ConnectionPool | None:
        with suppress(IndexError):
            while (pool := self._idle.pop()).has_dropped_connection():
                pool.close()
            return pool
        return None

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
    """Close this process's connections that are not in use."""
    idle = _pools[os.getpid()]
    while idle:
        idle.pop().close()
