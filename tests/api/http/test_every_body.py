"""Whatever route a body comes to: what is no JSON object is told the same way, and changes nothing.

The routes are those of the API's own description, so a new one is asked with the others.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers

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
CALLED_WITHOUT = {"cancelNotification", "retryNotification", "resendNotification"}
"""What may be asked without a body."""
CHANGED = ("broadcasts", "suppressions", "callbacks", "template_versions", "inbox_tokens")


@pytest.fixture
def routes(app: App) -> list[tuple[str, str, str]]:
    """Give a test every operation that takes a JSON body: its name, method and address."""
    app.put("/recipients/ada", {"email": "ada@example.com"})
    device = {"user_id": "ada", "device_token": "token", "platform": "ios"}
    names = {
        "notification_id": app.notify().json()["id"],
        "device_id": app.put("/devices", device).json()["id"],
        "user_id": "ada",
        "channel": "email",
        "address": "bob@example.com",
        "slug": "payment_confirmed",
    }
    found = list(_operations(names))
    assert len(found) > 20
    return found


def _operations(names: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    described = SchemaGenerator().get_schema(request=None, public=True)
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            kinds = one.get("requestBody", {}).get("content", {}) if path.count("/api/v1/") else {}
            if "application/json" in kinds and "webhook" not in path:
                address = path.removeprefix("/api/v1").format(**names)
                yield one["operationId"], method.upper(), address


def told(app: App, method: str, path: str, raw: bytes, **options: Any) -> tuple[int, str]:
    answer = app.send(path, raw, method=method, **({"headers": KEY} | options))
    return answer.status_code, answer.json()["code"]


def test_what_cannot_be_read_is_400(app: App, routes: list[tuple[str, str, str]]) -> None:
    for name, method, path in routes:
        if name not in CALLED_WITHOUT:
            assert told(app, method, path, b"") == (400, "empty_body"), name
            assert told(app, method, path, b" \n") == (400, "empty_body"), name
        for raw, code in UNPARSEABLE:
            assert told(app, method, path, raw) == (400, code), (name, raw[:20])
    assert not any(collection(one).count_documents({}) for one in CHANGED)


def test_what_is_read_and_makes_no_sense_is_422_with_its_place(
    app: App, routes: list[tuple[str, str, str]]
) -> None:
    for name, method, path in routes:
        for raw in NO_OBJECTS:
            assert told(app, method, path, raw) == (422, "invalid_request"), (name, raw)
        for raw, code in INVALID:
            answer = app.send(path, raw, method=method, headers=KEY)
            assert answer.status_code == 422, (name, raw[:20])
            codes = set(pointers(answer).values())
            # Around a list of notifications there is one name, and no other is looked into.
            expected = "unknown_field" if name == "createNotifications" else code
            assert expected in codes, (name, raw[:20], codes)
    assert not any(collection(one).count_documents({}) for one in CHANGED)


def test_what_is_another_kind_of_body_is_415(app: App, routes: list[tuple[str, str, str]]) -> None:
    refused = (415, "unsupported_media_type")
    for name, method, path in routes:
        for kind in ("application/x-www-form-urlencoded", "application/xml", "text/plain"):
            assert told(app, method, path, b"a=1", content_type=kind) == refused, (name, kind)
        for charset in ("utf-16", "nonsense"):
            kind = f"application/json; charset={charset}"
            assert told(app, method, path, b"{}", content_type=kind) == refused, (name, kind)
        packed = {**KEY, "Content-Encoding": "gzip"}
        assert told(app, method, path, b"{}", headers=packed) == refused, name


def test_what_is_too_large_is_413(app: App, routes: list[tuple[str, str, str]]) -> None:
    raw = b'{"a": "' + b"x" * (4 * 1024 * 1024) + b'"}'
    for name, method, path in routes:
        assert told(app, method, path, raw) == (413, "too_large"), name


def test_where_no_body_is_taken_one_that_says_something_is_refused(app: App) -> None:
    parts = {"parts": {"default": {"subject": "S", "body": "B"}}}
    assert app.post("/types/payment_confirmed/templates", parts).status_code == 201
    publish = "/types/payment_confirmed/templates/versions/1/publish"
    assert told(app, "POST", publish, b"[]") == (422, "invalid_request")
    assert told(app, "POST", publish, b"{") == (400, "malformed_json")
    for raw, _ in INVALID:
        assert told(app, "POST", publish, raw) == (422, "invalid_request"), raw[:20]
    assert app.send(publish, b"").status_code == 200
