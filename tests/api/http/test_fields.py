"""Texts, numbers and keys in a request."""

from typing import Any

import pytest

from tests.support.clients.api import App, pointers, request

TITLE = {"body": "Hello"}


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"content": {"subject": 5, "body": "x"}}, "/content/subject", "wrong_type"),
        ({"content": {"subject": True, "body": "x"}}, "/content/subject", "wrong_type"),
        ({"content": {"subject": "a\x00b", "body": "x"}}, "/content/subject", "nul_character"),
        ({"data": {"x": "a\x00b"}}, "/data/x", "nul_character"),
        ({"data": {"a\x00b": 1}}, "/data/a\x00b", "nul_character"),
        ({"content": {"subject": "a\nb", "body": "x"}}, "/content/subject", "control_characters"),
        (
            {"content": {"subject": "a\r\nBcc: b", "body": "x"}},
            "/content/subject",
            "control_characters",
        ),
        ({"content": {"subject": "a\x1bb", "body": "x"}}, "/content/subject", "control_characters"),
        (
            {"recipient": {"email": "a@b.example", "name": "A\r\nBcc: x"}},
            "/recipient/name",
            "control_characters",
        ),
        ({"content": {"subject": "", "body": "x"}}, "/content/subject", "blank"),
        ({"content": {"subject": "  \u200b ", "body": "x"}}, "/content/subject", "blank"),
        ({"content": {"body": "   "}}, "/content/body", "blank"),
        ({"content": {"subject": "x" * 256, "body": "x"}}, "/content/subject", "out_of_range"),
        ({"content": {"body": "x" * (100 * 1024 + 1)}}, "/content/body", "too_long"),
        ({"content": {"body": "\u00e4" * (51 * 1024)}}, "/content/body", "too_long"),
        ({"data": {"n": 2**63}}, "/data/n", "integer_too_large"),
        ({"data": {"n": -(2**63) - 1}}, "/data/n", "integer_too_large"),
        ({"ttl": True}, "/ttl", "wrong_type"),
        ({"ttl": "60"}, "/ttl", "wrong_type"),
        ({"ttl": 1.5}, "/ttl", "wrong_type"),
        ({"max_retries": True}, "/max_retries", "wrong_type"),
        ({"max_retries": 11}, "/max_retries", "out_of_range"),
        ({"max_retries": -1}, "/max_retries", "out_of_range"),
        ({"user_id": {"$ne": None}}, "/user_id", "wrong_type"),
        ({"data": {"$where": "1"}}, "/data/$where", "forbidden_key"),
        ({"data": {"a.b": 1}}, "/data/a.b", "forbidden_key"),
        ({"data": {"x": [{"__proto__": 1}]}}, "/data/x/0/__proto__", "forbidden_key"),
        (
            {"content": {"body": "x", "payload": {"$set": 1}}},
            "/content/payload/$set",
            "forbidden_key",
        ),
        ({"user_id": ""}, "/user_id", "out_of_range"),
        ({"user_id": "x" * 129}, "/user_id", "out_of_range"),
        ({"priority": "urgent"}, "/priority", "unknown_priority"),
    ],
)
def test_a_bad_value_is_refused_with_its_place(
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


@pytest.mark.parametrize("operator", [{"$gt": ""}, {"$ne": None}, ["ada@example.com"], True, 5])
def test_what_is_no_text_is_none_wherever_a_text_belongs(app: App, operator: Any) -> None:
    for place, names in [*SCALARS.items(), ("", ["ttl", "max_retries", "event_at"])]:
        for name in names:
            if operator == 5 and name in ("ttl", "max_retries"):
                continue
            within = {"at": "2099-01-01T09:00"} if place == "scheduled_local" else {}
            fields = {place: {**within, name: operator}} if place else {name: operator}
            pointer = f"/{place}/{name}" if place else f"/{name}"
            answer = app.notify(**fields)
            assert (answer.status_code, pointers(answer)) == (422, {pointer: "wrong_type"}), fields


def test_a_push_has_at_most_4_kb_when_it_is_rendered(app: App) -> None:
    content = {"subject": "S", "body": "B", "payload": {"fill": "x" * 4_096}}
    asked = {"channels": ["push"], "user_id": "ada", "recipient": ..., "content": content}
    for answer in (app.notify(**asked), app.post("/notifications/preview", request(**asked))):
        assert answer.status_code == 422
        assert pointers(answer) == {"/content/payload": "too_long"}
    assert app.notify(**asked | {"channels": ["in_app"]}).status_code == 202


@pytest.mark.parametrize("raw", [b'"\\ud800"', b'"a\\udc00b"'])
def test_half_a_surrogate_pair_is_refused(app: App, raw: bytes) -> None:
    body = (
        b'{"type":"payment_confirmed","recipient":{"email":"a@b.example"},"data":{"x":'
        + raw
        + b"}}"
    )
    assert pointers(app.send("/notifications", body)) == {"/data/x": "lone_surrogate"}
    body = (
        b'{"type":"payment_confirmed","recipient":{"email":"a@b.example"},"data":{' + raw + b":1}}"
    )
    assert list(pointers(app.send("/notifications", body)).values()) == ["lone_surrogate"]


@pytest.mark.parametrize(
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
def test_text_comes_back_exactly(app: App, stored: Any, text: str) -> None:
    answer = app.notify(content={"subject": text, "body": text}, data={"x": text})
    body = answer.json()
    assert body["content"]["subject"] == text
    assert body["content"]["body"] == text
    assert body["data"]["x"] == text
    assert stored(answer)["content"]["body"] == text


def test_invisible_characters_are_taken_out_of_subjects_and_links(app: App) -> None:
    answer = app.notify(
        content={
            "subject": "Pay\u202eeur\u200b now",
            "body": "kept: \u202e\u200b",
            "deep_link": "app://orders/\u200b5",
        }
    )
    content = answer.json()["content"]
    assert content["subject"] == "Payeur now"
    assert content["deep_link"] == "app://orders/5"
    assert content["body"] == "kept: \u202e\u200b"


def test_a_placeholder_in_data_is_not_rendered(app: App) -> None:
    answer = app.notify(data={**request()["data"], "video_title": "{{ order_id }}"})
    assert answer.json()["content"]["subject"] == "Payment confirmed: {{ order_id }}"


def test_a_missing_variable_is_named(app: App) -> None:
    answer = app.notify(data={"order_id": 1, "amount": "1"})
    assert pointers(answer) == {"/data/video_title": "missing_variable"}
    assert "video_title" in answer.json()["errors"][0]["detail"]


def test_no_value_is_repeated_in_a_problem(app: App) -> None:
    answer = app.notify(recipient={"email": "very-secret-value"}, priority="very-secret-value")
    assert b"very-secret-value" not in answer.content


def test_a_secret_is_neither_shown_nor_rendered_into_the_store(app: App, stored: Any) -> None:
    answer = app.notify(type="mfa_code", data={"code": "481516"})
    assert answer.status_code == 202
    assert b"481516" not in answer.content
    assert "481516" not in str(stored(answer)["content"])


def test_a_type_without_a_template_needs_a_body(app: App) -> None:
    answer = app.notify(type="transactional", data={})
    assert pointers(answer) == {"/content/body": "required"}


def test_a_body_without_a_subject_gets_its_first_line(app: App) -> None:
    answer = app.notify(type="transactional", content={"body": "\nOrder shipped\nmore"}, data={})
    assert answer.json()["content"]["subject"] == "Order shipped"


def test_the_callers_words_win_over_the_template(app: App) -> None:
    answer = app.notify(content={"subject": "S", "body": "B"}, data={})
    assert (
        answer.json()["content"] | {"subject": "S", "body": "B", "template_id": None}
        == (answer.json()["content"])
    )


def test_a_named_template_that_is_none_is_refused(app: App) -> None:
    for name in ("nope", "../etc", "_layout", "a/b"):
        answer = app.notify(content={"template_id": name})
        assert pointers(answer) == {"/content/template_id": "unknown_template"}
