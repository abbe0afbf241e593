"""Every route while MongoDB answers nothing: 503 with Retry-After, never a 500."""

from collections.abc import Callable
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from api.http.problems import MEDIA_TYPE, RETRY_SECONDS
from domain.time import utc_now
from notifyproject.platform import cache, middleware
from tests.support.clients.api import App
from tests.support.clients.inbox import token as inbox_token
from tests.support.clients.routes import INBOX, ROUTES, ask, name_of
from tests.support.console_urls import addresses_with
from tests.support.samples import sampled
from tests.support.tables import each_case

ID = "0" * 24
NAMED = {
    **dict.fromkeys(("notification", "deleted", "broadcast", "digest", "message", "push"), ID),
    "type": "payment_confirmed",
    "device": "0" * 64,
    "discarded": "0" * 64,
    "tomorrow": "2099-01-01T00:00:00Z",
}
Hang = Callable[[], None]


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Hang:
    """Return a function after which no command of a request gets a response in time."""
    return lambda: monkeypatch.setattr(middleware, "DATABASE_SECONDS", 1e-9)


def is_unavailable(answer: Any) -> bool:
    return (answer.status_code, answer.headers.get("Retry-After")) == (503, str(RETRY_SECONDS))


def test_every_route_says_that_the_store_is_unavailable(app: App, hang: Hang) -> None:
    token = inbox_token(app)
    hang()
    wrong = {}
    for route in ROUTES:
        cache.clear_all()
        answer = ask(app.http, route, token if route in INBOX else app.key, named=NAMED)
        is_right = is_unavailable(answer) and answer.json()["code"] == "store_unavailable"
        if not is_right or answer.headers["Content-Type"] != MEDIA_TYPE:
            wrong[name_of(route)] = (answer.status_code, answer.content)
    assert wrong == {}


BAD_BODIES = [b"", b"{", b"[]", b"{}", b'{"type": 7}', b"\xff"]


def test_a_request_that_is_refused_without_a_read_is_not_a_500(app: App, hang: Hang) -> None:
    # The process has copies of the configuration, so that nothing is read before the refusal.
    assert app.notify().status_code == 202
    hang()
    for body in BAD_BODIES:
        answer = app.send("/notifications", body)
        assert is_unavailable(answer), body
        assert answer.headers["Allow"] == "GET, POST, HEAD, OPTIONS", body


@each_case("key", [None, "ntf_abcdefghij_unknown", "x" * 500])
def test_a_request_without_a_valid_key_is_not_a_500(app: App, hang: Hang, key: str | None) -> None:
    hang()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    for method in ("get", "post", "options", "head"):
        answer = getattr(app.http, method)("/api/v1/notifications", headers=headers)
        assert answer.status_code in (200, 401) or is_unavailable(answer), method


def test_other_paths_are_not_a_500(app: App, hang: Hang) -> None:
    hang()
    for path in ("/", "/metrics", "/api/docs", "/webhooks/sendgrid", "/nope", "/api/v1/nope"):
        for method in ("get", "post"):
            answer = getattr(app.http, method)(path)
            assert answer.status_code < 500 or is_unavailable(answer), (method, path)


def test_no_page_of_the_console_is_a_500(console: Client, hang: Hang) -> None:
    console.raise_request_exception = False
    hang()
    addresses = addresses_with(str(ObjectId.from_datetime(utc_now())))
    for path in ["/admin/", *sampled(addresses, each=6)]:
        answer = console.get(path)
        assert answer.status_code < 400 or is_unavailable(answer), path
    page = console.get("/admin/notifications/notification/")
    assert is_unavailable(page)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "The database is unavailable" in page.content.decode()


def test_signing_in_is_not_a_500(client: Client, hang: Hang) -> None:
    client.raise_request_exception = False
    hang()
    for path in ("/admin/login/", "/admin/oidc/sign-in/", "/admin/oidc/callback/"):
        answer = client.post(path, {"username": "eva", "password": "wrong"})
        assert answer.status_code < 500 or is_unavailable(answer), path
