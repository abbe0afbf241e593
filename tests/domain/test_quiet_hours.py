"""The daily period in which a recipient gets only critical notifications."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.quiet_hours import QuietHours
from domain.time import InvalidTimeError
from domain.zones import zone_names
from tests.support.tables import each_case

LONDON = "Europe/London"
zones = st.sampled_from(sorted(zone_names())).map(ZoneInfo)
minutes = st.integers(0, 24 * 60 - 1).map(lambda m: time(m // 60, m % 60))
instants = st.datetimes(datetime(2020, 1, 1), datetime(2036, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def code_of(start: str, end: str, zone: str = "UTC") -> str:
    with pytest.raises(InvalidTimeError) as problem:
        quiet(start, end, zone)
    return problem.value.code


def quiet(start: str, end: str, zone: str = "UTC") -> QuietHours:
    return QuietHours.parse(start=start, end=end, zone=zone)


@each_case(
    "start, end, now, until",
    [
        ("22:00", "07:00", "2026-11-21T21:59:59.999", None),
        ("22:00", "07:00", "2026-11-21T22:00", "2026-11-22T07:00"),
        ("22:00", "07:00", "2026-11-21T23:59:59", "2026-11-22T07:00"),
        ("22:00", "07:00", "2026-11-22T00:00", "2026-11-22T07:00"),
        ("22:00", "07:00", "2026-11-22T06:59:59.999", "2026-11-22T07:00"),
        ("22:00", "07:00", "2026-11-22T07:00", None),
        ("22:00", "07:00", "2026-11-22T12:00", None),
        ("22:00", "07:00", "2026-12-31T23:00", "2027-01-01T07:00"),
        ("13:00", "14:30", "2026-11-21T12:59:59", None),
        ("13:00", "14:30", "2026-11-21T13:00", "2026-11-21T14:30"),
        ("13:00", "14:30", "2026-11-21T14:29:59", "2026-11-21T14:30"),
        ("13:00", "14:30", "2026-11-21T14:30", None),
        ("00:00", "07:00", "2026-11-21T00:00", "2026-11-21T07:00"),
        ("22:00", "00:00", "2026-11-21T23:59:59", "2026-11-22T00:00"),
        ("22:00", "00:00", "2026-11-22T00:00", None),
        ("07:00", "06:59", "2026-11-21T06:59", None),
        ("07:00", "06:59", "2026-11-21T07:00", "2026-11-22T06:59"),
        ("00:00", "00:01", "2026-11-21T00:00:59", "2026-11-21T00:01"),
    ],
)
def test_quiet_hours_include_their_start_and_not_their_end(
    start: str, end: str, now: str, until: str | None
) -> None:
    assert quiet(start, end).until(at(now)) == (at(until) if until else None)


@each_case(
    "zone, now, until",
    [
        ("America/New_York", "2026-11-21T03:00", "2026-11-21T12:00"),
        ("America/New_York", "2026-11-21T02:59", None),
        ("Asia/Kolkata", "2026-11-21T16:30", "2026-11-22T01:30"),
        ("Pacific/Kiritimati", "2026-11-21T08:00", "2026-11-21T17:00"),
    ],
)
def test_quiet_hours_use_their_timezone(zone: str, now: str, until: str | None) -> None:
    assert quiet("22:00", "07:00", zone).until(at(now)) == (at(until) if until else None)


@each_case(
    "end, now, until",
    [
        ("07:00", "2026-03-28T23:00", "2026-03-29T06:00"),
        *((end, "2026-03-28T23:00", "2026-03-29T01:00") for end in ("01:30", "01:00", "02:00")),
        ("07:00", "2026-10-24T22:00", "2026-10-25T07:00"),
    ],
)
def test_night_over_a_clock_change_ends_by_the_new_clock(end: str, now: str, until: str) -> None:
    assert quiet("22:00", end, LONDON).until(at(now)) == at(until)


def test_skipped_start_is_the_next_instant() -> None:
    night = quiet("01:30", "07:00", LONDON)
    assert night.until(at("2026-03-29T00:59:59")) is None
    assert night.until(at("2026-03-29T01:00")) == at("2026-03-29T06:00")


@each_case(
    "now, until",
    [
        ("2026-10-24T22:00", "2026-10-25T00:30"),
        ("2026-10-25T00:29:59", "2026-10-25T00:30"),
        ("2026-10-25T00:30", None),
        ("2026-10-25T01:00", "2026-10-25T01:30"),
        ("2026-10-25T01:29:59", "2026-10-25T01:30"),
        ("2026-10-25T01:30", None),
    ],
)
def test_repeated_end_ends_twice(now: str, until: str | None) -> None:
    night = quiet("22:00", "01:30", LONDON)
    assert night.until(at(now)) == (at(until) if until else None)


@each_case(
    "now, until",
    [
        ("2026-10-03T13:00", "2026-10-03T15:30"),
        ("2026-04-04T14:40", "2026-04-04T14:45"),
        ("2026-04-04T15:05", "2026-04-04T15:15"),
    ],
)
def test_half_hour_clock_change_is_handled(now: str, until: str) -> None:
    ends = {"2026-10": "02:15", "2026-04": "01:45"}
    night = quiet("22:00", ends[now[:7]], "Australia/Lord_Howe")
    assert night.until(at(now)) == at(until)


@given(start=minutes, end=minutes, zone=zones, now=instants)
def test_until_is_never_inside_quiet_hours(
    start: time, end: time, zone: ZoneInfo, now: datetime
) -> None:
    pause = (start.hour - end.hour) * 60 + start.minute - end.minute
    # A pause that a clock change swallows whole does not end one night before the next begins.
    assume(pause % (24 * 60) > 60)
    hours = QuietHours(start=start, end=end, zone=zone)
    until = hours.until(now)
    clock = now.astimezone(zone).time()
    inside = start <= clock < end if start < end else clock >= start or clock < end
    assert (until is not None) == inside
    if until is not None:
        assert now < until < now + timedelta(hours=26)
        assert hours.until(until) is None


@given(start=minutes, end=minutes, zone=zones, now=instants)
def test_until_is_the_exact_end(start: time, end: time, zone: ZoneInfo, now: datetime) -> None:
    assume(start != end)
    hours = QuietHours(start=start, end=end, zone=zone)
    until = hours.until(now)
    if until is not None:
        assert hours.until(max(now, until - timedelta(milliseconds=1))) == until


@each_case("moment", ["22:00", "00:00", "12:30"])
def test_equal_start_and_end_are_refused(moment: str) -> None:
    assert code_of(moment, moment) == "empty_quiet_hours"


@each_case(
    "text",
    [
        "",
        "24:00",
        "7:00",
        "07:60",
        "07:00:00",
        "7am",
        "0700",
        "-1:00",
        " 07:00",
        "07:00\n",
        "\u0660\u0667:00",
        "07.00",
        "99:99",
    ],
)
def test_invalid_time_of_day_is_refused(text: str) -> None:
    for start, end in ((text, "07:00"), ("22:00", text)):
        assert code_of(start, end) == "invalid_time"


@each_case("zone", ["Nowhere/City", "../UTC", "", "BST"])
def test_unknown_timezone_is_refused(zone: str) -> None:
    assert code_of("22:00", "07:00", zone) == "unknown_timezone"
