"""Local times, where clocks are set forward and back."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.time import InvalidTimeError, ResolvedTime, parse_local, resolve_local, zone_names

SECOND = timedelta(seconds=1)
zones = st.sampled_from(sorted(zone_names())).map(ZoneInfo)
locals_ = st.datetimes(datetime(1975, 1, 1), datetime(2037, 12, 31)).map(
    lambda local: local.replace(microsecond=0)
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def resolved(local: str, zone: str) -> ResolvedTime:
    return resolve_local(parse_local(local), ZoneInfo(zone))


@pytest.mark.parametrize(
    ("local", "zone", "instant"),
    [
        ("2026-12-01T09:00", "UTC", "2026-12-01T09:00"),
        ("2026-12-01T09:00", "Europe/Lisbon", "2026-12-01T09:00"),
        ("2026-07-01T09:00", "Europe/Lisbon", "2026-07-01T08:00"),
        ("2026-07-01T09:00:30", "America/New_York", "2026-07-01T13:00:30"),
        ("2026-07-01T09:00", "Asia/Kolkata", "2026-07-01T03:30"),
        ("2026-07-01T09:00", "Asia/Kathmandu", "2026-07-01T03:15"),
        ("2026-07-01T09:00", "Pacific/Kiritimati", "2026-06-30T19:00"),
    ],
)
def test_local_time_is_resolved(local: str, zone: str, instant: str) -> None:
    assert resolved(local, zone) == ResolvedTime(at(instant), is_adjusted=False)


@pytest.mark.parametrize(
    ("local", "zone", "instant"),
    [
        ("2026-03-29T01:00", "Europe/London", "2026-03-29T01:00"),
        ("2026-03-29T01:30", "Europe/London", "2026-03-29T01:00"),
        ("2026-03-29T01:59:59", "Europe/London", "2026-03-29T01:00"),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00"),
        ("2026-03-08T02:30", "America/New_York", "2026-03-08T07:00"),
        ("2026-10-04T02:00", "Australia/Lord_Howe", "2026-10-03T15:30"),
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:30"),
        ("2026-10-04T02:29:59", "Australia/Lord_Howe", "2026-10-03T15:30"),
        ("2026-09-06T00:30", "America/Santiago", "2026-09-06T04:00"),
        ("2026-04-24T00:30", "Africa/Cairo", "2026-04-23T22:00"),
        ("2011-12-30T12:00", "Pacific/Apia", "2011-12-30T10:00"),
    ],
)
def test_skipped_time_is_the_next_instant(local: str, zone: str, instant: str) -> None:
    assert resolved(local, zone) == ResolvedTime(at(instant), is_adjusted=True)


@pytest.mark.parametrize(
    ("local", "zone"),
    [
        ("2026-03-29T00:59:59", "Europe/London"),
        ("2026-03-29T02:00", "Europe/London"),
        ("2026-10-04T01:59:59", "Australia/Lord_Howe"),
        ("2026-10-04T02:30", "Australia/Lord_Howe"),
    ],
)
def test_edges_of_a_gap_exist(local: str, zone: str) -> None:
    assert not resolved(local, zone).is_adjusted


@pytest.mark.parametrize(
    ("local", "zone", "instant"),
    [
        ("2026-10-25T01:00", "Europe/London", "2026-10-25T00:00"),
        ("2026-10-25T01:30", "Europe/London", "2026-10-25T00:30"),
        ("2026-10-25T01:59:59", "Europe/London", "2026-10-25T00:59:59"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30"),
        ("2026-11-01T01:30", "America/New_York", "2026-11-01T05:30"),
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45"),
        ("2026-04-04T23:30", "America/Santiago", "2026-04-05T02:30"),
    ],
)
def test_repeated_time_is_the_first(local: str, zone: str, instant: str) -> None:
    assert resolved(local, zone) == ResolvedTime(at(instant), is_adjusted=False)


def test_hour_after_a_repeated_time_is_unambiguous() -> None:
    assert resolved("2026-10-25T02:00", "Europe/London").at == at("2026-10-25T02:00")


@given(locals_, zones)
def test_every_local_time_in_every_zone_is_resolved(local: datetime, zone: ZoneInfo) -> None:
    found = resolve_local(local, zone)
    shown = found.at.astimezone(zone).replace(tzinfo=None)
    just_before = (found.at - SECOND).astimezone(zone).replace(tzinfo=None)
    if found.is_adjusted:
        assert just_before < local < shown, "the clock jumps over it right here"
    else:
        assert shown == local
        assert found.at.astimezone(zone).fold == 0, "the first of two"


@pytest.mark.parametrize(
    "text",
    [
        *("", "09:00", "2026-12-01", "2026-12-01T9:00", "2026-12-01 09:00", "2026-12-01T09:00Z"),
        *("2026-12-01T09:00+01:00", "2026-12-01T09:00:00.5", "2026-02-30T09:00"),
        *("2026-12-01T24:00", "2026-12-01T09:60", "2026-12-01T09:00:60", "2026-W49-2T09:00"),
        *("2026-12-01T09:0\u0660", "2026-12-01T09:00\n", "0000-12-01T09:00", "10000-12-01T09:00"),
    ],
)
def test_invalid_local_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidTimeError) as problem:
        parse_local(text)
    assert problem.value.code == "invalid_datetime"
