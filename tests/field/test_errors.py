"""What the API says about a wrong request: everything at once, and what the client means.

Clients bring along the names of other notification services. Nobody could tell what was wrong:
https://github.com/mailjet/mailjet-apiv3-python/issues/20.
"""

import json
from typing import Any

import pytest

from api.http.field_errors import find_errors
from api.http.field_hints import MAX_HINTS
from api.notifications.bulk_body import read_items
from notifications.intake.requests import NotificationRequest
from notifications.validation import InvalidRequestError
from tests.support.clients.api import App, pointers, request
from tests.support.tables import each_case

ADA = {"email": "ada@example.com"}


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
            "channels": ["mail", "sms"],
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


@pytest.mark.parametrize(
    ("path", "method", "body", "expected"),
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


def test_single_channel_is_told_to_be_a_list(app: App) -> None:
    answer = app.notify(channels="email")
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["detail"]) == (
        "/channels",
        "Expected a list in brackets or `all`.",
    )


@pytest.mark.parametrize(
    ("fields", "needed"),
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


def test_hints_of_a_bulk_are_limited_as_a_whole() -> None:
    item = {"type": "alert", "recipient": {f"emial{n}": n for n in range(240)}}
    found = read_items(json.dumps({"notifications": [item] * 100}).encode()).requests
    problems = [item.problems for item in found if isinstance(item, InvalidRequestError)]
    assert len(problems) == 100
    hinted = [p for some in problems for p in some if "Did you mean" in p.detail]
    assert 0 < len(hinted) <= MAX_HINTS
