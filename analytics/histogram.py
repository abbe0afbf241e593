"""Waits in buckets, so that hours are sums of minutes and still know their percentiles. Pure."""

from collections.abc import Sequence
from itertools import zip_longest

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3_600.0, 14_400.0)
"""Seconds. A wait is in the first bucket whose bound it does not exceed; in one more beyond."""
BUCKETS = len(BOUNDS) + 1


def empty() -> list[int]:
    """Return a histogram with nothing in it."""
    return [0] * BUCKETS


def add(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Return both together."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return the wait, in seconds, that this share of all did not exceed; None if there is none.

    Within a bucket waits are taken to be spread evenly; beyond the last bound it is that bound.
    """
    total = sum(counts)
    if not total:
        return None
    wanted, passed = share * total, 0
    for place, count in enumerate(counts):
        if count and passed + count >= wanted:
            if place >= len(BOUNDS):
                return BOUNDS[-1]
            lower = BOUNDS[place - 1] if place else 0.0
            return lower + (BOUNDS[place] - lower) * (wanted - passed) / count
        passed += count
    return BOUNDS[-1]
