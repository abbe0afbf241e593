"""Retry delays, circuit, and endpoint health of callbacks. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from http import HTTPStatus

from domain.time import truncate_to_milliseconds

from .events import DisabledReason

DELAYS = (
    timedelta(seconds=5),
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=8),
    timedelta(hours=11),
)
"""Delay before each retry: eight attempts within about a day."""
MAX_ATTEMPTS = len(DELAYS) + 1
JITTER = 0.2
"""Largest share by which jitter changes a delay, so that retries after an outage spread out."""
MAX_RETRY_AFTER = timedelta(hours=12)
GONE = HTTPStatus.GONE
BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""Their Retry-After concerns the endpoint, and not the message alone (RFC 6585, RFC 9110)."""
MAX_ENDPOINT_PAUSE = timedelta(hours=1)
"""Longest pause of an endpoint after one answer. The message itself waits up to MAX_RETRY_AFTER."""
FAILURES_TO_OPEN = 5
"""Failures in a row, across messages, that open the endpoint's circuit."""
MIN_CIRCUIT_OPEN = timedelta(seconds=30)
"""How long the circuit stays open at first. Each further failure doubles the time."""
MAX_CIRCUIT_OPEN = timedelta(minutes=10)
MAX_DOUBLINGS = 10
DISABLED_AFTER = timedelta(days=5)
"""An endpoint that has only failed for this long is disabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointHealth:
    """The results of an endpoint's latest attempts."""

    failures: int = 0
    failing_since: datetime | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_error: str | None = None
    is_gone: bool = False
    paused_until: datetime | None = None
    """Until when the endpoint asked for no further request."""

    @property
    def is_failing(self) -> bool:
        """Whether FAILURES_TO_OPEN attempts in a row failed, so that a round sends one message."""
        return self.failures >= FAILURES_TO_OPEN

    def after_success(self, *, at: datetime) -> "EndpointHealth":
        """Return the health after a successful attempt."""
        return replace(
            self, failures=0, failing_since=None, last_success_at=at, last_error=None, is_gone=False
        )

    def after_failure(self, *, at: datetime, error: str, is_gone: bool = False) -> "EndpointHealth":
        """Return the health after a failed attempt."""
        return replace(
            self,
            failures=self.failures + 1,
            failing_since=self.failing_since or at,
            last_failure_at=at,
            last_error=error,
            is_gone=is_gone,
        )

    def after_pause(self, pause: timedelta | None, *, at: datetime) -> "EndpointHealth":
        """Return the health after an answer that asks for a pause, or for none."""
        if pause is None:
            return self
        until = truncate_to_milliseconds(at + pause)
        return replace(self, paused_until=max(until, self.paused_until or until))

    def disable_reason(self, *, now: datetime) -> DisabledReason | None:
        """Return why the endpoint must be disabled, or None if it stays enabled."""
        if self.is_gone:
            return DisabledReason.GONE
        if self.failing_since and now - self.failing_since >= DISABLED_AFTER:
            return DisabledReason.FAILING
        return None


class AttemptOutcome(StrEnum):
    """What an attempt means for its message."""

    DELIVERED = "delivered"
    RETRY = "retry"
    GIVE_UP = "give_up"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of an attempt, and when to retry."""

    outcome: AttemptOutcome
    at: datetime | None = None


def decide_retry(
    *, status: int | None, tries: int, pause: timedelta | None, now: datetime, jitter: float
) -> Decision:
    """Decide what follows attempt number ``tries``. ``jitter`` is in [0, 1]."""
    if status is not None and HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Decision(AttemptOutcome.DELIVERED)
    if status == GONE:
        return Decision(AttemptOutcome.GONE)
    if tries >= MAX_ATTEMPTS:
        return Decision(AttemptOutcome.GIVE_UP)
    wait = DELAYS[tries - 1] * (1 + JITTER * (2 * jitter - 1))
    requested = min(pause or timedelta(0), MAX_RETRY_AFTER)
    return Decision(AttemptOutcome.RETRY, at=truncate_to_milliseconds(now + max(wait, requested)))


def endpoint_pause(status: int | None, pause: timedelta | None) -> timedelta | None:
    """Return for how long an answer asks to leave the endpoint alone, or None."""
    return min(pause, MAX_ENDPOINT_PAUSE) if pause is not None and status in BUSY else None


def circuit_open_until(*, failures: int, now: datetime) -> datetime | None:
    """Return until when this many failures in a row open the circuit, or None if it is closed."""
    if failures < FAILURES_TO_OPEN:
        return None
    doublings = min(failures - FAILURES_TO_OPEN, MAX_DOUBLINGS)
    return now + min(MIN_CIRCUIT_OPEN * 2**doublings, MAX_CIRCUIT_OPEN)
