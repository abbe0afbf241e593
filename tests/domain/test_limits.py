"""When a limit allows the next message, and which messages it counts."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.channels import Channel
from domain.limits import Counter, Limit, Overflow, describe_period, next_allowed, plan
from domain.states import Category
from tests.support.tables import each_case

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def limit(**fields: Any) -> Limit:
    given = {"maximum": 3, "period": 24 * HOUR, "overflow": Overflow.LATER} | fields
    return Limit(name="daily", channels=frozenset({Channel.EMAIL}), **given)


@each_case(
    "taken, fields, expected",
    [
        ((), {}, 0),
        ((-2, -1), {}, 0),
        ((-3, -2, -1), {}, 21),
        ((-25, -2, -1), {}, 0),
        # A planned message takes the slot that would be free.
        ((-3, -2, -1, 21), {}, 22),
        ((-25, -2, -1, 0), {}, 22),
        # A slot that no earlier message needs is used.
        ((-3, 20), {}, 0),
        ((-23, -22, 20), {}, 0),
        ((-23, -22, -1, 1, 2), {}, 23),
        ((-0.5,), {"min_gap": HOUR}, 0.5),
        ((-0.5, 0.5), {"min_gap": HOUR}, 1.5),
        ((-2, 3), {"min_gap": HOUR}, 0),
        ((-2, 0.5, 1.5), {"min_gap": HOUR, "maximum": 9}, 2.5),
        ((), {"maximum": 0}, 24),
    ],
)
def test_next_slot_is_the_first_that_no_other_message_needs(
    taken: tuple[float, ...], fields: dict[str, Any], expected: float
) -> None:
    times = [NOON + hours * HOUR for hours in taken]
    at = next_allowed(limit(**fields), taken=times, not_before=NOON)
    assert at == NOON + expected * HOUR


@given(
    minutes=st.lists(st.integers(-3_000, 3_000), max_size=10),
    maximum=st.integers(1, 4),
    gap=st.integers(0, 300),
)
def test_slot_is_free_and_no_earlier_one_is(minutes: list[int], maximum: int, gap: int) -> None:
    rule = limit(maximum=maximum, min_gap=timedelta(minutes=gap))
    taken = [NOON + timedelta(minutes=minute) for minute in minutes]

    def is_free(at: datetime) -> bool:
        spans = (
            [other for other in [*taken, at] if start <= other < start + rule.period]
            for start in [*taken, at]
            if start <= at < start + rule.period
        )
        is_apart = all(abs(at - other) >= rule.min_gap for other in taken)
        return is_apart and all(len(span) <= rule.maximum for span in spans)

    found = next_allowed(rule, taken=taken, not_before=NOON)
    assert is_free(found)
    waited = int((found - NOON).total_seconds() // 60)
    assert not any(is_free(NOON + timedelta(minutes=number)) for number in range(waited))


@each_case(
    "fields, expected",
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


@each_case(
    "seconds, text",
    [(86_400, "1 day"), (604_800, "7 days"), (5_400, "90 minutes"), (61, "61 seconds")],
)
def test_period_is_described_in_its_largest_unit(seconds: int, text: str) -> None:
    assert describe_period(timedelta(seconds=seconds)) == text


@each_case("others", [0, 1, 2])
def test_plan_of_a_limit_that_allows_nothing_ends(others: int) -> None:
    none = Counter(limit=limit(maximum=0), uses=[], line=[])
    counters = [none, *[Counter(limit=limit(), uses=[], line=[])] * others]
    planned = plan(counters, delivery_id="a", due_at=NOON, now=NOON)
    assert (planned.at, planned.refusing, planned.decisive) == (NOON + 24 * HOUR, [none], none)
