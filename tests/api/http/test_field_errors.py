"""A problem names every invalid field of a body, and the nearest name of an unknown one."""

import json
from typing import Any

import pytest

from api.http.body import convert
from api.http.field_errors import find_errors
from api.http.field_hints import MAX_HINTS
from api.http.problems import ApiError
from api.notifications.bulk_body import read_items
from notifications.catalog.definitions import TypeRequest
from notifications.intake.requests import NotificationRequest
from notifications.validation import MAX_PROBLEMS, InvalidRequestError
from tests.support.clients.api import App, pointers, request
from tests.support.tables import each_case
from tests.support.waiting import computing


def errors_of(value: Any) -> dict[str, str]:
    return {error.pointer: error.code for error in find_errors(value, NotificationRequest)}


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


def hint(name: str, *, inside: str = "", value: Any = 1) -> str:
    body: dict[str, Any] = {"type": "alert"}
    body |= {inside: {name: value}} if inside else {name: value}
    (error,) = find_errors(body, NotificationRequest)
    return error.detail.removeprefix("Unknown field.").strip()


@each_case(
    "name, meant",
    [
        *[("title", "content.subject"), ("message", "content.body"), ("text", "content.body")],
        *[("contestId", "entity_id"), ("metadata_json", "data"), ("userId", "user_id")],
        *[("validChannels", "channels"), ("channel", "channels"), ("retryCount", "max_retries")],
        *[("scheduled_to_send", "scheduled_at"), ("send_at", "scheduled_at"), ("to", "user_id")],
        *[("phone_number", "recipient.phone"), ("email", "recipient.email")],
        *[("personalisation", "data"), ("templateId", "content.template_id")],
        *[("locale", "recipient.locale"), ("deviceToken", "recipient.device_ids")],
        *[("payload", "content.payload"), ("body", "content.body"), ("notificationType", "type")],
        *[(name, "user_id") for name in ("user", "userid", "user-id", "User_ID")],
        *[("subject", "content.subject"), ("prio", "priority"), ("expires", "expires_at")],
        *[("scheduledAt", "scheduled_at")],
    ],
)
def test_field_of_another_vocabulary_is_recognized(name: str, meant: str) -> None:
    assert hint(name) == f"Did you mean `{meant}`?"


@each_case(
    "inside, name, detail",
    [
        ("content", "title", "Did you mean `subject`?"),
        ("content", "message", "Did you mean `body`?"),
        ("content", "templateId", "Did you mean `template_id`?"),
        ("content", "data", "`data` belongs beside the object that holds it."),
        ("recipient", "user_id", "`user_id` belongs beside the object that holds it."),
        ("recipient", "userId", "`user_id` belongs beside the object that holds it."),
        ("recipient", "phone_number", "Did you mean `phone`?"),
        ("recipient", "time_zone", "Did you mean `timezone`?"),
        ("recipient", "device_token", "Did you mean `device_ids`?"),
    ],
)
def test_field_at_the_wrong_place_is_recognized(inside: str, name: str, detail: str) -> None:
    assert hint(name, inside=inside) == detail


@each_case(
    "name, detail",
    [
        ("idempotency_key", "Send it in the header `Idempotency-Key`."),
        ("idempotencyKey", "Send it in the header `Idempotency-Key`."),
        ("status", "The service sets it."),
        ("createdAt", "The service sets it."),
        ("is_sent", "The service sets it."),
        ("deliveryStatus", "The service sets it."),
        ("colour", ""),
        ("xy", ""),
        ("con", ""),
    ],
)
def test_other_field_gets_an_own_hint_or_none(name: str, detail: str) -> None:
    assert hint(name) == detail


def test_structure_ranges_and_values_are_reported_together(app: App) -> None:
    answer = app.post(
        "/notifications",
        {
            "type": "payment_confirmed",
            "recipient": {"email": "ada@example", "phone": "911", "timezone": "Mars"},
            "channels": ["mail", "fax"],
            "priority": "urgent",
            "ttl": 0,
            "content": {"deep_link": "javascript:x"},
            "max_retries": 99,
            "source": 5,
            "colour": "red",
        },
    )
    assert pointers(answer) == {
        "/max_retries": "out_of_range",
        "/source": "wrong_type",
        "/colour": "unknown_field",
        "/recipient/email": "invalid_email",
        "/recipient/phone": "invalid_phone",
        "/recipient/timezone": "unknown_timezone",
        "/channels/0": "unknown_channel",
        "/channels/1": "unknown_channel",
        "/priority": "unknown_priority",
        "/ttl": "invalid_ttl",
        "/content/deep_link": "invalid_url",
    }


