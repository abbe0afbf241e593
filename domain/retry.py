"""Retry decisions after a failed attempt. Pure: time and jitter are arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum

from .errors import (
    FailureCode,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from .states import Priority

DEFAULT_MAX_RETRIES = 3
"""Retries after the first attempt, unless the type or the request sets another number."""
MAX_RETRIES = 10
BASE_DELAY = {
    Priority.CRITICAL: timedelta(seconds=15),
    Priority.HIGH: timedelta(minutes=1),
    Priority.NORMAL: timedelta(minutes=5),
    Priority.LOW: timedelta(minutes=5),
}
"""Delay before the first retry; it doubles with each further retry."""
MAX_DELAY = timedelta(hours=6)
MAX_DOUBLINGS = 16
"""Caps the exponent: attempts are unbounded, but a timedelta is not."""
JITTER = 0.2
"""Largest share by which jitter changes a delay, so that retries of one outage spread out."""
OUTAGE_DELAY = timedelta(seconds=30)
"""First delay while a provider is unavailable; it doubles up to UNCOUNTED_MAX_DELAY."""
RATE_LIMIT_DELAY = timedelta(seconds=1)
"""First delay after a rate limit; it doubles up to UNCOUNTED_MAX_DELAY. The send window and the
rate limiter slow the account down, so the delivery itself needs no long delay."""
REFUSED_SHARE, MAX_REFUSED_DELAY = 0.1, timedelta(seconds=5)
"""After a pause that the provider asked for, the delivery that it refused waits longer by this
share of it, at most by five seconds: others go first."""
UNCOUNTED_MAX_DELAY = timedelta(minutes=15)
MAX_OUTAGE = timedelta(hours=72)
"""A delivery held by an outage or a rate limit for this long fails, so that an operator sees it."""
UNKNOWN_WAIT = {
    Priority.CRITICAL: timedelta(seconds=30),
    Priority.HIGH: timedelta(minutes=2),
    Priority.NORMAL: timedelta(minutes=5),
    Priority.LOW: timedelta(minutes=15),
}
"""How long to wait for a receipt after an ambiguous attempt."""


class UnknownPolicy(StrEnum):
    """A type's policy for an unknown outcome."""

    RETRY = "retry"
    """Retry: a duplicate is better than no message."""
    FAIL = "fail"
    """Don't retry: no message is better than a duplicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryState:
    """The fields of a delivery that a retry decision needs."""

    priority: Priority
    attempt_count: int
    uncounted_attempts: int
    """Attempts that an outage or a rate limit ended. They don't count against ``max_attempts``."""
    max_attempts: int
    held_for: timedelta
    """How long outages and the provider's rate limits have held it. Other waits, such as quiet
    hours or a cap, don't count."""
    expires_at: datetime | None

    @property
    def counted_attempts(self) -> int:
        """Number of attempts that count against ``max_attempts``."""
        return self.attempt_count - self.uncounted_attempts


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Retry at this time."""

    at: datetime


@dataclass(frozen=True, slots=True)
class RetryUncounted:
    """Retry at this time without counting the attempt."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AwaitReceipt:
    """Wait for a receipt until this time, then apply the type's policy to the unknown outcome."""

    until: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Let the delivery fail with this code."""

    code: FailureCode


Decision = RetryAt | RetryUncounted | AwaitReceipt | GiveUp


def decide_retry(
    *,
    error: ProviderError,
    state: RetryState,
    now: datetime,
    jitter: float,
    is_doubted: bool = False,
) -> Decision:
    """Decide what follows a failed attempt. ``jitter`` is in [-1, 1].

    ``is_doubted``: the attempt tested an account that may be unable to send. A refusal that may
    concern the account is not final then.
    """
    is_doubtful = (
        is_doubted and error.reach is Reach.UNCERTAIN and isinstance(error, PermanentError)
    )
    if isinstance(error, ProviderUnavailableError) or is_doubtful:
        return _retry_uncounted(error, OUTAGE_DELAY, state=state, now=now, jitter=jitter)
    if not isinstance(error, TransientError):
        return GiveUp(error.code)
    if error.is_ambiguous:
        return AwaitReceipt(now + UNKNOWN_WAIT[state.priority])
    if error.code is FailureCode.RATE_LIMITED:
        # Certainly not sent, and because of the rate of all messages rather than of this one.
        return _retry_uncounted(error, RATE_LIMIT_DELAY, state=state, now=now, jitter=jitter)
    return retry_or_give_up(
        code=error.code, retry_after=error.retry_after, state=state, now=now, jitter=jitter
    )


def decide_unknown(*, policy: UnknownPolicy, state: RetryState, now: datetime) -> RetryAt | GiveUp:
    """Decide what follows an unknown outcome when no receipt arrived in time."""
    may_retry = state.counted_attempts < state.max_attempts and not _is_expired_at(now, state)
    if policy is UnknownPolicy.RETRY and may_retry:
        return RetryAt(now)
    return GiveUp(FailureCode.OUTCOME_UNKNOWN)


def delay(*, priority: Priority, counted_attempts: int, jitter: float) -> timedelta:
    """Return the delay after ``counted_attempts``, at least 1, without regard to Retry-After."""
    doubled = BASE_DELAY[priority] * 2 ** min(counted_attempts - 1, MAX_DOUBLINGS)
    return min(doubled, MAX_DELAY) * (1 + JITTER * jitter)


def retry_or_give_up(
    *, code: FailureCode, retry_after: float | None, state: RetryState, now: datetime, jitter: float
) -> RetryAt | GiveUp:
    """Return the next retry, at least ``retry_after`` seconds from now, or give up."""
    if state.counted_attempts >= state.max_attempts:
        return GiveUp(code)
    wait = delay(priority=state.priority, counted_attempts=state.counted_attempts, jitter=jitter)
    at = now + max(wait, timedelta(seconds=retry_after or 0))
    return GiveUp(code) if _is_expired_at(at, state) else RetryAt(at)


def _retry_uncounted(
    error: ProviderError,
    first_delay: timedelta,
    *,
    state: RetryState,
    now: datetime,
    jitter: float,
) -> RetryUncounted | GiveUp:
    doubled = first_delay * 2 ** min(state.uncounted_attempts, MAX_DOUBLINGS)
    wait = min(doubled, UNCOUNTED_MAX_DELAY) * (1 + JITTER * jitter)
    pause = timedelta(0)
    if isinstance(error, ProviderUnavailableError | TransientError):
        pause = timedelta(seconds=error.retry_after or 0)
    longer = pause + min(pause * REFUSED_SHARE, MAX_REFUSED_DELAY)
    at = now + max(wait, pause if _is_expired_at(now + longer, state) else longer)
    if is_outage_too_long(state) or _is_expired_at(at, state):
        return GiveUp(error.code)
    return RetryUncounted(at)


def may_defer(*, until: datetime, state: RetryState) -> bool:
    """Return whether a delivery may wait: it neither expires by ``until`` nor was held too long."""
    return not is_outage_too_long(state) and not _is_expired_at(until, state)


def is_outage_too_long(state: RetryState) -> bool:
    """Return whether outages have held a delivery for MAX_OUTAGE. It fails then: staff see it."""
    return state.held_for >= MAX_OUTAGE


def _is_expired_at(at: datetime, state: RetryState) -> bool:
    return state.expires_at is not None and at >= state.expires_at


def parse_retry_after(
    headers: Mapping[str, str], *, now: datetime, limit: timedelta
) -> timedelta | None:
    """Return the pause of a Retry-After header, at most ``limit``. None if absent or invalid."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), limit)
    try:
        retry_at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    pause = (retry_at if retry_at.tzinfo else retry_at.replace(tzinfo=UTC)) - now
    return min(pause, limit) if pause > timedelta(0) else None
