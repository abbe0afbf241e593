"""The clock of a test client: time goes by at once, and what is due happens."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self, cast

import httpx

from ..errors import NotificationRejectedError
from ..notifier import rest_client
from ..rest.api.test import get_test_clock, move_test_clock, reset_test_clock
from ..rest.models.clock_event_view import ClockEventView
from ..rest.models.test_clock_request import TestClockRequest
from ..rest.models.test_clock_view import TestClockView

TIMEOUT = httpx.Timeout(60.0, connect=3.0)
"""Of one request. The service answers within 12 seconds, and 15 more for a silent provider."""
MAX_WAITS = 30
"""How often a move waits for another one of the same clock."""


class Clock:
    """Moves the time of one test client. Close it at the end."""

    def __init__(self, url: str, *, key: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._rest = rest_client(url, key, TIMEOUT)
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._rest.get_httpx_client().close()

    def now(self) -> datetime:
        """Return the client's time."""
        return cast("TestClockView", get_test_clock.sync(client=self._rest)).now

    def advance(self, by: str | timedelta) -> list[ClockEventView]:
        """Move the clock by a duration, such as ``2h``. Return what happened, in order."""
        if isinstance(by, timedelta):
            by = f"{int(by.total_seconds())}s"
        return self._move(TestClockRequest(advance=by))

    def to(self, instant: str | datetime) -> list[ClockEventView]:
        """Move the clock to a time, which isn't before it. Return what happened, in order."""
        text = instant.isoformat() if isinstance(instant, datetime) else instant
        return self._move(TestClockRequest(to=text))

    def settle(self) -> list[ClockEventView]:
        """Let everything happen that is due by now, without waiting for a worker."""
        return self.to(self.now())

    def reset(self) -> None:
        """Make the clock show real time again."""
        reset_test_clock.sync_detailed(client=self._rest)

    def _move(self, request: TestClockRequest) -> list[ClockEventView]:
        moved = self._ask(request)
        found = list(moved.happened)
        while not moved.is_complete:
            moved = self._ask(TestClockRequest(to=cast("datetime", moved.target).isoformat()))
            found += moved.happened
        return found

    def _ask(self, request: TestClockRequest) -> TestClockView:
        for _ in range(MAX_WAITS):
            try:
                return cast("TestClockView", move_test_clock.sync(client=self._rest, body=request))
            except NotificationRejectedError as error:
                if error.code != "clock_moving":
                    raise
                self._sleep(error.retry_after or 1.0)
        raise TimeoutError("Others move this clock all the time: give each suite a test client.")
