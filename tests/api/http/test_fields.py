"""Validation of texts, keys, and times of a request."""

from datetime import datetime, timedelta
from typing import Any

from domain.time import utc_now
from tests.support.clients.api import App, pointers, request
from tests.support.factories.requests import next_clock_change
from tests.support.tables import each_case

CONTROL, URL = "control_characters", "invalid_url"


@each_case(
    "fields, pointer, code",
    [
        ({"content": {"subject": "a\r\nB: b", "body": "x"}}, "/content/subject", CONTROL),
        ({"recipient": {"name": "A\r\nBcc: x"}}, "/recipient/name", CONTROL),
        ({"content": {"subject": "  \u200b ", "body": "x"}}, "/content/subject", "blank"),
        ({"content": {"body": "\u00e4" * (51 * 1024)}}, "/content/body", "too_long"),
        ({"content": {"template_id": "../etc"}}, "/content/template_id", "unknown_template"),
        ({"content": {"reply_to": "a@b.c\r\nBcc: x@y.z"}}, "/content/reply_to", "invalid_email"),
        ({"content": {"body": "x", "deep_link": "javascript:x"}}, "/content/deep_link", URL),
        ({"content": {"body": "x", "image_url": "https://10.0.0.1/"}}, "/content/image_url", URL),
        ({"data": {"order_id": 1, "amount": "1"}}, "/data/video_title", "missing_variable"),
        ({"channels": ["email", "whatsapp"]}, "/recipient/phone", "no_address"),
        ({"channels": ["email", "email"]}, "/channels/1", "duplicate_channel"),
        ({"type": "payment_confirmd"}, "/type", "unknown_type"),
        ({"scheduled_at": "2026-12-01T09:00:00"}, "/scheduled_at", "naive_datetime"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at", "expires_before_sending"),
        ({"ttl": 0}, "/ttl", "invalid_ttl"),
        ({"scheduled_local": {"at": "2099-03-28T01:30"}}, "/scheduled_local/timezone", "required"),
        ({"priority": "urgent"}, "/priority", "unknown_priority"),
    ],
)
def test_invalid_value_is_refused_with_its_pointer(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    answer = app.notify(**fields)
    assert answer.status_code == 422
    assert pointers(answer)[pointer] == code


SCALARS: dict[str, list[str]] = {
    "": ["type", "user_id", "priority", "entity_id", "external_id", "scheduled_at", "expires_at"],
    "recipient": ["email", "phone", "name", "locale", "timezone"],
    "content": ["subject", "body", "template_id", "image_url", "deep_link", "reply_to"],
    "scheduled_local": ["at", "timezone"],
}


@each_case("operator", [{"$gt": ""}, {"$ne": None}, ["ada@example.com"], True, 5])
def test_non_text_is_a_wrong_type_in_every_text_field(app: App, operator: Any) -> None:
    for place, names in [*SCALARS.items(), ("", ["ttl", "max_retries", "event_at"])]:
        for name in names:
            if operator == 5 and name in ("ttl", "max_retries"):
                continue
            within = {"at": "2099-01-01T09:00"} if place == "scheduled_local" else {}
            fields = {place: {**within, name: operator}} if place else {name: operator}
            pointer = f"/{place}/{name}" if place else f"/{name}"
            answer = app.notify(**fields)
            assert (answer.status_code, pointers(answer)) == (422, {pointer: "wrong_type"}), fields


def test_rendered_push_over_4_kb_is_refused(app: App) -> None:
    content = {"subject": "S", "body": "B", "payload": {"fill": "x" * 4_096}}
    fields = {"channels": ["push"], "user_id": "ada", "recipient": ..., "content": content}
    for answer in (app.notify(**fields), app.post("/notifications/preview", request(**fields))):
        assert (answer.status_code, pointers(answer)) == (422, {"/content/payload": "too_long"})
    assert app.notify(**fields | {"channels": ["in_app"]}).status_code == 202


@each_case(
    "text",
    [
        "Ol\u00e1, \u00e7\u00e3o",
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "e\u0301 (combining)",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u0645\u0631\u062d\u0628\u0627",
        "<script>alert(1)</script>",
        "{{ 7 | times: 7 }}",
        "$password",
        "  two  spaces\u00a0kept ",
    ],
)
def test_text_is_returned_unchanged(app: App, stored: Any, text: str) -> None:
    answer = app.notify(content={"subject": text, "body": text}, data={"x": text})
    body = answer.json()
    assert body["content"]["subject"] == text
    assert body["content"]["body"] == text
    assert body["data"]["x"] == text
    assert stored(answer)["content"]["body"] == text


def test_sensitive_data_is_neither_shown_nor_stored_in_content(app: App, stored: Any) -> None:
    answer = app.notify(type="mfa_code", data={"code": "481516"})
    assert answer.status_code == 202
    assert b"481516" not in answer.content
    assert "481516" not in str(stored(answer)["content"])


def test_scheduled_notification_is_due_at_its_time(app: App, stored: Any) -> None:
    answer = app.notify(scheduled_at=(utc_now() + timedelta(hours=2)).isoformat())
    assert answer.json()["status"] == "created"
    assert stored(answer)["due_at"] == datetime.fromisoformat(answer.json()["scheduled_at"])


def test_skipped_local_time_is_the_next_instant(app: App) -> None:
    day = next_clock_change("Europe/London")
    body = app.notify(scheduled_local={"at": f"{day}T01:30", "timezone": "Europe/London"}).json()
    assert body["scheduled_at"] == f"{day}T01:00:00Z"
    assert body["adjusted"] is True
