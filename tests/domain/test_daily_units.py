"""Which texts fit into a client's parts of the day."""

from datetime import UTC, date, datetime, timedelta, timezone

from domain.daily_units import (
    UnitCaps,
    UnitUse,
    UsedUnits,
    day_of,
    end_of_day,
    select_fitting,
)
from tests.support.tables import each_case

DAY = date(2026, 11, 28)
CAPS = UnitCaps(units=10, abroad=4)
NO_CAP = UnitCaps(units=0, abroad=0)


def use(units: int, *, abroad: bool = False) -> UnitUse:
    return UnitUse(units=units, is_abroad=abroad, day=DAY)


@each_case(
    "caps, used, text, refusal",
    [
        (CAPS, (7, 0), use(3), None),
        (CAPS, (8, 0), use(3), "8 of 10 parts are used today, and the text has 3."),
        (CAPS, (5, 4), use(3), None),
        (
            CAPS,
            (5, 4),
            use(1, abroad=True),
            "4 of 4 parts abroad are used today, and the text has 1.",
        ),
        (CAPS, (10, 0), use(1, abroad=True), "10 of 10 parts are used today, and the text has 1."),
        (UnitCaps(units=0, abroad=4), (9_999, 3), use(1, abroad=True), None),
        (UnitCaps(units=10, abroad=0), (8, 8), use(2, abroad=True), None),
        (NO_CAP, (9_999, 9_999), use(9, abroad=True), None),
    ],
)
def test_text_fits_under_both_caps(
    caps: UnitCaps, used: tuple[int, int], text: UnitUse, refusal: str | None
) -> None:
    assert caps.refusal(text, used=UsedUnits(*used)) == refusal


def test_text_longer_than_a_cap_is_the_first_of_its_day() -> None:
    """Otherwise it would wait forever."""
    caps = UnitCaps(units=2, abroad=0)
    refusals, added = select_fitting([use(3), use(1)], used=UsedUnits(), caps=caps)
    assert [bool(refusal) for refusal in refusals] == [False, True]
    assert added == UsedUnits(3, 0)


def test_shorter_text_takes_what_a_longer_one_leaves() -> None:
    texts = [use(3, abroad=True), use(2, abroad=True), use(1, abroad=True), use(3)]
    refusals, added = select_fitting(texts, used=UsedUnits(3, 0), caps=CAPS)
    assert [bool(refusal) for refusal in refusals] == [False, True, False, False]
    assert added == UsedUnits(7, 4)


def test_day_is_that_of_utc() -> None:
    west = timezone(timedelta(hours=-5))
    assert day_of(datetime(2026, 11, 27, 20, tzinfo=west)) == DAY
    assert end_of_day(DAY) == datetime(2026, 11, 29, tzinfo=UTC)


def test_caps_are_false_without_any() -> None:
    assert not NO_CAP
    assert CAPS
