"""The figures of hours, summed by MongoDB over what a page does not tell apart."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics import metrics
from analytics.metrics import MetricValue
from analytics.models import Interval

pytestmark = pytest.mark.usefixtures("db")
NOW = datetime.now(UTC)
HOUR = metrics.interval_start(Interval.HOUR, NOW)
BEFORE = HOUR - timedelta(hours=1)


def figure(
    metric: str, value: int, *, at: datetime = HOUR, waits: list[int] | None = None, **told: str
) -> MetricValue:
    """Return a figure of an hour."""
    return MetricValue(
        metric=metric,
        dimensions=told,
        value=value,
        timestamp=at,
        histogram=waits,
        seconds=None if waits is None else 2.0,
    )


def summed(*by: str) -> list[MetricValue]:
    """Return what was sent and how long it waited, summed."""
    return metrics.read_summed(
        Interval.HOUR, since=BEFORE, until=NOW, metrics=["sent", "latency"], by=by
    )


@pytest.fixture(autouse=True)
def stored() -> None:
    """Store what was sent in two hours, of two types on two channels."""
    figures = [
        figure("sent", 1, channel="email", type="a"),
        figure("sent", 2, channel="email", type="b"),
        figure("sent", 4, channel="push", type="a"),
        figure("sent", 8, at=BEFORE, channel="email", type="a"),
        figure("failed", 16, channel="email", type="a"),
        figure("latency", 1, waits=[1, 0, 2], channel="email", type="a"),
        figure("latency", 2, waits=[0, 3, 1], channel="email", type="b"),
    ]
    metrics.replace(Interval.HOUR, [HOUR, BEFORE], figures, now=NOW)


def test_the_oldest_come_first_each_by_what_is_told_apart() -> None:
    found = [one for one in summed("channel") if one.metric == "sent"]
    assert [one.timestamp for one in found] == [BEFORE, HOUR, HOUR]
    assert {(one.timestamp, one.dimension): one.value for one in found} == {
        (BEFORE, "channel=email"): 8,
        (HOUR, "channel=email"): 3,
        (HOUR, "channel=push"): 4,
    }
    assert {one.histogram for one in found} == {None}


def test_waits_are_summed_too() -> None:
    (found,) = (one for one in summed("channel") if one.metric == "latency")
    assert found.histogram is not None
    assert found.histogram[:3] == [1, 3, 3]
    assert (found.value, found.seconds) == (3, 4.0)


def test_what_a_figure_is_not_told_by_is_left_out() -> None:
    (found,) = (one for one in summed("status") if one.metric == "latency")
    assert found.dimensions == {}
