"""Calls that are refused as a whole: nothing of them is stored."""

import gzip
import io
import json
from typing import Any

import pytest

from access.models import Scope
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, pointers
from tests.support.clients.bulk import PATH, bring, item

KEY = {"Idempotency-Key": "k-1"}


def send(app: App, raw: bytes, **options: Any) -> Any:
    return app.send(PATH, raw, **({"headers": KEY} | options))


def padded(size: int) -> bytes:
    """Return a valid body of so many bytes."""
    raw = json.dumps({"notifications": [item(0)]}).encode()
    return raw + b" " * (size - len(raw))


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 400, "empty_body"),
        (b"  \n", 400, "empty_body"),
        (b'{"notifications": [{}]', 400, "malformed_json"),
        (b'{"notifications": [{"ttl": NaN}]}', 400, "malformed_json"),
        (b'{"notifications": [{"a": 1, "a": 1}]}', 400, "duplicate_key"),
        (b'{"notifications": [{"type": "\xff"}]}', 400, "not_utf8"),
        (b'{"notifications": ' + b"[" * 1_000 + b"]" * 1_000 + b"}", 400, "too_deep"),
        (b"[" * 1_000_000, 400, "too_deep"),
        (b"[]", 422, "invalid_request"),
        (b"null", 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
        (b'{"notifications": []}', 422, "invalid_request"),
        (b'{"notifications": [5], "more": 1}', 422, "invalid_request"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_list_of_notifications_is_refused(
    app: App, raw: bytes, status: int, code: str
) -> None:
    answer = send(app, raw)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert collection("notifications").count_documents({}) == 0
    assert collection("idempotency_keys").count_documents({}) == 0


def test_over_a_thousand_are_refused(app: App) -> None:
    answer = bring(app, *range(1_001))
    assert answer.status_code == 422
    assert pointers(answer) == {"/notifications": "out_of_range"}


def test_a_body_may_have_4_mb_and_no_more(app: App) -> None:
    most = 4 * 1024 * 1024
    assert send(app, padded(most)).json()["accepted"] == 1
    answer = send(app, padded(most + 1), headers={"Idempotency-Key": "k-2"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_chunked_body_is_read_up_to_the_limit(app: App) -> None:
    answer = send(
        app,
        b"",
        headers={**KEY, "Transfer-Encoding": "chunked"},
        CONTENT_LENGTH="",
        CONTENT_TYPE="application/json",
        **{"wsgi.input": io.BytesIO(padded(4 * 1024 * 1024 + 1))},
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "text/json", "application/xml", ""]
)
def test_another_media_type_is_refused(app: App, content_type: str) -> None:
    assert send(app, padded(1_000), content_type=content_type).status_code == 415


def test_a_compressed_body_is_refused(app: App) -> None:
    raw = gzip.compress(padded(1_000))
    assert send(app, raw, headers={**KEY, "Content-Encoding": "gzip"}).status_code == 415


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
def test_a_wrong_method_is_refused(app: App, method: str) -> None:
    answer = getattr(app.http, method)(
        f"/api/v1{PATH}", headers={"Authorization": f"Bearer {app.key}"}
    )
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


# The key.


def test_without_a_key_a_call_is_refused(app: App) -> None:
    answer = app.post(PATH, {"notifications": [item(0)]})
    assert (answer.status_code, answer.json()["code"]) == (400, "missing_idempotency_key")
    assert collection("notifications").count_documents({}) == 0


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 256, "a\tb"])
def test_a_key_that_is_none_is_refused(app: App, key: str) -> None:
    answer = send(app, padded(1_000), headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_idempotency_key")


def test_a_call_that_was_refused_has_not_used_its_key(app: App) -> None:
    assert send(app, b'{"notifications": []}').status_code == 422
    assert bring(app, item(0), key="k-1").json()["accepted"] == 1


# Who asks.


@pytest.mark.parametrize(
    ("scope", "status"),
    [(Scope.NOTIFICATIONS_WRITE, 200), (Scope.ADMIN, 200), (Scope.NOTIFICATIONS_READ, 403)],
)
def test_it_takes_the_scope_to_write(db: None, scope: Scope, status: int) -> None:
    assert bring(new_app("narrow", scope), item(0)).status_code == status


def test_without_an_api_key_there_is_no_answer(app: App) -> None:
    answer = app.http.post(f"/api/v1{PATH}", b"{}", content_type="application/json", headers=KEY)
    assert answer.status_code == 401
