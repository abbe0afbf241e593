"""Waits in buckets: hours are sums of minutes, and percentiles are within their bucket."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics import metrics
from analytics.metrics import BOUNDS


def counted(waits: list[float]) -> list[int]:
    counts = metrics.empty_histogram()
    for wait in waits:
        counts[next((n for n, bound in enumerate(BOUNDS) if wait <= bound), len(BOUNDS))] += 1
    return counts


def test_nothing_has_no_percentile() -> None:
    assert metrics.quantile(metrics.empty_histogram(), 0.95) is None


def test_a_percentile_is_in_the_bucket_of_the_wait_that_it_is() -> None:
    chance = random.Random(1)
    waits = sorted(chance.expovariate(0.2) for _ in range(1_000))
    for share in (0.5, 0.95, 0.99):
        exact = waits[int(share * len(waits)) - 1]
        found = metrics.quantile(counted(waits), share)
        assert found is not None
        upper = next(bound for bound in BOUNDS if exact <= bound)
        lower = max((bound for bound in BOUNDS if bound < exact), default=0)
        assert lower <= found <= upper


def test_beyond_the_last_bound_it_is_that_bound() -> None:
    assert metrics.quantile(counted([1e9]), 0.5) == BOUNDS[-1]


@given(st.lists(st.floats(0, 20_000)), st.lists(st.floats(0, 20_000)))
def test_the_sum_of_two_is_the_histogram_of_both(one: list[float], other: list[float]) -> None:
    assert metrics.add_histograms(counted(one), counted(other)) == counted(one + other)


@given(st.lists(st.floats(0, 20_000), min_size=1))
def test_a_greater_share_never_waits_less(waits: list[float]) -> None:
    counts = counted(waits)
    found = [metrics.quantile(counts, share / 10) or 0 for share in range(1, 11)]
    assert found == sorted(found)


@pytest.mark.parametrize(("waits", "p50"), [([0.05, 0.05], 0.05), ([0.2] * 4, 0.175)])
def test_within_a_bucket_waits_are_spread_evenly(waits: list[float], p50: float) -> None:
    assert metrics.quantile(counted(waits), 0.5) == pytest.approx(p50)
