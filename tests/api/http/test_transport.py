"""Request bodies over HTTP, on every route."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devices.push_keys import new_key
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pointers, request
from tests.support.clients.inbox import credential_for
from tests.support.openapi import api_operations, resolved
from tests.support.tables import each_case


def test_brackets_inside_text_are_not_depth(app: App) -> None:
    assert (
        app.notify(data={**request()["data"], "x": "[" * 100 + '"' + "{" * 100}).status_code == 202
    )


@each_case("method", ["put", "patch", "delete"])
def test_unsupported_method_is_refused(app: App, method: str) -> None:
    answer = getattr(app.http, method)(
        "/api/v1/notifications", headers={"Authorization": f"Bearer {app.key}"}
    )
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_page_of_the_description_has_no_options(app: App) -> None:
    answer = app.http.options("/api/docs")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


KEY = {"Idempotency-Key": "k-1"}

UNPARSEABLE = [
    (b"{} x", "malformed_json"),
    (b'{"a": 1', "malformed_json"),
    (b'{"a": NaN}', "malformed_json"),
    (b'{"a": Infinity}', "malformed_json"),
    (b'{"a": "\xff"}', "not_utf8"),
    ('{"a": 1}'.encode("utf-16"), "not_utf8"),
    (b"\xef\xbb\xbf{}", "byte_order_mark"),
    (b'{"a": 1, "a": 1}', "duplicate_key"),
    (b'{"a": ' + b"9" * 5_000 + b"}", "number_too_long"),
    (b'{"a": ' * 1_000 + b"1" + b"}" * 1_000, "too_deep"),
]

NO_OBJECTS = [b"[]", b"null", b'"text"', b"5", b"true"]

INVALID = [
    (b'{"unheard_of": 1}', "unknown_field"),
    (b'{"a": "x\\u0000y"}', "nul_character"),
    (b'{"a": "\\ud800"}', "lone_surrogate"),
    (b'{"\\ud800": 1}', "lone_surrogate"),
    (b'{"a": 9223372036854775808}', "integer_too_large"),
    (json.dumps({"k" * 129: 1}).encode(), "key_too_long"),
    (json.dumps({f"k{n}": n for n in range(501)}).encode(), "too_many_properties"),
]

OPTIONAL_BODY = {"cancelNotification", "retryNotification", "resendNotification"}
"""Operations with an optional body."""
CHANGED = ("broadcasts", "suppressions", "callbacks", "template_versions", "inbox_tokens")


@pytest.fixture
def routes(app: App, settings: Any) -> list[tuple[str, str, str]]:
    """Return the name, method, and path of every operation with a JSON body."""
    settings.WEBPUSH_KEYS = (new_key().private_text,)
    app.put("/recipients/ada", {"email": "ada@example.com"})
    app.send("/topics/news/members/ada", b"", method="PUT")
    device = {"user_id": "ada", "device_token": "adas-phone", "platform": "ios"}
    names = {
        "notification_id": app.notify().json()["id"],
        "device_id": app.put("/devices", device).json()["id"],
        "user_id": "ada",
        "channel": "email",
        "address": "bob@example.com",
        "slug": "payment_confirmed",
        "name": "weekly",
        # Bodies are refused before anybody looks for what they are about.
        "broadcast_id": "0" * 24,
        "file_id": "0" * 24,
        "number": "0",
        "key": "appointment-7",
    }
    found = list(_operations(names))
    assert len(found) > 20
    return found


def _operations(names: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, operation in api_operations().items():
        if "requestBody" in operation:
            path = operation["path"].removeprefix("/api/v1")
            yield name, operation["method"], path.format(**names)


def ask(app: App, method: str, path: str, raw: bytes, **options: Any) -> Answer:
    """Send a body with the credential of its route."""
    headers = KEY | credential_for(app, path) | options.pop("headers", {})
    return app.send(path, raw, method=method, headers=headers, **options)


def outcome(app: App, method: str, path: str, raw: bytes, **options: Any) -> tuple[int, str]:
    answer = ask(app, method, path, raw, **options)
    return answer.status_code, answer.json()["code"]


def test_unreadable_body_is_400_on_every_route(
    app: App, routes: list[tuple[str, str, str]]
) -> None:
    for name, method, path in routes:
        if name not in OPTIONAL_BODY:
            assert outcome(app, method, path, b"") == (400, "empty_body"), name
            assert outcome(app, method, path, b" \n") == (400, "empty_body"), name
        for raw, code in UNPARSEABLE:
            assert outcome(app, method, path, raw) == (400, code), (name, raw[:20])
    assert not any(collection(name).count_documents({}) for name in CHANGED)


def test_invalid_body_is_422_with_a_pointer_on_every_route(
    app: App, routes: list[tuple[str, str, str]]
) -> None:
    for name, method, path in routes:
        for raw in NO_OBJECTS:
            assert outcome(app, method, path, raw) == (422, "validation_failed"), (name, raw)
        for raw, code in INVALID:
            answer = ask(app, method, path, raw)
            assert answer.status_code == 422, (name, raw[:20])
            codes = set(pointers(answer).values())
            # A bulk body is refused at its one property.
            expected = "unknown_field" if name == "createNotifications" else code
            assert expected in codes, (name, raw[:20], codes)
    assert not any(collection(name).count_documents({}) for name in CHANGED)


def _wrong_fields(schema: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield each field of a request with values of other types; ... leaves a required one out."""
    body = resolved(schema)
    for field, described_field in body["properties"].items():
        options = described_field.get("anyOf", [described_field])
        types = {option.get("type") for option in options}
        wrong: list[Any] = ["wrong", True, 1.5] if "integer" in types else [5]
        wrong += [{"$gt": ""}, ["x"]] if "string" in types else []
        wrong += [] if "null" in types else [None]
        yield from ((field, value, "wrong_type") for value in wrong)
        if field in body.get("required", ()):
            yield field, ..., "required"


