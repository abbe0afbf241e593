"""The send window: how many requests this process has in flight to each provider account.

A batch takes room, records the start of its deliveries, and lets the window admit their requests.
Some more are started than are sent, so that the next request is sent at the moment of an answer.

Its size follows the provider, as TCP's congestion window does: it doubles per round trip up to the
size at which the provider last slowed down, then grows by a small share per round trip, and
shrinks at a rate limit, a timeout, or a refused connection.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings

from domain.errors import (
    FailureCode,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from providers.contract import Provider

from .results import TargetResult

INITIAL_SIZE = 10
"""Size without a recent success: a circuit opens before more requests fail."""
MIN_SIZE = 1
DEFAULT_MAXIMUM = 512
"""Requests in flight to a provider without a setting of its own."""
GROWTH_SHARE = 1 / 32
"""Share that the window gains per round trip, above the size of the last slowdown."""
MIN_GROWTH = 2
"""Requests that it gains at least."""
ACQUIRED_SHARE = 0.25
"""Share of the window that a batch waits for at most. If it waited for all of a small window, the
provider would get one round of requests after another, each after the slowest of the last."""
STARTED_AHEAD = 8
"""Requests that are started while the window is full, if it is not smaller. Recording a start takes
5 to 15 ms of each round trip. At a limit of 20 requests of 100 ms, 0.87 of it was used without
them, 0.94 with 4, and 0.95 to 0.96 with 8 to 32."""
RECENT_SUCCESS = 60.0
"""Seconds without a success after which the window starts again with INITIAL_SIZE."""
PAUSE_SECONDS = 0.5
"""Seconds in which the window has no room after the provider asked for a pause. By then the rate
limiter or the circuit breaker knows of it; until then, more requests would only be refused."""
SHARE_AFTER: Mapping[FailureCode, float] = {
    FailureCode.RATE_LIMITED: 0.9,
    FailureCode.TIMEOUT: 0.5,
    FailureCode.CONNECTION_FAILED: 0.5,
}
"""Share of the window that is left after a slowdown. A rate limit shows the limit at no cost, so
that the window stays close to it; an overloaded provider needs more relief."""


@dataclass(slots=True)
class SendWindow:
    """The window of one provider account; safe for many threads."""

    maximum: int
    clock: Callable[[], float] = time.monotonic
    started_ahead: int = STARTED_AHEAD
    _size: float = INITIAL_SIZE
    _threshold: float = float("inf")
    """Size above which the window grows slowly."""
    _taken: int = 0
    """Requests that have room: those in flight, and those about to be."""
    _in_flight: int = 0
    _queue: deque[tuple[int, Callable[[], None]]] = field(default_factory=deque)
    """Started requests that wait until the window admits them."""
    _waiting: int = 0
    """Callers of acquire() that wait for room."""
    _last_success: float = float("-inf")
    _last_decrease: float = float("-inf")
    _paused_until: float = float("-inf")
    _last_limited: float = float("-inf")
    """When the window last had less room than a caller wanted."""
    _freed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def size(self) -> int:
        """The number of requests that may be in flight now."""
        return max(min(int(self._size), self.maximum), MIN_SIZE)

    @property
    def taken(self) -> int:
        """The number of requests that have room: those in flight, and those about to be."""
        return self._taken

    def acquire(self, count: int, *, timeout: float) -> int:
        """Wait for room for ``count`` requests, or an ACQUIRED_SHARE of the window; then take it.

        Return 0 if none came.
        """
        with self._freed:
            self._restart_if_idle()
            self._waiting += 1
            try:
                self._wait_for_room(count, timeout)
            finally:
                self._waiting -= 1
            return self._take(count)

    def try_acquire(self, count: int) -> int:
        """Take room for up to ``count`` requests; none while another thread waits for room."""
        with self._freed:
            return 0 if self._waiting else self._take(count)

    def adjust(self, count: int) -> None:
        """Take room at once, even beyond the window; with a negative count, give it back unused."""
        with self._freed:
            self._taken += count
            self._freed.notify_all()

    def admit(self, count: int, send: Callable[[], None], *, at_once: bool = False) -> None:
        """Call ``send`` for requests that have room: now, or when earlier ones have been answered.

        ``at_once``: even if the window is full or paused.
        """
        with self._freed:
            if not at_once and self._in_flight >= self.size:
                self._last_limited = self.clock()
                self._queue.append((count, send))
                return
            self._in_flight += count
        send()

    def release(self, count: int, *, results: Sequence[TargetResult], started_at: float) -> None:
        """Give room back after requests that began at ``started_at``, on the window's clock.

        The requests that are admitted by this are sent by this call.
        """
        errors = [result.outcome for result in results if isinstance(result.outcome, ProviderError)]
        with self._freed:
            now = self.clock()
            # Without a limit, more success says nothing about a larger window.
            was_limited = self._waiting > 0 or self._last_limited >= started_at
            self._taken -= count
            self._in_flight -= count
            if len(errors) < len(results):
                self._last_success = now
                if was_limited:
                    self._grow(len(results) - len(errors))
            pause = max(map(_pause_seconds, errors), default=0.0)
            self._paused_until = max(self._paused_until, now + pause)
            # Requests that began before the last decrease say nothing about the size since.
            # A room or a host that fails says nothing about the account.
            slowdowns = (SHARE_AFTER.get(e.code, 1.0) for e in errors if e.scope is None)
            share = min(slowdowns, default=1.0)
            if share < 1 and started_at > self._last_decrease:
                self._threshold = self._size = max(self._size * share, MIN_SIZE)
                self._last_decrease = now
            admitted = self._admit_queued()
            self._freed.notify_all()
        for send in admitted:
            send()

    @property
    def is_paused(self) -> bool:
        """Whether nothing is to be sent, because the provider has just asked for a pause."""
        return self.clock() < self._paused_until

    def _admit_queued(self) -> list[Callable[[], None]]:
        admitted = []
        while self._queue and self._in_flight < self.size:
            count, send = self._queue.popleft()
            self._in_flight += count
            admitted.append(send)
        return admitted

    def _wait_for_room(self, count: int, timeout: float) -> None:
        ends_at = time.monotonic() + timeout
        while self._room() < min(count, self._least()):
            if (left := ends_at - time.monotonic()) <= 0:
                return
            pause = self._paused_until - self.clock()
            self._freed.wait(min(left, pause) if pause > 0 else left)

    def _least(self) -> int:
        return math.ceil(self.size * ACQUIRED_SHARE)

    def _room(self) -> int:
        if self.is_paused:
            return 0
        return max(self.size + min(self.started_ahead, self.size) - self._taken, 0)

    def _take(self, count: int) -> int:
        taken = min(count, self._room())
        if taken < count:
            self._last_limited = self.clock()
        self._taken += taken
        return taken

    def _grow(self, successes: int) -> None:
        gain = 1.0 if self._size < self._threshold else max(GROWTH_SHARE, MIN_GROWTH / self._size)
        self._size = min(self._size + gain * successes, self.maximum)

    def _restart_if_idle(self) -> None:
        if not self._taken and self.clock() - self._last_success > RECENT_SUCCESS:
            self._size, self._threshold = min(INITIAL_SIZE, self.maximum), float("inf")


def _pause_seconds(error: ProviderError) -> float:
    """Return for how long the window pauses after an error of a provider that takes nothing."""
    match error:
        case TransientError(code=FailureCode.RATE_LIMITED, scope=None, reach=Reach.ACCOUNT):
            return min(error.retry_after or 0.0, PAUSE_SECONDS)
        case ProviderUnavailableError(scope=None, reach=Reach.ACCOUNT):
            return PAUSE_SECONDS
    return 0.0


class SendWindows:
    """The windows of one process; safe for many threads."""

    def __init__(self, windows: Mapping[str, SendWindow] | None = None) -> None:
        self._windows = dict(windows or {})

    def of(self, provider: Provider) -> SendWindow:
        """Return the window of a provider account."""
        if (window := self._windows.get(provider.account)) is None:
            maximum = settings.MAX_IN_FLIGHT.get(provider.name, DEFAULT_MAXIMUM)
            window = self._windows.setdefault(provider.account, SendWindow(maximum))
        return window
