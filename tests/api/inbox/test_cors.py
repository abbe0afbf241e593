"""CORS of the inbox routes."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from notifyproject.settings.environment import read
from tests.support.clients.api import App
from tests.support.clients.inbox import InboxUser
from tests.support.tables import each_case

PAGE = "https://app.example.com"
OTHER_ORIGINS = [
    "https://evil.example",
    "https://app.example.com.evil.example",
    "http://app.example.com",
    "https://app.example.com:8443",
    "null",
    "*",
    "https://app.example.com, https://evil.example",
]


@pytest.fixture
def ada(app: App, settings: Any) -> InboxUser:
    settings.INBOX_ORIGINS = frozenset({PAGE})
    return InboxUser(app=app)


def preflight(ada: InboxUser, path: str, origin: str) -> Any:
    headers = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    return ada.app.http.options(f"/api/v1{path}", headers=headers)


def allowed(answer: Any) -> str | None:
    origin: str | None = answer.headers.get("Access-Control-Allow-Origin")
    return origin


def test_allowed_origin_reads_the_response(ada: InboxUser) -> None:
    answer = ada.send("GET", "", headers={"Origin": PAGE})
    assert (answer.status_code, allowed(answer)) == (200, PAGE)
    assert "X-Request-Id" in answer.headers["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_allowed_origin_reads_problems(ada: InboxUser) -> None:
    ada.token = "wrong"
    answer = ada.send("GET", "/counts", headers={"Origin": PAGE})
    assert (answer.status_code, allowed(answer)) == (401, PAGE)


@each_case("path", ["/inbox", "/inbox/counts", "/inbox/x/read", "/inbox/stream"])
def test_preflight_lists_methods_and_headers(ada: InboxUser, path: str) -> None:
    answer = preflight(ada, path, PAGE)
    assert (answer.status_code, answer.content, allowed(answer)) == (204, b"", PAGE)
    assert answer.headers["Access-Control-Allow-Methods"] == "DELETE, GET, POST, PUT"
    for name in ("authorization", "last-event-id"):
        assert name in answer.headers["Access-Control-Allow-Headers"]


@each_case("origin", OTHER_ORIGINS)
def test_other_origin_reads_nothing(ada: InboxUser, origin: str) -> None:
    for answer in (
        ada.send("GET", "", headers={"Origin": origin}),
        preflight(ada, "/inbox", origin),
    ):
        assert allowed(answer) is None
        assert "Access-Control-Allow-Headers" not in answer.headers
        assert answer.headers["Vary"] == "Origin", "a cache must not mistake one for the other"


@each_case("path", ["/inbox/tokens", "/inbox/tokens/x", "/notifications", "/devices"])
def test_routes_with_api_keys_have_no_cors(ada: InboxUser, path: str) -> None:
    answer = preflight(ada, path, PAGE)
    assert (answer.status_code, allowed(answer)) == (401, None)


def test_response_without_origin_has_no_cors_header(ada: InboxUser) -> None:
    assert allowed(ada.get()) is None


def test_no_origin_is_allowed_by_default() -> None:
    assert not read({}).INBOX_ORIGINS


def test_origins_are_parsed() -> None:
    listed = read({"INBOX_ORIGINS": f"{PAGE}, HTTP://localhost:3000"}).INBOX_ORIGINS
    assert listed == {PAGE, "http://localhost:3000"}


@each_case("text", ["*", "app.example.com", f"{PAGE}/", "https://*.example.com", "null", "ws://x"])
def test_invalid_origin_stops_the_startup(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="INBOX_ORIGINS"):
        read({"INBOX_ORIGINS": text})
