"""What follows a failed attempt. Pure: the time and the jitter are passed in."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from .errors import FailureCode, ProviderError, ProviderUnavailableError, TransientError
from .states import Priority

DEFAULT_MAX_RETRIES = 3
"""Tries after the first one, unless the type or the caller says otherwise."""


MAX_RETRIES = 10
"""The most a caller may ask for."""


BASE_DELAY = {
    Priority.CRITICAL: timedelta(seconds=15),
    Priority.HIGH: timedelta(minutes=1),
    Priority.NORMAL: timedelta(minutes=5),
    Priority.LOW: timedelta(minutes=5),
}
"""Wait before the second try; each further wait is twice the one before."""


MAX_DELAY = timedelta(hours=6)


MAX_DOUBLINGS = 16
"""After so many, any wait is at its longest; attempts have no upper limit, but times have one."""


JITTER = 0.2
"""Waits differ by up to this share, so that what failed together does not come back together."""


OUTAGE_DELAY = timedelta(seconds=30)
"""First wait while a provider takes nothing; doubles up to OUTAGE_MAX_DELAY."""


OUTAGE_MAX_DELAY = timedelta(minutes=15)


MAX_OUTAGE = timedelta(hours=72)
"""A delivery that met nothing but an outage for this long fails, for an operator to see."""


UNKNOWN_WAIT = {
    Priority.CRITICAL: timedelta(seconds=30),
    Priority.HIGH: timedelta(minutes=2),
    Priority.NORMAL: timedelta(minutes=5),
    Priority.LOW: timedelta(minutes=15),
}
"""How long the provider's receipt may take to tell what became of an attempt without an answer."""


class UnknownPolicy(StrEnum):
    """What a type wants when nobody can tell whether a message went."""

    RETRY = "retry"
    """Send again: twice is better than never."""
    FAIL = "fail"
    """Do not: twice is worse than never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryState:
    """A delivery's past, as far as the next step depends on it."""

    priority: Priority
    attempt_count: int
    """Tries so far, the one just made included."""
    uncounted_attempts: int
    """Of these, tries that an outage spoiled: they do not count against the limit."""
    max_attempts: int
    first_due_at: datetime
    expires_at: datetime | None

    @property
    def counted_attempts(self) -> int:
        """Tries that count against the limit."""
        return self.attempt_count - self.uncounted_attempts


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Try again then."""

    at: datetime


@dataclass(frozen=True, slots=True)
class RetryUncounted:
    """Try again then, and do not count this attempt."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AwaitReceipt:
    """The outcome is unknown; decide by the type's policy then, if no receipt comes."""

    until: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It has failed."""

    code: FailureCode


Decision = RetryAt | RetryUncounted | AwaitReceipt | GiveUp


def decide_retry(
    *, error: ProviderError, state: RetryState, now: datetime, jitter: float
) -> Decision:
    """Return what follows ``error``.

    ``jitter`` in [-1, 1] spreads the wait. A retry that would come after ``expires_at`` is none.
    """
    if isinstance(error, ProviderUnavailableError):
        return _decide_after_outage(error=error, state=state, now=now, jitter=jitter)
    if not isinstance(error, TransientError):
        return GiveUp(error.code)
    if error.is_ambiguous:
        return AwaitReceipt(now + UNKNOWN_WAIT[state.priority])
    return retry_or_give_up(
        code=error.code,
        retry_after=error.retry_after,
        state=state,
        now=now,
        jitter=jitter,
    )


def decide_unknown(*, policy: UnknownPolicy, state: RetryState, now: datetime) -> RetryAt | GiveUp:
    """Return what follows when no receipt came for an attempt with an unknown outcome."""
    may_retry = state.counted_attempts < state.max_attempts and not _is_expired_at(now, state)
    if policy is UnknownPolicy.RETRY and may_retry:
        return RetryAt(now)
    return GiveUp(FailureCode.OUTCOME_UNKNOWN)


def delay(*, priority: Priority, counted_attempts: int, jitter: float) -> timedelta:
    """Return the wait after this many counted attempts (1 or more), before any Retry-After."""
    doubled = BASE_DELAY[priority] * 2 ** min(counted_attempts - 1, MAX_DOUBLINGS)
    return min(doubled, MAX_DELAY) * (1 + JITTER * jitter)


def retry_or_give_up(
    *,
    code: FailureCode,
    retry_after: float | None,
    state: RetryState,
    now: datetime,
    jitter: float,
) -> RetryAt | GiveUp:
    """Return when to try again, at least ``retry_after`` seconds from now, or that it is over."""
    if state.counted_attempts >= state.max_attempts:
        return GiveUp(code)
    wait = delay(priority=state.priority, counted_attempts=state.counted_attempts, jitter=jitter)
    at = now + max(wait, timedelta(seconds=retry_after or 0))
    return GiveUp(code) if _is_expired_at(at, state) else RetryAt(at)


def _decide_after_outage(
    *, error: ProviderUnavailableError, state: RetryState, now: datetime, jitter: float
) -> Decision:
    doubled = OUTAGE_DELAY * 2 ** min(state.uncounted_attempts, MAX_DOUBLINGS)
    wait = min(doubled, OUTAGE_MAX_DELAY) * (1 + JITTER * jitter)
    at = now + max(wait, timedelta(seconds=error.retry_after or 0))
    if now - state.first_due_at >= MAX_OUTAGE or _is_expired_at(at, state):
        return GiveUp(error.code)
    return RetryUncounted(at)


def defer_or_give_up(*, until: datetime, state: RetryState, now: datetime) -> RetryAt | GiveUp:
    """Return what becomes of a delivery that nobody takes before ``until``: it waits, untried.

    Not for ever: an outage of three days, or one that outlasts the notification, is a failure.
    """
    if now - state.first_due_at >= MAX_OUTAGE or _is_expired_at(until, state):
        return GiveUp(FailureCode.CHANNEL_UNAVAILABLE)
    return RetryAt(until)


def _is_expired_at(at: datetime, state: RetryState) -> bool:
    return state.expires_at is not None and at >= state.expires_at
