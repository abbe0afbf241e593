"""Metrics: latency histograms and sums over hours."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring import metrics
from monitoring.metrics import BOUNDS, MetricValue
from monitoring.models import Interval
from tests.support.tables import each_case


def counted(waits: list[float]) -> list[int]:
    counts = metrics.empty_histogram()
    for wait in waits:
        counts[next((n for n, bound in enumerate(BOUNDS) if wait <= bound), len(BOUNDS))] += 1
    return counts


def test_empty_histogram_has_no_quantile() -> None:
    assert metrics.quantile(metrics.empty_histogram(), 0.95) is None


def test_quantile_is_in_the_bucket_of_the_exact_value() -> None:
    rng = random.Random(1)
    waits = sorted(rng.expovariate(0.2) for _ in range(1_000))
    for share in (0.5, 0.95, 0.99):
        exact = waits[int(share * len(waits)) - 1]
        found = metrics.quantile(counted(waits), share)
        assert found is not None
        upper = next(bound for bound in BOUNDS if exact <= bound)
        assert max((bound for bound in BOUNDS if bound < exact), default=0) <= found <= upper


def test_quantile_beyond_the_last_bound_is_that_bound() -> None:
    assert metrics.quantile(counted([1e9]), 0.5) == BOUNDS[-1]


@given(st.lists(st.floats(0, 20_000)), st.lists(st.floats(0, 20_000)))
def test_sum_of_two_is_the_histogram_of_both(one: list[float], other: list[float]) -> None:
    assert metrics.add_histograms(counted(one), counted(other)) == counted(one + other)


@given(st.lists(st.floats(0, 20_000), min_size=1))
def test_quantiles_never_decrease(waits: list[float]) -> None:
    counts = counted(waits)
    found = [metrics.quantile(counts, share / 10) or 0 for share in range(1, 11)]
    assert found == sorted(found)


@each_case("waits, p50", [([0.05, 0.05], 0.05), ([0.2] * 4, 0.175)])
def test_values_are_spread_evenly_within_a_bucket(waits: list[float], p50: float) -> None:
    assert metrics.quantile(counted(waits), 0.5) == pytest.approx(p50)


NOW = datetime.now(UTC)
HOUR = metrics.interval_start(Interval.HOUR, NOW)
BEFORE = HOUR - timedelta(hours=1)


def metric_value(
    metric: str, value: int, *, at: datetime = HOUR, waits: list[int] | None = None, **by: str
) -> MetricValue:
    latency = {"histogram": waits, "seconds": None if waits is None else 2.0}
    return MetricValue(metric=metric, dimensions=by, value=value, timestamp=at, **latency)


def summed(*by: str) -> list[MetricValue]:
    return metrics.read_summed(
        Interval.HOUR, since=BEFORE, until=NOW, metrics=["sent", "latency"], by=by
    )


@pytest.fixture
def stored() -> None:
    """Store two hours of two types on two channels."""
    values = [
        metric_value("sent", 1, channel="email", type="a"),
        metric_value("sent", 2, channel="email", type="b"),
        metric_value("sent", 4, channel="push", type="a"),
        metric_value("sent", 8, at=BEFORE, channel="email", type="a"),
        metric_value("failed", 16, channel="email", type="a"),
        metric_value("latency", 1, waits=[1, 0, 2], channel="email", type="a"),
        metric_value("latency", 2, waits=[0, 3, 1], channel="email", type="b"),
    ]
    metrics.replace(Interval.HOUR, [HOUR, BEFORE], values, now=NOW)


@pytest.mark.usefixtures("stored", "db")
def test_sums_are_oldest_first_and_grouped_by_dimension() -> None:
    found = [item for item in summed("channel") if item.metric == "sent"]
    assert [item.timestamp for item in found] == [BEFORE, HOUR, HOUR]
    assert {(item.timestamp, item.dimension): item.value for item in found} == {
        (BEFORE, "channel=email"): 8,
        (HOUR, "channel=email"): 3,
        (HOUR, "channel=push"): 4,
    }
    assert {item.histogram for item in found} == {None}


@pytest.mark.usefixtures("stored", "db")
def test_histograms_are_summed() -> None:
    (found,) = (item for item in summed("channel") if item.metric == "latency")
    assert found.histogram is not None
    assert found.histogram[:3] == [1, 3, 3]
    assert (found.value, found.seconds) == (3, 4.0)


@pytest.mark.usefixtures("stored", "db")
def test_missing_dimension_is_left_out() -> None:
    (found,) = (item for item in summed("status") if item.metric == "latency")
    assert found.dimensions == {}
