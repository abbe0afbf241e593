"""What this process saw last of a server, which it leaves alone for a while after a failure."""

import time

PAUSE_AFTER_FAILURE = 5.0
"""Seconds. A server that hangs takes its time limit from each thread that asks it."""
NEVER = float("-inf")


class ServerHealth:
    """The times of a server's last answer and failure in this process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was recorded."""
        self._answered_at = self._failed_at = NEVER

    def record_answer(self) -> None:
        """Record that the server answered."""
        self._answered_at = time.monotonic()

    def record_failure(self) -> None:
        """Record that the server couldn't be reached, or didn't answer in time."""
        self._failed_at = time.monotonic()

    def is_paused(self) -> bool:
        """Return whether the server failed within PAUSE_AFTER_FAILURE seconds."""
        return time.monotonic() - self._failed_at < PAUSE_AFTER_FAILURE

    def has_answered(self, *, within: float) -> bool:
        """Return whether the server answered in the last seconds."""
        return time.monotonic() - self._answered_at < within

    def is_well(self) -> bool:
        """Return whether the server has answered since it last failed."""
        return self._answered_at > self._failed_at
