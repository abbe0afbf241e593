"""Requests as clients of other services sent them: keys, cursors, filters, and headers."""

import json
from datetime import timedelta
from typing import Any

import pytest

from notifyproject.db.collections import collection
from tests.support.clients.api import App, pages, request
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

KEY = {"Idempotency-Key": "k-1"}


def test_pages_of_notifications_of_one_instant_lose_and_repeat_none(app: App) -> None:
    """https://github.com/activepieces/activepieces/pull/14323 and
    https://github.com/encode/django-rest-framework/issues/7709
    """
    for number in range(7):
        at = NOON if number < 5 else NOON - timedelta(minutes=number)
        factories.accepted(client_id=app.id, created_at=at)
    found = [item["id"] for page in pages(app.get, "/notifications", limit=2) for item in page]
    assert len(found) == len(set(found)) == 7


def test_key_is_of_one_operation(app: App) -> None:
    """https://github.com/fossasia/eventyay/issues/602"""
    assert app.post("/notifications", request(), headers=KEY).status_code == 202
    bulk = app.post("/notifications/bulk", {"notifications": [request()]}, headers=KEY)
    assert (bulk.status_code, bulk.json()["code"]) == (422, "idempotency_key_reused")
    assert collection("notifications").count_documents({}) == 1


def test_key_compares_the_request_and_not_its_bytes(app: App) -> None:
    """https://github.com/novuhq/novu/pull/4472"""
    first = app.post("/notifications", request(), headers=KEY)
    turned = dict(reversed(list(request().items())))
    raw = json.dumps(turned, indent=2).encode()
    again = app.send("/notifications", raw, headers=KEY)
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])


def test_refused_request_uses_up_no_key(app: App) -> None:
    """https://github.com/ulsklyc/yuvomi/issues/822"""
    wrong = app.post("/notifications", request(priority="urgent"), headers=KEY)
    assert wrong.status_code == 422
    assert app.post("/notifications", request(), headers=KEY).status_code == 202


@pytest.mark.parametrize(
    "query",
    [{"user_id": ""}, {"external_id": ""}, {"type": ""}, {"source": ""}, {"entity_id": ""}],
)
def test_empty_filter_selects_nothing_rather_than_everything(app: App, query: Any) -> None:
    """https://github.com/speedruncomorg/api/issues/75"""
    app.notify()
    answer = app.get("/notifications", **query)
    assert answer.status_code == 422 or answer.json()["results"] == []


def test_misspelt_condition_of_a_destructive_request_is_refused(app: App) -> None:
    """https://github.com/kestra-io/kestra/issues/18246"""
    app.notify(entity_id="order-1")
    for path, body in (
        ("/notifications/cancel", {"entity_id": "order-1", "userId": "ada"}),
        ("/notifications/cleanup", {"older_than_days": 30, "types": "x"}),
    ):
        assert app.post(path, body).status_code == 422
    assert app.delete("/inbox/tokens", user_id="ada", userid="bob").status_code == 400


@pytest.mark.parametrize("signature", ["sha256=\xe9", "\xe9", "sha256=", "", "=" * 5_000])
def test_webhook_with_an_odd_signature_is_refused(app: App, signature: str, settings: Any) -> None:
    """https://github.com/mishrasanjeev/grantex/pull/892"""
    settings.WHATSAPP_APP_SECRET = "a-secret-of-the-app-of-32-letters"
    for path, name in (
        ("/webhooks/whatsapp", "X-Hub-Signature-256"),
        ("/webhooks/sendgrid", "X-Twilio-Email-Event-Webhook-Signature"),
    ):
        answer = app.http.post(
            path, b"{}", content_type="application/json", headers={name: signature}
        )
        assert answer.status_code in (403, 404), (path, answer.status_code)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_scheme_of_the_credential_has_no_case(app: App, scheme: str) -> None:
    """RFC 9110 11.1."""
    answer = app.http.get("/api/v1/notifications", headers={"Authorization": f"{scheme} {app.key}"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json; charset=UTF-8", 202),
        ('application/json; charset="utf-8"', 202),
        ("application/json;charset=utf8", 202),
        ("Application/JSON", 202),
        ("application/json; charset=latin-1", 415),
        ("application/vnd.api+json", 415),
        ("application/json, text/plain", 415),
    ],
)
def test_media_type_of_a_body(app: App, kind: str, status: int) -> None:
    """RFC 9110 8.3.1: names have no case, and a value may be quoted."""
    raw = json.dumps(request()).encode()
    assert app.send("/notifications", raw, content_type=kind).status_code == status


@pytest.mark.parametrize("path", ["/notifications", "/notifications/bulk"])
def test_key_repeated_by_an_escape_is_repeated(app: App, path: str) -> None:
    """RFC 8259 4 and 8.3."""
    inner = json.dumps(request())[:-1] + ', "ty\\u0070e": "alert"}'
    raw = inner if path == "/notifications" else f'{{"notifications": [{inner}]}}'
    answer = app.send(path, raw.encode(), headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (400, "duplicate_key")
    assert collection("notifications").count_documents({}) == 0


@pytest.mark.parametrize("limit", ["0", "-1", "101", "1e1", "٣", "", "10 "])
def test_odd_limit_is_refused(app: App, limit: str) -> None:
    """https://github.com/openclaw/clawhub/issues/2184"""
    assert app.get("/notifications", limit=limit).status_code == 422