def test_unknown_type_hides_no_other_problem(app: App) -> None:
    answer = app.post(
        "/notifications",
        {
            "type": "payment_confirmd",
            "recipient": {"email": "x"},
            "channels": ["mail"],
            "content": {"reply_to": "x", "image_url": "http://x"},
        },
    )
    assert pointers(answer) == {
        "/type": "unknown_type",
        "/recipient/email": "invalid_email",
        "/channels/0": "unknown_channel",
        "/content/reply_to": "invalid_email",
        "/content/image_url": "invalid_url",
    }


@each_case(
    "path, method, body, expected",
    [
        (
            "/devices",
            "PUT",
            {"user_id": "a/b", "token": "x", "platform": "windows"},
            {
                "/token": "unknown_field",
                "/device_token": "required",
                "/user_id": "slash",
                "/platform": "unknown_platform",
            },
        ),
        (
            "/limits/weekly",
            "PUT",
            {"max": 0, "period_seconds": 60, "categories": ["news"], "overflow": "later?"},
            {
                "/max": "out_of_range",
                "/categories/0": "unknown_value",
                "/overflow": "unknown_value",
            },
        ),
        (
            "/callbacks",
            "PUT",
            {"url": "http://x", "events": ["nope"], "secret": "x"},
            {"/secret": "unknown_field", "/url": "not_https", "/events/0": "unknown_event"},
        ),
        (
            "/recipients/ada",
            "PUT",
            {"email": "x", "locale": "?", "attributes": []},
            {"/attributes": "wrong_type", "/email": "invalid_email", "/locale": "invalid_language"},
        ),
    ],
)
def test_other_bodies_too(
    app: App, path: str, method: str, body: Any, expected: dict[str, str]
) -> None:
    answer = app.send(path, json.dumps(body).encode(), method=method)
    assert (answer.status_code, pointers(answer)) == (422, expected)


def test_all_missing_variables_are_named_with_their_near_misses(app: App) -> None:
    """https://github.com/alphagov/notifications-api/pull/1331"""
    given = {"orderId": 1, "videoTitle": "Sunrise", "amout": "49.90"}
    answer = app.notify(data=given)
    assert answer.status_code == 422
    details = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
    assert {error["code"] for error in answer.json()["errors"]} == {"missing_variable"}
    assert set(details) == {"/data/order_id", "/data/video_title", "/data/amount"}
    for pointer, near in (
        ("/data/order_id", "orderId"),
        ("/data/video_title", "videoTitle"),
        ("/data/amount", "amout"),
    ):
        assert details[pointer].endswith(f" Is it `{near}`?")
    alone = app.notify(data={**request()["data"], "amount": ..., "x": 1} | {"amount": 1})
    assert alone.status_code == 202


@each_case(
    "fields, needed",
    [
        ({"type": "payment_confirmed"}, "`recipient.email`"),
        ({"type": "alert", "content": {"subject": "s", "body": "b"}}, "`user_id`"),
        ({"recipient": {"name": "Ada"}}, "`recipient.email`"),
    ],
)
def test_request_without_a_recipient_says_what_to_send(
    app: App, fields: dict[str, Any], needed: str
) -> None:
    answer = app.post("/notifications", {**request(recipient=...), **fields})
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/recipient", "no_address")
    assert error["detail"].startswith("No channel can reach this recipient. Send ")
    assert needed in error["detail"]


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


def test_hints_of_a_bulk_are_limited_as_a_whole() -> None:
    item = {"type": "alert", "recipient": {f"emial{n}": n for n in range(240)}}
    found = read_items(json.dumps({"notifications": [item] * 100}).encode()).requests
    problems = [item.problems for item in found if isinstance(item, InvalidRequestError)]
    assert len(problems) == 100
    hinted = [p for some in problems for p in some if "Did you mean" in p.detail]
    assert 0 < len(hinted) <= MAX_HINTS


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


def test_single_channel_is_told_to_be_a_list(app: App) -> None:
    (error,) = app.notify(channels="email").json()["errors"]
    assert error["detail"] == "Expected a list in brackets or `all`."
