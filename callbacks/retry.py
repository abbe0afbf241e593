"""Retry policy and receiver health. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus

from .events import DisabledReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverHealth:
    """What is known of a receiver from the tries so far."""

    failures: int = 0
    """In a row."""
    failing_since: datetime | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_error: str | None = None
    is_gone: bool = False

    @property
    def is_failing(self) -> bool:
        """Whether so many tries failed in a row that it is only probed."""
        return self.failures >= FAILURES_TO_OPEN

    def after_success(self, *, at: datetime) -> "ReceiverHealth":
        """Return it after a try that came through: all is well again."""
        return replace(
            self, failures=0, failing_since=None, last_success_at=at, last_error=None, is_gone=False
        )

    def after_failure(self, *, at: datetime, error: str, is_gone: bool = False) -> "ReceiverHealth":
        """Return it after a try that did not."""
        return replace(
            self,
            failures=self.failures + 1,
            failing_since=self.failing_since or at,
            last_failure_at=at,
            last_error=error,
            is_gone=is_gone,
        )

    def disable_reason(self, *, now: datetime) -> DisabledReason | None:
        """Return why the callback is to be switched off; None if it is not."""
        if self.is_gone:
            return DisabledReason.GONE
        if self.failing_since and has_failed_too_long(failing_since=self.failing_since, now=now):
            return DisabledReason.FAILING
        return None


DELAYS = (
    timedelta(seconds=5),
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=8),
    timedelta(hours=11),
)
"""Wait before each further try: with the first, eight tries within about a day."""
MAX_TRIES = len(DELAYS) + 1
JITTER = 0.2
"""Waits differ by up to this share, so that what failed together does not come back together."""
MAX_RETRY_AFTER = timedelta(hours=12)
"""A receiver that asks for a longer pause is taken at this."""
GONE = HTTPStatus.GONE
FAILURES_TO_OPEN = 5
"""After so many failed tries in a row, whatever they were of, a receiver is left alone a while."""
MIN_CIRCUIT_OPEN = timedelta(seconds=30)
"""The first such while; it doubles each time one more try fails after it."""
MAX_CIRCUIT_OPEN = timedelta(minutes=10)
MAX_DOUBLINGS = 10
DISABLED_AFTER = timedelta(days=5)
"""A callback that nothing has come through to for this long is switched off."""


class TryOutcome(StrEnum):
    """What a try means for its delivery."""

    DELIVERED = "delivered"
    RETRY = "retry"
    GIVE_UP = "give_up"
    GONE = "gone"
    """The receiver says that it is there no more: the callback is switched off at once."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows a try; ``at``: when the next one is due."""

    outcome: TryOutcome
    at: datetime | None = None


def decide_retry(
    *, status: int | None, tries: int, pause: timedelta | None, now: datetime, jitter: float
) -> Decision:
    """Return what follows a try, the ``tries``-th of its delivery.

    ``status``: of the answer, None for no answer. ``pause``: what the receiver asked for. ``jitter``:
    from 0 to 1.
    """
    if status is not None and HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Decision(TryOutcome.DELIVERED)
    if status == GONE:
        return Decision(TryOutcome.GONE)
    if tries >= MAX_TRIES:
        return Decision(TryOutcome.GIVE_UP)
    wait = DELAYS[tries - 1] * (1 + JITTER * (2 * jitter - 1))
    requested = min(pause or timedelta(0), MAX_RETRY_AFTER)
    return Decision(TryOutcome.RETRY, at=_truncate_to_milliseconds(now + max(wait, requested)))


def parse_retry_after(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """Return the pause that Retry-After asks for, in seconds or as a date; None for nonsense.

    The names of ``headers`` are in lower case.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), MAX_RETRY_AFTER.total_seconds()))
    try:
        retry_at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    pause = (retry_at if retry_at.tzinfo else retry_at.replace(tzinfo=UTC)) - now
    return pause if pause > timedelta(0) else None


def circuit_open_until(*, failures: int, now: datetime) -> datetime | None:
    """Return until when a receiver is left alone that has failed so often in a row; None: not."""
    if failures < FAILURES_TO_OPEN:
        return None
    doublings = min(failures - FAILURES_TO_OPEN, MAX_DOUBLINGS)
    return now + min(MIN_CIRCUIT_OPEN * 2**doublings, MAX_CIRCUIT_OPEN)


def has_failed_too_long(*, failing_since: datetime, now: datetime) -> bool:
    """Return whether a callback that has failed since then is to be switched off."""
    return now - failing_since >= DISABLED_AFTER


def _truncate_to_milliseconds(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)
