"""Send times, expiry, and reminders of an event."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from notifications.intake.requests import LocalTime
from recipients.queries import RegisteredRecipient
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.requests import prepared, problems
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("shipped_types")


HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@each_case(
    "scheduled_at, send_at",
    [
        ("2026-11-21T13:00:00Z", NOON + HOUR),
        ("2026-11-21T14:00:00+01:00", NOON + HOUR),
        ("2026-11-21T13:00:00.123456789Z", NOON + HOUR + timedelta(milliseconds=123)),
        ("2026-11-21T11:55:00Z", NOON),
        ("2026-11-21T12:00:00Z", NOON),
        ("2027-11-21T12:00:00Z", NOON + timedelta(days=365)),
    ],
)
def test_scheduled_at_is_the_send_time(scheduled_at: str, send_at: datetime) -> None:
    new = prepared(scheduled_at=scheduled_at).notification
    assert (new.send_at, new.scheduled_at) == (send_at, send_at)
    assert new.purge_at == send_at + timedelta(days=90)
    assert new.created_at == NOON


@each_case(
    "fields, problem",
    [
        ({"scheduled_at": "tomorrow"}, ("/scheduled_at", "invalid_datetime")),
        ({"scheduled_at": "2026-12-01T09:00:00"}, ("/scheduled_at", "naive_datetime")),
        ({"scheduled_at": "2026-11-21T11:54:59Z"}, ("/scheduled_at", "in_the_past")),
        ({"scheduled_at": "2027-11-21T12:00:01Z"}, ("/scheduled_at", "too_far_ahead")),
        ({"ttl": 0}, ("/ttl", "invalid_ttl")),
        ({"ttl": -1}, ("/ttl", "invalid_ttl")),
        ({"ttl": 2_592_001}, ("/ttl", "invalid_ttl")),
        ({"ttl": 2**62}, ("/ttl", "invalid_ttl")),
        ({"expires_at": "never"}, ("/expires_at", "invalid_datetime")),
        ({"expires_at": "2026-12-01T09:00:00"}, ("/expires_at", "naive_datetime")),
        ({"expires_at": "2026-11-21T12:00:00Z"}, ("/expires_at", "expires_before_sending")),
        (
            {"expires_at": "2026-11-21T13:00:00Z", "scheduled_at": "2026-11-21T13:00:00Z"},
            ("/expires_at", "expires_before_sending"),
        ),
        ({"ttl": 60, "expires_at": "2026-11-21T13:00:00Z"}, ("/ttl", "conflict")),
        (
            {
                "scheduled_at": "2026-11-21T13:00:00Z",
                "scheduled_local": LocalTime(at="2026-11-21T13:00"),
            },
            ("/scheduled_local", "conflict"),
        ),
        *(
            ({"scheduled_local": LocalTime(at=text)}, ("/scheduled_local/at", code))
            for text, code in (
                ("tomorrow", "invalid_datetime"),
                ("2026-11-01T09:00", "in_the_past"),
                ("2036-11-01T09:00", "too_far_ahead"),
            )
        ),
        (
            {"scheduled_local": LocalTime(at="2026-12-01T09:00", timezone="Mars/Olympus")},
            ("/scheduled_local/timezone", "unknown_timezone"),
        ),
    ],
)
def test_invalid_time_has_a_pointer(fields: dict[str, Any], problem: tuple[str, str]) -> None:
    assert problems(**fields) == [problem]


@each_case(
    "local, zone, send_at, adjusted",
    [
        ("2026-12-01T09:00", "America/New_York", "2026-12-01T14:00", False),
        ("2026-12-01T09:00", None, "2026-12-01T09:00", False),
        ("2027-03-28T01:30", "Europe/London", "2027-03-28T01:00", True),
        ("2027-10-31T01:30", "Europe/London", "2027-10-31T00:30", False),
    ],
)
def test_local_time_uses_a_zone(local: str, zone: str | None, send_at: str, adjusted: bool) -> None:
    result = prepared(scheduled_local=LocalTime(at=local, timezone=zone))
    assert result.notification.send_at == at(send_at)
    assert result.is_time_adjusted is adjusted


def test_local_time_needs_a_zone() -> None:
    without_zone = RegisteredRecipient(user_id="ada", email="ada@example.com", preferences={})
    assert problems(person=without_zone, scheduled_local=LocalTime(at="2026-12-01T09:00")) == [
        ("/scheduled_local/timezone", "required")
    ]


def test_local_time_at_the_end_of_the_calendar_is_a_problem() -> None:
    ends = (("9999-12-31T23:59", "America/New_York"), ("0001-01-01T00:00", "Asia/Tokyo"))
    for local, zone in ends:
        assert problems(scheduled_local=LocalTime(at=local, timezone=zone))


@each_case(
    "fields, expires_at",
    [
        ({"ttl": 60}, NOON + timedelta(seconds=60)),
        ({"ttl": 60, "scheduled_at": "2026-11-21T13:00:00Z"}, NOON + HOUR + timedelta(seconds=60)),
        ({"expires_at": "2026-11-21T13:00:00Z"}, NOON + HOUR),
        ({"type": "mfa_code"}, NOON + timedelta(seconds=300)),
        ({"type": "mfa_code", "ttl": 60}, NOON + timedelta(seconds=60)),
        ({"type": "mfa_code", "expires_at": "2026-11-21T13:00:00Z"}, NOON + HOUR),
    ],
)
def test_expiry_is_of_request_or_type(fields: dict[str, Any], expires_at: datetime) -> None:
    assert prepared(**fields).notification.expires_at == expires_at


REMINDER = {"type": "contest_reminder", "event_at": "2026-11-22T12:00:00Z"}
EVENT = NOON + 24 * HOUR


def recipient_with(**preferences: Any) -> RegisteredRecipient:
    return RegisteredRecipient(user_id="ada", email="ada@example.com", preferences=preferences)


def sent_at(**fields: Any) -> datetime:
    notification = prepared(**(REMINDER | fields)).notification
    assert notification.scheduled_at == notification.send_at
    return notification.send_at


def test_reminder_lead_time_comes_from_the_type() -> None:
    assert sent_at() == EVENT - 2 * HOUR
    release = {"type": "video_release_schedule", "event_at": "2026-11-24T12:00:00Z"}
    assert sent_at(**release) == NOON + 48 * HOUR


@each_case(
    "preferences, before",
    [
        ({"contest_reminder": {"notify_before": 3600}}, HOUR),
        ({"transactional": {"notify_before": 3600}}, HOUR),
        ({"contest_reminder": {"muted": False}, "transactional": {"notify_before": 60}}, HOUR / 60),
        ({"contest_reminder": {"channels": ["push"]}}, 2 * HOUR),
        ({"video_release_schedule": {"notify_before": 3600}}, 2 * HOUR),
    ],
)
def test_preferred_lead_time_wins(preferences: dict[str, Any], before: timedelta) -> None:
    assert sent_at(person=recipient_with(**preferences)) == EVENT - before


@each_case("event_at", ["2026-11-21T13:00:00Z", "2026-11-21T12:00:00.001Z"])
def test_reminder_is_sent_now_if_only_its_send_time_is_past(event_at: str) -> None:
    assert sent_at(event_at=event_at) == NOON


@each_case(
    "fields, code",
    [
        ({"event_at": "2026-11-21T12:00:00Z"}, "in_the_past"),
        ({"event_at": "2026-11-21T11:59:00Z"}, "in_the_past"),
        ({"event_at": "2027-11-21T14:00:01Z"}, "too_far_ahead"),
        ({"event_at": "2026-11-22T12:00:00"}, "naive_datetime"),
        ({"event_at": "tomorrow"}, "invalid_datetime"),
        ({"scheduled_at": "2026-11-22T10:00:00Z"}, "conflict"),
        ({"type": "alert"}, "not_a_reminder"),
    ],
)
def test_invalid_event_time_is_reported_with_its_pointer(fields: dict[str, Any], code: str) -> None:
    assert problems(**(REMINDER | fields)) == [("/event_at", code)]


@each_case(
    "fields, expires_at",
    [
        ({}, EVENT),
        ({"ttl": 60}, EVENT - 2 * HOUR + HOUR / 60),
        ({"expires_at": "2026-11-22T11:00:00Z"}, EVENT - HOUR),
    ],
)
def test_reminder_expires_when_it_begins(fields: dict[str, Any], expires_at: datetime) -> None:
    assert prepared(**(REMINDER | fields)).notification.expires_at == expires_at


@each_case(
    "preferences, hours",
    [
        ({}, 2),
        ({"contest_reminder": {"notify_before": 9_000}}, 2),
        ({"contest_reminder": {"notify_before": 5_400}}, 1),
        ({"contest_reminder": {"notify_before": 6_600}}, 2),
        ({"contest_reminder": {"notify_before": 60}}, 1),
    ],
)
def test_reminder_data_holds_remaining_hours(preferences: dict[str, Any], hours: int) -> None:
    """The hours are computed, because the client doesn't know the recipient's lead time."""
    data = prepared(person=recipient_with(**preferences), **REMINDER).notification.data
    assert data["hours_until_start"] == hours
    assert data["start_time"] == "2026-11-22T12:00:00.000Z"


def test_given_data_wins_over_reminder_data() -> None:
    given = {"hours_until_start": 99, "contest_name": "Round 900"}
    notification = prepared(**REMINDER, data=given).notification
    assert notification.data == notification.data | given
    assert notification.content.event_at is None


def test_reminder_without_an_event_is_sent_at_once() -> None:
    new = prepared(type="contest_reminder").notification
    assert (new.send_at, new.scheduled_at, new.data) == (NOON, None, {})
