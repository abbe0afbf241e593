"""A problem names every invalid field of a body, and the nearest name of an unknown one."""

from typing import Any

import pytest

from api.http.body import convert
from api.http.field_errors import find_errors
from api.http.field_hints import MAX_HINTS
from api.http.problems import ApiError
from notifications.catalog.definitions import TypeRequest
from notifications.intake.requests import NotificationRequest
from notifications.validation import MAX_PROBLEMS
from tests.support.clients.api import App, pointers
from tests.support.tables import each_case
from tests.support.waiting import computing


def errors_of(value: Any) -> dict[str, str]:
    return {error.pointer: error.code for error in find_errors(value, NotificationRequest)}


def detail_of(name: str) -> str:
    (error,) = find_errors({"type": "alert", name: 1}, NotificationRequest)
    return error.detail


def test_every_invalid_field_is_reported_at_every_level() -> None:
    body = {
        "ttl": "soon",
        "max_retries": 99,
        "recipient": {"phone": 1, "device_ids": ["", 3]},
        "content": {"attachments": [{"url": 1}, {"url": "https://a.example", "filename": ""}]},
        "channels": ["email", 3],
        "data": [],
        "colour": "red",
    }
    assert errors_of(body) == {
        "/type": "required",
        "/ttl": "wrong_type",
        "/max_retries": "out_of_range",
        "/recipient/phone": "wrong_type",
        "/recipient/device_ids/0": "out_of_range",
        "/recipient/device_ids/1": "wrong_type",
        "/content/attachments/0/url": "wrong_type",
        "/content/attachments/0/filename": "required",
        "/content/attachments/1/filename": "out_of_range",
        "/channels/1": "wrong_type",
        "/data": "wrong_type",
        "/colour": "unknown_field",
    }


@each_case(
    "name, suggestion",
    [
        *[(name, "user_id") for name in ("user", "userId", "userid", "user-id", "User_ID")],
        *[("email", "recipient.email"), ("subject", "content.subject"), ("prio", "priority")],
        *[("scheduledAt", "scheduled_at"), ("channel", "channels"), ("expires", "expires_at")],
    ],
)
def test_unknown_field_gets_the_nearest_name(name: str, suggestion: str) -> None:
    assert detail_of(name) == f"Unknown field. Did you mean `{suggestion}`?"


def test_unknown_field_unlike_every_other_gets_no_suggestion() -> None:
    assert detail_of("colour") == "Unknown field."


def test_pointers_escape_names_and_begin_with_the_given_one() -> None:
    body = {"type": "alert", "recipient": {"a/b~c": 1}}
    with pytest.raises(ApiError) as problem:
        convert(body, NotificationRequest, pointer="/notifications/3")
    (error,) = problem.value.errors
    assert error.pointer == "/notifications/3/recipient/a~1b~0c"


def test_no_value_is_repeated() -> None:
    body = {"type": "alert", "ttl": "a-secret", "channels": "a-secret", "data": "a-secret"}
    assert "a-secret" not in str(find_errors(body, NotificationRequest))


def test_many_problems_are_found_in_bounded_time() -> None:
    body = {f"field_{number}": number for number in range(500)}
    with computing(at_most=0.5):
        found = find_errors(body, TypeRequest)
    assert len(found) == MAX_PROBLEMS
    assert not any("Did you mean" in error.detail for error in found[MAX_HINTS:])


def test_each_bulk_item_reports_all_its_invalid_fields(app: App) -> None:
    items = [{"userId": "ada", "ttl": "x"}, {"type": "alert", "channels": 1, "data": 1}]
    answer = app.post(
        "/notifications/bulk", {"notifications": items}, headers={"Idempotency-Key": "1"}
    )
    found = [
        {error["pointer"] for error in result["error"]["errors"]}
        for result in answer.json()["results"]
    ]
    assert found == [{"/type", "/userId", "/ttl"}, {"/channels", "/data"}]


def test_every_invalid_part_of_a_template_is_reported(app: App) -> None:
    parts = {"default": {"subject": 1, "text": "x"}, "pt": {"body": []}}
    answer = app.post("/types/payment_confirmed/templates", {"parts": parts, "notes": ""})
    assert pointers(answer) == {
        "/parts/default/subject": "wrong_type",
        "/parts/default/text": "unknown_field",
        "/parts/pt/body": "wrong_type",
        "/notes": "unknown_field",
    }
