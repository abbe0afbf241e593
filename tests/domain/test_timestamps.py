"""Timestamps, send times and expiry."""

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.time import (
    MAX_AHEAD,
    MAX_TTL,
    PAST_TOLERANCE,
    InvalidTimeError,
    parse_timestamp,
    parse_zone,
    resolve_expiry,
    resolve_send_at,
    truncate_to_milliseconds,
    utc_now,
)
from tests.support.factories.records import NOON

SECOND = timedelta(seconds=1)
ARABIC = {ord(str(n)): 0x0660 + n for n in range(10)}
FULL_WIDTH = {ord(str(n)): 0xFF10 + n for n in range(10)}
MILLISECOND = timedelta(milliseconds=1)
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))


@pytest.mark.parametrize(
    ("text", "instant"),
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "now", "tomorrow", "null", "0", "1764579600", "1764579600000"),
        *("2026-12-01", "2026-12-01Z", "09:00:00Z", "20261201T090000Z", "2026-335T09:00:00Z"),
        *("2026-W49-2T09:00:00Z", "2026-W49-2", "2026-12-01 09:00:00Z", "2026-12-01_09:00:00Z"),
        "2026-12-01T09:00:00Z".translate(FULL_WIDTH),
        "2026-12-01T09:00:00Z".translate(ARABIC),
        *("2026-12-01T09:00:60Z", "2026-12-31T23:59:60Z", "2026-12-01T24:00:00Z"),
        *("2026-12-01T25:00:00Z", "2026-12-01T09:60:00Z", "2026-12-01T09:00Z"),
        *("2026-02-30T09:00:00Z", "2026-02-29T09:00:00Z", "2026-13-01T09:00:00Z"),
        *("2026-00-01T09:00:00Z", "2026-12-00T09:00:00Z", "2026-04-31T00:00:00Z"),
        *("10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "-2026-12-01T09:00:00Z"),
        *("2026-12-01T09:00:00+99:00", "2026-12-01T09:00:00+24:00", "2026-12-01T09:00:00-24:00"),
        *("2026-12-01T09:00:00+1:00", "2026-12-01T09:00:00+0100", "2026-12-01T09:00:00+01"),
        *("2026-12-01T09:00:00+01:00:00", "2026-12-01T09:00:00 +01:00", "2026-12-01T09:00:00UTC"),
        "2026-12-01T09:00:00,5Z",
        *(" 2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z ", "2026-12-01T09:00:00Z\n"),
        *("2026-12-01T09:00:00Z\x00", "2026-12-01T09:00:00Zjunk", "2026-12-01T09:00:00\u221201:00"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        "2026-12-01T09:00:00[Europe/Lisbon]",
    ],
)
def test_invalid_timestamp_is_refused(text: str) -> None:
    with pytest.raises(InvalidTimeError) as problem:
        parse_timestamp(text)
    assert problem.value.code == "invalid_datetime"


def test_offset_over_59_minutes_is_refused() -> None:
    for offset in ("+00:60", "+01:60", "-01:99", "+12:75"):
        with pytest.raises(InvalidTimeError) as problem:
            parse_timestamp(f"2026-12-01T09:00:00{offset}")
        assert problem.value.code == "invalid_datetime"


def test_invalid_fraction_is_not_reported_as_naive() -> None:
    for text in ("2026-12-01T09:00:00.1234567890Z", "2026-12-01T09:00:00.+01:00"):
        with pytest.raises(InvalidTimeError) as problem:
            parse_timestamp(text)
        assert problem.value.code == "invalid_datetime"


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


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Etc/GMT+12"]
)
def test_zone_is_parsed(name: str) -> None:
    assert parse_zone(name).key == name


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "Mars/Olympus", "Europe", "europe/london", "CEST", "+01:00", "UTC+1", "Local"),
        *("../../etc/passwd", "/etc/passwd", "Europe/../Europe/London", "Europe/London/"),
        *("Europe/London\x00", " Europe/London", "C:\\zones", "zone.tab", "posixrules", "a" * 5000),
        "tzdata.zi",
    ],
)
def test_unknown_or_path_like_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidTimeError) as problem:
        parse_zone(name)
    assert problem.value.code == "unknown_timezone"


@pytest.mark.parametrize(
    ("asked", "send_at"),
    [
        (None, NOON),
        (NOON, NOON),
        (NOON - SECOND, NOON),
        (NOON - PAST_TOLERANCE, NOON),
        (NOON + MILLISECOND, NOON + MILLISECOND),
        (NOON + timedelta(days=30), NOON + timedelta(days=30)),
        (NOON + MAX_AHEAD, NOON + MAX_AHEAD),
    ],
    ids=["no time", "now", "just past", "5 minutes past", "soon", "in a month", "in a year"],
)
def test_send_time_is_the_requested_time_or_now(asked: datetime | None, send_at: datetime) -> None:
    assert resolve_send_at(requested=asked, now=NOON) == send_at


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (NOON - PAST_TOLERANCE - MILLISECOND, "in_the_past"),
        (NOON - timedelta(days=4000), "in_the_past"),
        (NOON + MAX_AHEAD + MILLISECOND, "too_far_ahead"),
        (datetime.max.replace(tzinfo=UTC), "too_far_ahead"),
        (datetime.min.replace(tzinfo=UTC), "in_the_past"),
    ],
)
def test_send_time_out_of_range_is_refused(asked: datetime, code: str) -> None:
    with pytest.raises(InvalidTimeError) as problem:
        resolve_send_at(requested=asked, now=NOON)
    assert problem.value.code == code


@given(st.datetimes(datetime(2000, 1, 1), datetime(2050, 1, 1)))
def test_send_time_is_never_before_now_or_the_requested_time(asked: datetime) -> None:
    instant = asked.replace(tzinfo=UTC)
    try:
        send_at = resolve_send_at(requested=instant, now=NOON)
    except InvalidTimeError:
        assert instant < NOON - PAST_TOLERANCE or instant > NOON + MAX_AHEAD
        return
    assert send_at == max(NOON, instant)


@pytest.mark.parametrize(
    ("ttl", "expires_at", "expected"),
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


@pytest.mark.parametrize("ttl", [0, -1, -3600, 2_592_001, 2**31, 2**63 - 1, -(2**63)])
def test_ttl_out_of_range_is_refused(ttl: int) -> None:
    with pytest.raises(InvalidTimeError) as problem:
        resolve_expiry(send_at=NOON, ttl_seconds=ttl, expires_at=None)
    assert problem.value.code == "invalid_ttl"


@pytest.mark.parametrize("expires_at", [NOON, NOON - MILLISECOND, NOON - timedelta(days=1)])
def test_expiry_before_sending_is_refused(expires_at: datetime) -> None:
    with pytest.raises(InvalidTimeError) as problem:
        resolve_expiry(send_at=NOON, ttl_seconds=None, expires_at=expires_at)
    assert problem.value.code == "expires_before_sending"
