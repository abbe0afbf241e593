"""The responses after which a request is retried, and the delays."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long a request is attempted. Times are in seconds."""

    max_attempts: int = 5
    max_seconds: float = 60.0
    """The maximum time from the first attempt to the beginning of the last."""
    first_delay: float = 0.5
    """The delay after the first attempt. Each attempt doubles the delay. Jitter adds up to half."""
    max_delay: float = 20.0
    """The maximum delay before jitter, unless ``Retry-After`` is longer."""

    def delay(self, *, attempts: int, retry_after: float | None, jitter: float) -> float:
        """Return the delay after this many attempts. ``jitter`` is from 0 to 1."""
        own = min(self.first_delay * 2.0 ** (attempts - 1), self.max_delay) * (1 + jitter / 2)
        return max(own, retry_after or 0.0)


def parse_retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return ``Retry-After`` (a number or a date) in seconds; None if missing or invalid."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
