"""What values a body may hold, and what form they have."""

from typing import Any

import pytest

from api.http.body import MAX_PROPERTIES, check_values, convert
from api.http.problems import ApiError
from notifications.intake.requests import NotificationRequest
from notifications.validation import MAX_KEY_LENGTH


def wrong(value: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ApiError) as problem:
        check_values(value)
    assert problem.value.status == 422
    return [(e.pointer, e.code) for e in problem.value.errors]


def misfit(value: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ApiError) as problem:
        convert(value, NotificationRequest)
    assert problem.value.status == 422
    (error,) = problem.value.errors
    return error.pointer, error.code


# The values.


def test_ordinary_values_are_kept() -> None:
    check_values(
        {
            "type": "x",
            "data": {"a": [1, -1, 2**63 - 1, -(2**63), 1.5, True, None, "$password", "{{ x }}"]},
            "content": {"payload": {"k": {"deep": ["\U0001f469\u200d\U0001f467", "e\u0301"]}}},
        }
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"content": {"subject": "a\x00b"}}, ("/content/subject", "nul_character")),
        ({"data": {"a": ["x", "\x00"]}}, ("/data/a/1", "nul_character")),
        ({"data": {"a\x00": 1}}, ("/data/a\x00", "nul_character")),
        ({"data": {"a": "\ud800"}}, ("/data/a", "lone_surrogate")),
        ({"data": {"a": "x\udfff"}}, ("/data/a", "lone_surrogate")),
        ({"data": {"\ud800": 1}}, ("/data/?", "lone_surrogate")),
        ({"data": {"a": 2**63}}, ("/data/a", "integer_too_large")),
        ({"data": {"a": -(2**63) - 1}}, ("/data/a", "integer_too_large")),
        ({"ttl": 10**300}, ("/ttl", "integer_too_large")),
        ({"data": {"$gt": ""}}, ("/data/$gt", "forbidden_key")),
        ({"data": {"$where": "1"}}, ("/data/$where", "forbidden_key")),
        ({"data": {"a.b": 1}}, ("/data/a.b", "forbidden_key")),
        ({"data": {"": 1}}, ("/data/", "forbidden_key")),
        ({"data": {"__proto__": 1}}, ("/data/__proto__", "forbidden_key")),
        ({"data": {"a": [{"b": {"$c": 1}}]}}, ("/data/a/0/b/$c", "forbidden_key")),
        ({"content": {"payload": {"a.b": 1}}}, ("/content/payload/a.b", "forbidden_key")),
        ({"data": {"a/b~c": "\x00"}}, ("/data/a~1b~0c", "nul_character")),
        ({"data": {"k" * 129: 1}}, (f"/data/{'k' * 128}", "key_too_long")),
        ({"k" * 129: 1}, (f"/{'k' * 128}", "key_too_long")),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_value_the_store_cannot_keep_is_told_with_its_place(
    value: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert wrong(value) == [problem]


def test_a_key_of_128_characters_is_kept() -> None:
    check_values({"data": {"k" * MAX_KEY_LENGTH: 1}})


def test_an_operator_in_the_place_of_a_text_is_a_wrong_type() -> None:
    assert misfit({"type": {"$gt": ""}}) == ("/type", "wrong_type")


@pytest.mark.parametrize("count", [MAX_PROPERTIES - 1, MAX_PROPERTIES])
def test_500_properties_are_kept(count: int) -> None:
    check_values({f"k{n}": 1 for n in range(count)})


@pytest.mark.parametrize(
    "value",
    [
        {f"k{n}": 1 for n in range(501)},
        {"data": {f"k{n}": 1 for n in range(500)}},
        {"data": [{"a": {"b": 1}} for _ in range(250)]},
    ],
    ids=["on top", "below", "in a list"],
)
def test_501_properties_at_all_levels_are_too_many(value: dict[str, Any]) -> None:
    assert wrong(value) == [("", "too_many_properties")]


def test_no_more_than_a_hundred_problems_are_told() -> None:
    assert len(wrong({"data": {"a": ["\x00"] * 20_000}})) == 100


def test_the_problems_of_one_among_many_are_told_with_its_place() -> None:
    with pytest.raises(ApiError) as problem:
        check_values({"data": {"a": "\x00"}}, pointer="/items/3")
    assert problem.value.errors[0].pointer == "/items/3/data/a"


# The form.


def test_a_request_of_the_right_form_is_one() -> None:
    request = convert(
        {"type": "alert", "user_id": "ada", "recipient": {"device_ids": ["d"]}, "ttl": 60},
        NotificationRequest,
    )
    assert (request.type, request.user_id, request.ttl) == ("alert", "ada", 60)
    assert request.recipient.device_ids == ["d"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"type": None}, ("/type", "wrong_type")),
        ({"type": 7}, ("/type", "wrong_type")),
        ({"type": ""}, ("/type", "out_of_range")),
        ({"type": "x" * 65}, ("/type", "out_of_range")),
        ({"user_id": 7}, ("/user_id", "wrong_type")),
        ({"user_id": ""}, ("/user_id", "out_of_range")),
        ({"user_id": "x" * 129}, ("/user_id", "out_of_range")),
        ({"user_id": {"$ne": None}}, ("/user_id", "wrong_type")),
        ({"content": {"subject": 7}}, ("/content/subject", "wrong_type")),
        ({"content": {"subject": ["x"]}}, ("/content/subject", "wrong_type")),
        ({"content": {"subject": "x" * 256}}, ("/content/subject", "out_of_range")),
        ({"content": {"payload": []}}, ("/content/payload", "wrong_type")),
        ({"content": {"image_url": "h" * 2049}}, ("/content/image_url", "out_of_range")),
        ({"content": []}, ("/content", "wrong_type")),
        ({"recipient": None}, ("/recipient", "wrong_type")),
        ({"recipient": {"email": ["a@example.com"]}}, ("/recipient/email", "wrong_type")),
        ({"recipient": {"device_ids": ["d", 7]}}, ("/recipient/device_ids/1", "wrong_type")),
        ({"recipient": {"device_ids": ["d", ""]}}, ("/recipient/device_ids/1", "out_of_range")),
        ({"recipient": {"device_ids": ["d"] * 101}}, ("/recipient/device_ids", "out_of_range")),
        ({"channels": "email"}, ("/channels", "wrong_type")),
        ({"channels": [1]}, ("/channels/0", "wrong_type")),
        ({"data": []}, ("/data", "wrong_type")),
        ({"data": None}, ("/data", "wrong_type")),
        ({"ttl": True}, ("/ttl", "wrong_type")),
        ({"ttl": "60"}, ("/ttl", "wrong_type")),
        ({"ttl": 1.5}, ("/ttl", "wrong_type")),
        ({"max_retries": False}, ("/max_retries", "wrong_type")),
        ({"max_retries": -1}, ("/max_retries", "out_of_range")),
        ({"max_retries": 11}, ("/max_retries", "out_of_range")),
        ({"scheduled_at": 1764579600}, ("/scheduled_at", "wrong_type")),
        ({"scheduled_at": "x" * 41}, ("/scheduled_at", "out_of_range")),
        ({"scheduled_local": {}}, ("/scheduled_local/at", "required")),
        ({"scheduled_local": "2026-12-01T09:00"}, ("/scheduled_local", "wrong_type")),
        ({"nope": 1}, ("/nope", "unknown_field")),
        ({"a/b~c": 1}, ("/a~1b~0c", "unknown_field")),
        ({"recipient": {"nope": 1}}, ("/recipient/nope", "unknown_field")),
        ({"content": {"no`pe": 1}}, ("/content/no`pe", "unknown_field")),
        ({"priority": 1}, ("/priority", "wrong_type")),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_field_of_another_form_is_told_with_its_place(
    fields: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert misfit({"type": "alert"} | fields) == problem


def test_a_field_that_is_missing_is_named() -> None:
    assert misfit({"user_id": "ada"}) == ("/type", "required")


@pytest.mark.parametrize("field", ["type", "user_id", "priority"])
def test_a_wrong_value_is_not_repeated(field: str) -> None:
    with pytest.raises(ApiError) as problem:
        convert({"type": "alert", field: ["canary"]}, NotificationRequest)
    assert "canary" not in repr(problem.value.errors)
