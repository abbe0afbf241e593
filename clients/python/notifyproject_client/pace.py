"""When to try again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request may be taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often something is tried, and for how long. Times are in seconds."""

    tries: int = 5
    within: float = 60.0
    """No try begins later than this after the first one began."""
    first_wait: float = 0.5
    """Twice as long after each further try, and up to half as much more, at random."""
    longest_wait: float = 20.0
    """Of our own; one that the service asks for may be longer."""

    def wait(self, *, tried: int, asked: float | None, chance: float) -> float:
        """Return how long to wait after ``tried`` tries; ``chance`` is from 0 to 1.

        ``asked`` is what the service asks for: never less than that.
        """
        own = min(self.first_wait * 2.0 ** (tried - 1), self.longest_wait) * (1 + chance / 2)
        return max(own, asked or 0.0)


def asked_wait(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, as a number or as a date; None: nothing."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
