"""Timestamps, send times and expiry, and local times."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.time import (
    MAX_AHEAD,
    MAX_TTL,
    PAST_TOLERANCE,
    InvalidTimeError,
    ResolvedTime,
    parse_local,
    parse_timestamp,
    parse_zone,
    resolve_expiry,
    resolve_local,
    resolve_send_at,
    truncate_to_milliseconds,
    utc_now,
)
from domain.zones import zone_names
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.tables import each_case

SECOND, MILLISECOND = timedelta(seconds=1), timedelta(milliseconds=1)
ARABIC = {ord(str(n)): 0x0660 + n for n in range(10)}
FULL_WIDTH = {ord(str(n)): 0xFF10 + n for n in range(10)}
LONDON = "Europe/London"
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
zones = st.sampled_from(sorted(zone_names())).map(ZoneInfo)
minutes = st.integers(0, 24 * 60 - 1).map(lambda m: time(m // 60, m % 60))
instants = st.datetimes(datetime(2020, 1, 1), datetime(2036, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
locals_ = st.datetimes(datetime(1975, 1, 1), datetime(2037, 12, 31)).map(
    lambda local: local.replace(microsecond=0)
)


def code_of(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> str:
    with pytest.raises(InvalidTimeError) as problem:
        call(*arguments, **keywords)
    return problem.value.code


@each_case(
    "text, instant",
    [
        ("2026-12-01T09:00:00Z", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01t09:00:00z", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01T09:00:00+00:00", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01T09:00:00-00:00", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01T09:00:00+01:00", datetime(2026, 12, 1, 8, tzinfo=UTC)),
        ("2026-12-01T09:00:00-05:30", datetime(2026, 12, 1, 14, 30, tzinfo=UTC)),
        ("2026-12-01T00:30:00+14:00", datetime(2026, 11, 30, 10, 30, tzinfo=UTC)),
        ("2028-02-29T00:00:00Z", datetime(2028, 2, 29, tzinfo=UTC)),
        ("2026-12-01T09:00:00.5Z", datetime(2026, 12, 1, 9, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-12-01T09:00:00.12Z", datetime(2026, 12, 1, 9, 0, 0, 120_000, tzinfo=UTC)),
        ("2026-12-01T09:00:00.123456Z", datetime(2026, 12, 1, 9, 0, 0, 123_000, tzinfo=UTC)),
        ("2026-12-01T09:00:00.999999999Z", datetime(2026, 12, 1, 9, 0, 0, 999_000, tzinfo=UTC)),
    ],
)
def test_timestamp_is_parsed(text: str, instant: datetime) -> None:
    assert parse_timestamp(text) == instant
    assert parse_timestamp(text).tzinfo is UTC


@each_case(
    "text",
    [
        "2026-12-01T09:00:00",
        "2026-12-01T09:00",
        "2026-12-01T09:00:00.123",
        "2026-12-01T09:00:00.123456789",
    ],
)
def test_timestamp_without_offset_is_naive(text: str) -> None:
    with pytest.raises(InvalidTimeError, match="time zone is missing") as problem:
        parse_timestamp(text)
    assert problem.value.code == "naive_datetime"


@each_case(
    "text",
    [
        "",
        " ",
        "now",
        "tomorrow",
        "null",
        "0",
        "1764579600",
        "1764579600000",
        "2026-12-01",
        "2026-12-01Z",
        "09:00:00Z",
        "20261201T090000Z",
        "2026-335T09:00:00Z",
        "2026-W49-2T09:00:00Z",
        "2026-W49-2",
        "2026-12-01 09:00:00Z",
        "2026-12-01_09:00:00Z",
        "2026-12-01T09:00:00Z".translate(FULL_WIDTH),
        "2026-12-01T09:00:00Z".translate(ARABIC),
        "2026-12-01T09:00:60Z",
        "2026-12-31T23:59:60Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T25:00:00Z",
        "2026-12-01T09:60:00Z",
        "2026-12-01T09:00Z",
        "2026-02-30T09:00:00Z",
        "2026-02-29T09:00:00Z",
        "2026-13-01T09:00:00Z",
        "2026-00-01T09:00:00Z",
        "2026-12-00T09:00:00Z",
        "2026-04-31T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "-2026-12-01T09:00:00Z",
        "2026-12-01T09:00:00+99:00",
        "2026-12-01T09:00:00+24:00",
        "2026-12-01T09:00:00-24:00",
        "2026-12-01T09:00:00+1:00",
        "2026-12-01T09:00:00+0100",
        "2026-12-01T09:00:00+01",
        "2026-12-01T09:00:00+01:00:00",
        "2026-12-01T09:00:00 +01:00",
        "2026-12-01T09:00:00UTC",
        "2026-12-01T09:00:00,5Z",
        " 2026-12-01T09:00:00Z",
        "2026-12-01T09:00:00Z ",
        "2026-12-01T09:00:00Z\n",
        "2026-12-01T09:00:00Z\x00",
        "2026-12-01T09:00:00Zjunk",
        "2026-12-01T09:00:00\u221201:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-12-01T09:00:00[Europe/Lisbon]",
        *(f"2026-12-01T09:00:00{offset}" for offset in ("+00:60", "+01:60", "-01:99", "+12:75")),
        "2026-12-01T09:00:00.1234567890Z",
        "2026-12-01T09:00:00.+01:00",
    ],
)
def test_invalid_timestamp_is_refused(text: str) -> None:
    assert code_of(parse_timestamp, text) == "invalid_datetime"


@given(st.datetimes(datetime(1970, 1, 2), datetime(2999, 12, 30)), offsets)
def test_timestamp_round_trips(local: datetime, zone: timezone) -> None:
    moment = local.replace(tzinfo=zone)
    assert parse_timestamp(moment.isoformat()) == truncate_to_milliseconds(moment)


@given(
    st.text(max_size=40)
    | st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})"
    )
)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidTimeError):
        assert parse_timestamp(text).tzinfo is UTC


def test_instants_are_truncated_to_milliseconds() -> None:
    assert truncate_to_milliseconds(NOON.replace(microsecond=999_999)).microsecond == 999_000


def test_utc_now_has_milliseconds() -> None:
    before = datetime.now(UTC)
    now = utc_now()
    assert now.tzinfo is UTC
    assert now.microsecond % 1000 == 0
    assert before - MILLISECOND <= now <= datetime.now(UTC)


@each_case(
    "name", ["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Etc/GMT+12"]
)
def test_zone_is_parsed(name: str) -> None:
    assert parse_zone(name).key == name


@each_case(
    "name",
    [
        "",
        " ",
        "Mars/Olympus",
        "Europe",
        "CEST",
        "+01:30",
        "UTC+15",
        "Local",
        "../../etc/passwd",
        "/etc/passwd",
        "Europe/../Europe/London",
        "Europe/London/",
        "Europe/London\x00",
        "Europe/ London",
        "C:\\zones",
        "zone.tab",
        "posixrules",
        "a" * 5000,
        "tzdata.zi",
        "localtime",
        "Factory",
    ],
)
def test_unknown_or_path_like_zone_is_refused(name: str) -> None:
    assert code_of(parse_zone, name) == "unknown_timezone"


@each_case(
    "asked, send_at",
    [
        *((asked, NOON) for asked in (None, NOON, NOON - SECOND, NOON - PAST_TOLERANCE)),
        (NOON + MILLISECOND, NOON + MILLISECOND),
        (NOON + timedelta(days=30), NOON + timedelta(days=30)),
        (NOON + MAX_AHEAD, NOON + MAX_AHEAD),
    ],
)
def test_send_time_is_the_requested_time_or_now(asked: datetime | None, send_at: datetime) -> None:
    assert resolve_send_at(requested=asked, now=NOON) == send_at


@each_case(
    "asked, code",
    [
        (NOON - PAST_TOLERANCE - MILLISECOND, "in_the_past"),
        (NOON - timedelta(days=4000), "in_the_past"),
        (NOON + MAX_AHEAD + MILLISECOND, "too_far_ahead"),
        (datetime.max.replace(tzinfo=UTC), "too_far_ahead"),
        (datetime.min.replace(tzinfo=UTC), "in_the_past"),
    ],
)
def test_send_time_out_of_range_is_refused(asked: datetime, code: str) -> None:
    assert code_of(resolve_send_at, requested=asked, now=NOON) == code


@given(st.datetimes(datetime(2000, 1, 1), datetime(2050, 1, 1)))
def test_send_time_is_never_before_now_or_the_requested_time(asked: datetime) -> None:
    instant = asked.replace(tzinfo=UTC)
    try:
        send_at = resolve_send_at(requested=instant, now=NOON)
    except InvalidTimeError:
        assert instant < NOON - PAST_TOLERANCE or instant > NOON + MAX_AHEAD
        return
    assert send_at == max(NOON, instant)


@each_case(
    "ttl, expires_at, expected",
    [
        (None, None, None),
        (1, None, NOON + SECOND),
        (3600, None, NOON + timedelta(hours=1)),
        (2_592_000, None, NOON + MAX_TTL),
        (None, NOON + MILLISECOND, NOON + MILLISECOND),
        (None, NOON + timedelta(days=1), NOON + timedelta(days=1)),
    ],
)
def test_expiry_is_the_ttl_or_the_given_time(
    ttl: int | None, expires_at: datetime | None, expected: datetime | None
) -> None:
    assert resolve_expiry(send_at=NOON, ttl_seconds=ttl, expires_at=expires_at) == expected


@each_case("ttl", [0, -1, -3600, 2_592_001, 2**31, 2**63 - 1, -(2**63)])
def test_ttl_out_of_range_is_refused(ttl: int) -> None:
    assert code_of(resolve_expiry, send_at=NOON, ttl_seconds=ttl, expires_at=None) == "invalid_ttl"


@each_case("expires_at", [NOON, NOON - MILLISECOND, NOON - timedelta(days=1)])
def test_expiry_before_sending_is_refused(expires_at: datetime) -> None:
    code = code_of(resolve_expiry, send_at=NOON, ttl_seconds=None, expires_at=expires_at)
    assert code == "expires_before_sending"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def resolved(local: str, zone: str) -> ResolvedTime:
    return resolve_local(parse_local(local), ZoneInfo(zone))


@each_case(
    "local, zone, instant",
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


@each_case(
    "local, zone, instant",
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


@each_case(
    "local, zone",
    [
        ("2026-03-29T00:59:59", "Europe/London"),
        ("2026-03-29T02:00", "Europe/London"),
        ("2026-10-04T01:59:59", "Australia/Lord_Howe"),
        ("2026-10-04T02:30", "Australia/Lord_Howe"),
    ],
)
def test_edges_of_a_gap_exist(local: str, zone: str) -> None:
    assert not resolved(local, zone).is_adjusted


@each_case(
    "local, zone, instant",
    [
        ("2026-10-25T01:00", "Europe/London", "2026-10-25T00:00"),
        ("2026-10-25T01:30", "Europe/London", "2026-10-25T00:30"),
        ("2026-10-25T01:59:59", "Europe/London", "2026-10-25T00:59:59"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30"),
        ("2026-11-01T01:30", "America/New_York", "2026-11-01T05:30"),
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45"),
        ("2026-04-04T23:30", "America/Santiago", "2026-04-05T02:30"),
        # The hour after it is unambiguous.
        ("2026-10-25T02:00", "Europe/London", "2026-10-25T02:00"),
    ],
)
def test_repeated_time_is_the_first(local: str, zone: str, instant: str) -> None:
    assert resolved(local, zone) == ResolvedTime(at(instant), is_adjusted=False)


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


@each_case(
    "text",
    [
        "",
        "09:00",
        "2026-12-01",
        "2026-12-01T9:00",
        "2026-12-01 09:00",
        "2026-12-01T09:00Z",
        "2026-12-01T09:00+01:00",
        "2026-12-01T09:00:00.5",
        "2026-02-30T09:00",
        "2026-12-01T24:00",
        "2026-12-01T09:60",
        "2026-12-01T09:00:60",
        "2026-W49-2T09:00",
        "2026-12-01T09:0\u0660",
        "2026-12-01T09:00\n",
        "0000-12-01T09:00",
        "10000-12-01T09:00",
    ],
)
def test_invalid_local_time_is_refused(text: str) -> None:
    assert code_of(parse_local, text) == "invalid_datetime"
