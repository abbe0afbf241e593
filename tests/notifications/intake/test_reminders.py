"""Reminders of an event: when they are sent, until when, and what they may say."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.time import MAX_REMINDER, MIN_REMINDER
from recipients.queries import RegisteredRecipient
from tests.notifications.intake.test_times import HOUR, prepared, problems
from tests.support.factories.records import NOON

pytestmark = pytest.mark.usefixtures("shipped_types")

REMINDER = {"type": "contest_reminder", "event_at": "2026-11-22T12:00:00Z"}
EVENT = NOON + 24 * HOUR


def wishing(**preferences: Any) -> RegisteredRecipient:
    return RegisteredRecipient(user_id="ada", email="ada@example.com", preferences=preferences)


def sent_at(**fields: Any) -> datetime:
    notification = prepared(**(REMINDER | fields)).notification
    assert notification.scheduled_at == notification.send_at
    return notification.send_at


def test_it_is_sent_as_long_before_as_the_type_says() -> None:
    assert sent_at() == EVENT - 2 * HOUR
    release = {"type": "video_release_schedule", "event_at": "2026-11-24T12:00:00Z"}
    assert sent_at(**release) == NOON + 48 * HOUR


@pytest.mark.parametrize(
    ("preferences", "before"),
    [
        ({"contest_reminder": {"notify_before": 3600}}, HOUR),
        ({"transactional": {"notify_before": 3600}}, HOUR),
        ({"contest_reminder": {"muted": False}, "transactional": {"notify_before": 60}}, HOUR / 60),
        ({"contest_reminder": {"channels": ["push"]}}, 2 * HOUR),
        ({"video_release_schedule": {"notify_before": 3600}}, 2 * HOUR),
        ({"contest_reminder": {"notify_before": 1}}, MIN_REMINDER),
        ({"contest_reminder": {"notify_before": True}}, 2 * HOUR),
        ({"contest_reminder": {"notify_before": "1h"}}, 2 * HOUR),
        ({"contest_reminder": 3600}, 2 * HOUR),
    ],
)
def test_the_persons_wish_goes_before_the_type(
    preferences: dict[str, Any], before: timedelta
) -> None:
    assert sent_at(person=wishing(**preferences)) == EVENT - before


def test_no_wish_is_longer_than_a_month() -> None:
    person = wishing(contest_reminder={"notify_before": 10**9})
    event_at = "2027-11-01T12:00:00Z"
    assert sent_at(person=person, event_at=event_at) == at_(event_at) - MAX_REMINDER


@pytest.mark.parametrize("event_at", ["2026-11-21T13:00:00Z", "2026-11-21T12:00:00.001Z"])
def test_it_is_sent_now_if_its_time_is_past_and_the_event_is_not(event_at: str) -> None:
    assert sent_at(event_at=event_at) == NOON


@pytest.mark.parametrize(
    ("fields", "code"),
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
def test_an_event_that_cannot_be_is_a_problem_with_its_place(
    fields: dict[str, Any], code: str
) -> None:
    assert problems(**(REMINDER | fields)) == [("/event_at", code)]


@pytest.mark.parametrize(
    ("fields", "expires_at"),
    [
        ({}, EVENT),
        ({"ttl": 60}, EVENT - 2 * HOUR + HOUR / 60),
        ({"expires_at": "2026-11-22T11:00:00Z"}, EVENT - HOUR),
    ],
)
def test_nobody_is_reminded_of_what_has_begun(fields: dict[str, Any], expires_at: datetime) -> None:
    assert prepared(**(REMINDER | fields)).notification.expires_at == expires_at


@pytest.mark.parametrize(
    ("preferences", "hours"),
    [
        ({}, 2),
        ({"contest_reminder": {"notify_before": 9_000}}, 2),
        ({"contest_reminder": {"notify_before": 9_060}}, 3),
        ({"contest_reminder": {"notify_before": 60}}, 1),
    ],
)
def test_a_reminder_may_say_how_long_it_is_until_the_event(
    preferences: dict[str, Any], hours: int
) -> None:
    """The caller does not know what the person has chosen."""
    data = prepared(person=wishing(**preferences), **REMINDER).notification.data
    assert data == {"hours_until_start": hours, "start_time": "2026-11-22T12:00:00.000Z"}


def test_the_callers_own_words_win() -> None:
    given = {"hours_until_start": 99, "contest_name": "Round 900"}
    data = prepared(**REMINDER, data=given).notification.data
    assert data == {**given, "start_time": "2026-11-22T12:00:00.000Z"}


def test_a_reminder_without_an_event_is_sent_when_the_caller_says() -> None:
    new = prepared(type="contest_reminder").notification
    assert (new.send_at, new.scheduled_at, new.data) == (NOON, None, {})


def at_(text: str) -> datetime:
    return datetime.fromisoformat(text)
