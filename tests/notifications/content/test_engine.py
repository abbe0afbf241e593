"""Filters of our own."""

from datetime import datetime
from typing import Any

import pytest
from liquid.exceptions import FilterArgumentError

from notifications.content.engine import Template, in_zone, pluralize


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.0", " 1 "])
def test_one_is_one(value: Any) -> None:
    assert pluralize(value, "hour", "hours") == "hour"


@pytest.mark.parametrize(
    "value", [0, 2, -1, 1.5, "0", "2", "some", "", None, True, [], {}, 10**400]
)
def test_anything_else_is_several(value: Any) -> None:
    assert pluralize(value, "hour", "hours") == "hours"


@pytest.mark.parametrize(
    ("value", "zone", "shown"),
    [
        ("2026-07-01T14:35:00Z", "UTC", "2026-07-01 14:35"),
        ("2026-07-01T14:35:00Z", "Europe/Lisbon", "2026-07-01 15:35"),
        ("2026-12-01T14:35:00Z", "Europe/Lisbon", "2026-12-01 14:35"),
        ("2026-07-01T14:35:00+05:30", "UTC", "2026-07-01 09:05"),
        ("2026-07-01T14:35:00", "UTC", "2026-07-01 14:35"),
        ("2026-07-01", "Asia/Tokyo", "2026-07-01 09:00"),
        (1_782_916_500, "UTC", "2026-07-01 14:35"),
    ],
)
def test_a_time_is_shown_by_the_clock_of_its_zone(value: Any, zone: str, shown: str) -> None:
    assert f"{in_zone(value, zone):%Y-%m-%d %H:%M}" == shown


def test_the_same_instant_on_two_clocks_is_shown_twice() -> None:
    template = Template("{{ t | in_zone: zone | date: '%H:%M' }}")
    for zone, shown in (("UTC", "14:35"), ("Asia/Tokyo", "23:35"), ("UTC", "14:35")):
        assert template.render({"t": "2026-07-01T14:35:00Z", "zone": zone}) == shown


def test_a_time_has_a_clock_and_no_zone_left() -> None:
    assert in_zone("2026-07-01T14:35:00Z", "Asia/Tokyo") == datetime(2026, 7, 1, 23, 35)


@pytest.mark.parametrize(
    ("value", "zone"),
    [
        *((value, "UTC") for value in ("soon", "", None, True, [], {}, 10**30, "9999")),
        *(
            ("2026-07-01T14:35:00Z", zone)
            for zone in ("Mars/Olympus", "../etc/passwd", "", "a\x00")
        ),
        ("0001-01-01T00:00:00+14:00", "UTC"),
    ],
)
def test_what_is_no_time_and_no_zone_is_told(value: Any, zone: str) -> None:
    with pytest.raises(FilterArgumentError):
        in_zone(value, zone)
