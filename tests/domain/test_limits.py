"""When a limit allows the next message, and which messages it counts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.limits import Limit, Overflow, describe_period, next_free_at
from domain.states import Category, Channel

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def limit(**fields: Any) -> Limit:
    given = {"maximum": 3, "period": 24 * HOUR, "overflow": Overflow.LATER} | fields
    return Limit(name="daily", channels=frozenset({Channel.EMAIL}), **given)


@pytest.mark.parametrize(
    ("hours_ago", "position", "hours_until"),
    [
        ((), 0, 0),
        ((2, 1), 0, 0),
        ((3, 2, 1), 0, 21),
        ((3, 2, 1), 1, 22),
        ((3, 2, 1), 3, 45),
        ((25, 2, 1), 0, 0),
        ((25, 2, 1), 1, 22),
    ],
)
def test_slot_is_free_again_once_a_use_leaves_the_period(
    hours_ago: tuple[int, ...], position: int, hours_until: int
) -> None:
    uses = [NOON - hours * HOUR for hours in hours_ago]
    at = next_free_at(limit(), uses=uses, position=position, now=NOON)
    assert at == NOON + hours_until * HOUR


def test_gap_spreads_messages() -> None:
    spread = limit(min_gap=HOUR)
    uses = [NOON - HOUR / 2]
    times = [next_free_at(spread, uses=uses, position=p, now=NOON) for p in range(2)]
    assert times == [NOON + HOUR / 2, NOON + HOUR * 1.5]


@given(
    minutes=st.lists(st.integers(0, 3_000), max_size=10),
    position=st.integers(0, 9),
    gap=st.integers(0, 300),
)
def test_time_is_never_before_a_slot_is_free(minutes: list[int], position: int, gap: int) -> None:
    rule = limit(min_gap=timedelta(minutes=gap))
    uses = [NOON - timedelta(minutes=one) for one in minutes][: rule.maximum]
    at = next_free_at(rule, uses=uses, position=position, now=NOON)
    counted = [one for one in uses if one > at - rule.period]
    assert at >= NOON
    assert len(counted) < rule.maximum
    assert not counted or at - max(counted) >= rule.min_gap


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"types": frozenset({"news"})}, True),
        ({"types": frozenset({"other"})}, False),
        ({"categories": frozenset({Category.MARKETING})}, True),
        ({"types": frozenset({"other"}), "categories": frozenset({Category.MARKETING})}, True),
        ({"categories": frozenset({Category.ALERT})}, False),
    ],
)
def test_limit_counts_its_types_and_categories(fields: dict[str, Any], expected: bool) -> None:
    kind = {"type_slug": "news", "category": Category.MARKETING}
    assert limit(**fields).applies_to(**kind, channel=Channel.EMAIL) is expected
    assert not limit(**fields).applies_to(**kind, channel=Channel.PUSH)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(86_400, "1 day"), (604_800, "7 days"), (5_400, "90 minutes"), (61, "61 seconds")],
)
def test_period_is_described_in_its_largest_unit(seconds: int, text: str) -> None:
    assert describe_period(timedelta(seconds=seconds)) == text
