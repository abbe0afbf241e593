"""Requests to providers: one, or many at once by one thread.

A thread for each request would spend more of the processor on waiting for its turn in Python than
libcurl needs for the request: 560 µs against 50, of 32 at once to a server that answers at once.
"""

import os
import select
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Generic, Self, TypeVar

import pycurl

from ..errors import ProviderError
from .curl import Transfer, new_handle
from .http import TOTAL_TIMEOUT, Exchange, Request, Response

T = TypeVar("T")
KEPT = 64
"""Idle connections that are kept, of each thread that sends at the same time."""
UNCHECKED = 1.5
"""Seconds in which libcurl takes it that a connection which has just been used still stands. It
looks itself after one second (8.23)."""
RESTED = 60.0
"""Seconds without use after which connections that a rush has left behind are closed."""
WAIT = 1.0
"""Seconds after which libcurl is asked again, although nothing has come and no deadline is near."""
WITHOUT_SOCKETS = 0.01
"""Seconds to wait where there is no socket to wait for: while a host is looked up, say."""


def post(
    url: str, *, body: bytes, headers: Mapping[str, str], timeout: float = TOTAL_TIMEOUT
) -> Response:
    """Send a POST and return the answer, whatever its status.

    Raises TransientError: not ambiguous when no byte has left (DNS, refused, TLS, connect timeout),
    ambiguous after that (no answer in ``timeout`` seconds, a cut answer, an acceptance of over
    64 KB). Raises ChannelUnavailable when the URL or a header, as configured, cannot be one.
    """
    return finish(_asking(Request(url=url, headers=headers, body=body, timeout=timeout)))


def finish(exchange: Exchange[T]) -> T:
    """Return what an exchange returns; raises what it raises."""
    (outcome,) = together([exchange])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def together(exchanges: Iterable[Exchange[T]]) -> list[T | Exception]:
    """Return what each of these exchanges returns or raises; all go on at once, in this thread.

    Each begins in its turn, so what it does before its first request holds up the ones after it.
    """
    return _Talks(exchanges).outcomes()


def _asking(request: Request) -> Exchange[Response]:
    return (yield request)


class _Talks(Generic[T]):
    """Exchanges under way, by their number."""

    def __init__(self, exchanges: Iterable[Exchange[T]]) -> None:
        self._exchanges = list(exchanges)
        self._outcomes: dict[int, T | Exception] = {}

    def outcomes(self) -> list[T | Exception]:
        # Who asks nothing by HTTP keeps nobody from the connections that are warm.
        with _Loan() as loan:
            for number, exchange in enumerate(self._exchanges):
                self._go_on(loan, number, partial(next, exchange))
            while len(self._outcomes) < len(self._exchanges):
                for number, answer in loan.line.answers():
                    self._go_on(loan, number, self._hear(number, answer))
        return [self._outcomes[number] for number in range(len(self._exchanges))]

    def _hear(self, number: int, answer: Response | ProviderError) -> Callable[[], Request]:
        exchange = self._exchanges[number]
        if isinstance(answer, ProviderError):
            return partial(exchange.throw, answer)
        return partial(exchange.send, answer)

    def _go_on(self, loan: "_Loan", number: int, step: Callable[[], Request]) -> None:
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
            refusal = loan.line.begin(number, request)
            if refusal is None:
                return
            step = self._hear(number, refusal)


class _Line:
    """Connections, and what is under way on them; for one thread at a time."""

    def __init__(self) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, KEPT)
        self._idle: list[pycurl.Curl] = []
        self._under_way: dict[pycurl.Curl, tuple[int, Transfer]] = {}
        self._sockets: set[int] = set()
        """Those that were used last, by their numbers."""
        self._used_at = time.monotonic()

    def is_cut(self) -> bool:
        """Whether a server has hung up since; of what lay idle for longer, libcurl finds out."""
        if time.monotonic() - self._used_at > UNCHECKED:
            self._sockets.clear()
        watched = select.poll()
        for number in self._sockets:
            watched.register(number, select.POLLIN)
        return bool(watched.poll(0))

    def has_rested(self) -> bool:
        """Whether nobody has wanted it for so long that nobody will soon: it was for a rush."""
        return time.monotonic() - self._used_at > RESTED

    def begin(self, number: int, request: Request) -> ProviderError | None:
        """Begin a request; return why it cannot be one, if so."""
        handle = self._idle.pop() if self._idle else new_handle()
        try:
            transfer = Transfer(handle, request)
        except ProviderError as error:
            handle.close()
            return error
        self._multi.add_handle(handle)
        self._under_way[handle] = number, transfer
        # Its time runs from here on, and not from when the last of many has begun.
        self._multi.perform()
        return None

    def answers(self) -> Iterator[tuple[int, Response | ProviderError]]:
        """Yield what has come, after waiting for it."""
        due = self._multi.timeout()
        if self._multi.select(WAIT if due < 0 else min(due / 1000, WAIT)) < 0:
            time.sleep(WITHOUT_SOCKETS)
        self._multi.perform()
        yield from list(self._ended())

    def close(self) -> None:
        """End what is under way, and all connections."""
        for handle in self._under_way:
            self._multi.remove_handle(handle)
            handle.close()
        for handle in self._idle:
            handle.close()
        self._under_way.clear()
        self._idle.clear()
        self._multi.close()

    def _ended(self) -> Iterator[tuple[int, Response | ProviderError]]:
        are_more = 1
        while are_more:
            are_more, done, failed = self._multi.info_read()
            ended = [(handle, pycurl.E_OK) for handle in done]
            ended += [(handle, code) for handle, code, _ in failed]
            for handle, code in ended:
                number, transfer = self._under_way.pop(handle)
                outcome = transfer.outcome(code)
                transfer.release()
                self._note(handle)
                self._multi.remove_handle(handle)
                self._idle.append(handle)
                yield number, outcome

    def _note(self, handle: pycurl.Curl) -> None:
        self._used_at = time.monotonic()
        if (number := handle.getinfo(pycurl.ACTIVESOCKET)) >= 0:
            self._sockets.add(number)


_lines: defaultdict[int, deque[_Line]] = defaultdict(deque)
"""Idle ones of each process: a forked child must not speak on its parent's connections."""


class _Loan:
    """Connections that are taken when they are wanted first, and given back."""

    def __init__(self) -> None:
        self._idle = _lines[os.getpid()]
        self._line: _Line | None = None

    @property
    def line(self) -> _Line:
        """Those that were used last, so that they are warm, or new ones."""
        if self._line is None:
            self._line = self._last_used() or _Line()
        return self._line

    def _last_used(self) -> _Line | None:
        with suppress(IndexError):
            while (line := self._idle.pop()).is_cut():
                line.close()
            return line
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._line is None:
            return
        if kind is not None:
            self._line.close()
            return
        self._idle.append(self._line)
        with suppress(IndexError):
            while self._idle[0].has_rested():
                self._idle.popleft().close()


def close_all() -> None:
    """Close this process's connections that are not in use."""
    idle = _lines[os.getpid()]
    while idle:
        idle.pop().close()