def test_field_of_a_wrong_type_and_missing_field_are_422_on_every_route(
    app: App, routes: list[tuple[str, str, str]]
) -> None:
    for name, method, path in routes:
        content = api_operations()[name]["requestBody"]["content"]["application/json"]
        example = content["examples"]["request"]["value"]
        for field, value, code in _wrong_fields(content["schema"]):
            body = {n: v for n, v in {**example, field: value}.items() if v is not ...}
            answer = ask(app, method, path, json.dumps(body).encode())
            assert (answer.status_code, pointers(answer)) == (422, {f"/{field}": code}), name
    assert not any(collection(name).count_documents({}) for name in CHANGED)


def test_all_invalid_fields_are_reported_at_once_on_every_route(
    app: App, routes: list[tuple[str, str, str]]
) -> None:
    for name, method, path in routes:
        content = api_operations()[name]["requestBody"]["content"]["application/json"]
        fields = list(_wrong_fields(content["schema"]))
        wrong = {field: value for field, value, code in fields if code == "wrong_type"}
        misspelled = f"{next(iter(wrong))}s"
        body = json.dumps({**wrong, misspelled: 1}).encode()
        answer = ask(app, method, path, body)
        expected = {f"/{field}": "wrong_type" for field in wrong}
        assert pointers(answer) == {**expected, f"/{misspelled}": "unknown_field"}, name
        (detail,) = (e["detail"] for e in answer.json()["errors"] if e["code"] == "unknown_field")
        assert "Did you mean `" in detail, name
    assert not any(collection(name).count_documents({}) for name in CHANGED)


def test_unsupported_body_is_415_on_every_route(
    app: App, routes: list[tuple[str, str, str]]
) -> None:
    refused = (415, "unsupported_media_type")
    for name, method, path in routes:
        for kind in ("application/x-www-form-urlencoded", "application/xml", "text/plain"):
            assert outcome(app, method, path, b"a=1", content_type=kind) == refused, (name, kind)
        for charset in ("utf-16", "nonsense"):
            kind = f"application/json; charset={charset}"
            assert outcome(app, method, path, b"{}", content_type=kind) == refused, (name, kind)
        packed = {**KEY, "Content-Encoding": "gzip"}
        assert outcome(app, method, path, b"{}", headers=packed) == refused, name


def test_large_body_is_413_on_every_route(app: App, routes: list[tuple[str, str, str]]) -> None:
    raw = b'{"a": "' + b"x" * (4 * 1024 * 1024) + b'"}'
    for name, method, path in routes:
        assert outcome(app, method, path, raw) == (413, "too_large"), name


def test_route_without_body_refuses_a_body(app: App) -> None:
    parts = {"parts": {"default": {"subject": "S", "body": "B"}}}
    assert app.post("/types/payment_confirmed/templates", parts).status_code == 201
    publish = "/types/payment_confirmed/templates/versions/1/publish"
    assert outcome(app, "POST", publish, b"[]") == (422, "validation_failed")
    assert outcome(app, "POST", publish, b"{") == (400, "malformed_json")
    for raw, _ in INVALID:
        assert outcome(app, "POST", publish, raw) == (422, "validation_failed"), raw[:20]
    assert app.send(publish, b"").status_code == 200
