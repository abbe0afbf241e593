"""How a receiver has been doing, and what follows for the callback. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

from . import retry
from .states import DisabledReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
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
        return self.failures >= retry.FAILURES_TO_OPEN

    def succeeded(self, *, at: datetime) -> "Standing":
        """Return it after a try that came through: all is well again."""
        return replace(
            self, failures=0, failing_since=None, last_success_at=at, last_error=None, is_gone=False
        )

    def failed(self, *, at: datetime, error: str, is_gone: bool = False) -> "Standing":
        """Return it after a try that did not."""
        return replace(
            self,
            failures=self.failures + 1,
            failing_since=self.failing_since or at,
            last_failure_at=at,
            last_error=error,
            is_gone=is_gone,
        )

    def to_be_disabled(self, *, now: datetime) -> DisabledReason | None:
        """Return why the callback is to be switched off; None if it is not."""
        if self.is_gone:
            return DisabledReason.GONE
        if self.failing_since and retry.is_given_up(failing_since=self.failing_since, now=now):
            return DisabledReason.FAILING
        return None
