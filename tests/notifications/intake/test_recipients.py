"""Whom a request reaches."""

from typing import Any

import pytest

from domain.content import Recipient
from notifications.intake.preparation import resolve_recipient
from notifications.intake.requests import NotificationRecipientRequest
from notifications.validation import ProblemCollector
from recipients.queries import RegisteredRecipient

ADA = RegisteredRecipient(
    user_id="ada",
    email="ada@example.com",
    phone="+351912345678",
    name="Ada",
    locale="pt",
    timezone="Europe/Lisbon",
    preferences={},
)


def resolved(
    person: RegisteredRecipient | None = None, **given: Any
) -> tuple[Recipient, list[tuple[str, str]]]:
    problems = ProblemCollector()
    recipient = resolve_recipient(NotificationRecipientRequest(**given), person, problems)
    return recipient, [(p.pointer, p.code) for p in problems.problems]


def test_a_registered_person_needs_nothing_else() -> None:
    recipient, problems = resolved(ADA)
    assert problems == []
    assert recipient == Recipient(
        email="ada@example.com",
        phone="+351912345678",
        name="Ada",
        locale="pt",
        timezone="Europe/Lisbon",
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "other@example.com"),
        ("phone", "+14155552671"),
        ("name", "Augusta"),
        ("locale", "en-GB"),
        ("timezone", "Europe/London"),
    ],
)
def test_what_the_caller_says_goes_before_what_is_registered(field: str, value: str) -> None:
    recipient, problems = resolved(ADA, **{field: value})
    assert problems == []
    assert getattr(recipient, field) == value
    others = {"email", "phone", "name", "locale", "timezone"} - {field}
    assert all(getattr(recipient, name) == getattr(ADA, name) for name in others)


def test_somebody_unknown_is_what_the_caller_says() -> None:
    recipient, problems = resolved(email="Ada@Example.COM", device_ids=["d1"])
    assert problems == []
    assert recipient == Recipient(email="Ada@example.com", device_ids=("d1",))


def test_nobody_is_nobody() -> None:
    assert resolved() == (Recipient(), [])


def test_a_device_is_named_once() -> None:
    recipient, _ = resolved(device_ids=["b", "a", "b", "c", "a"])
    assert recipient.device_ids == ("b", "a", "c")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"email": "nope"}, ("/recipient/email", "invalid_email")),
        ({"email": ""}, ("/recipient/email", "invalid_email")),
        ({"email": "a@b.c\r\nBcc:"}, ("/recipient/email", "invalid_email")),
        ({"phone": "0912"}, ("/recipient/phone", "invalid_phone")),
        ({"phone": ""}, ("/recipient/phone", "invalid_phone")),
        ({"name": "Ada\r\nBcc: eve@example.com"}, ("/recipient/name", "control_characters")),
        ({"name": "Ada\x00"}, ("/recipient/name", "control_characters")),
        ({"timezone": "Mars/Olympus"}, ("/recipient/timezone", "unknown_timezone")),
        ({"timezone": "../../etc/passwd"}, ("/recipient/timezone", "unknown_timezone")),
        ({"timezone": ""}, ("/recipient/timezone", "unknown_timezone")),
    ],
)
def test_a_bad_field_is_a_problem_with_its_place(
    given: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert resolved(**given)[1] == [problem]


def test_all_bad_fields_are_told_at_once() -> None:
    _, problems = resolved(email="x", phone="x", name="\n", timezone="x")
    assert [pointer for pointer, _ in problems] == [
        "/recipient/email",
        "/recipient/phone",
        "/recipient/name",
        "/recipient/timezone",
    ]
