"""How many parts of texts go to a country in ten minutes, and when that looks like fraud. Pure.

Fraudsters ask for codes to numbers whose operator shares the price with them, as fast as they can.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

SLOT = timedelta(minutes=10)
HISTORY = timedelta(days=7)
UNJUDGED = timedelta(hours=1)
"""The newest part of the history. Without it, a long attack would soon be what is usual."""
MANY_TIMES = 10
"""More than this many times the usual parts are suspicious."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentUnits:
    """The parts of one text that a provider has, or may have, accepted."""

    provider: str
    country: str
    units: int
    is_asked: bool
    """Whether a stranger can cause such a text: any but marketing."""


def slot_of(now: datetime) -> datetime:
    """Return when the ten minutes began in which a time is."""
    at = now.astimezone(UTC)
    return at.replace(minute=at.minute - at.minute % 10, second=0, microsecond=0)


def usual_units(slots: Sequence[int]) -> float:
    """Return the median of the slots in which there were any."""
    used = [units for units in slots if units]
    return median(used) if used else 0


def is_surge(units: int, *, usual: float, least: int) -> bool:
    """Return whether more parts than ``least``, and many times the usual ones, are in a slot."""
    return units > least and units > MANY_TIMES * usual
