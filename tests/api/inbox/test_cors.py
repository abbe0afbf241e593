"""Which web pages may read inboxes."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from notifyproject.settings.base import configure
from notifyproject.settings.environment import Environment
from tests.support.clients.api import App
from tests.support.clients.inbox import InboxUser

PAGE = "https://app.example.com"
STRANGE = [
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


def asked(ada: InboxUser, path: str, origin: str) -> Any:
    """Ask as a browser does before it sends a token."""
    headers = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    return ada.app.http.options(f"/api/v1{path}", headers=headers)


def allowed(answer: Any) -> str | None:
    origin: str | None = answer.headers.get("Access-Control-Allow-Origin")
    return origin


def test_an_allowed_page_reads_the_answer(ada: InboxUser) -> None:
    answer = ada.send("GET", "", headers={"Origin": PAGE})
    assert (answer.status_code, allowed(answer)) == (200, PAGE)
    assert "X-Request-Id" in answer.headers["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_it_reads_what_is_wrong_too(ada: InboxUser) -> None:
    ada.token = "wrong"
    answer = ada.send("GET", "/counts", headers={"Origin": PAGE})
    assert (answer.status_code, allowed(answer)) == (401, PAGE)


@pytest.mark.parametrize("path", ["/inbox", "/inbox/counts", "/inbox/x/read", "/inbox/stream"])
def test_it_may_ask_what_it_may_send(ada: InboxUser, path: str) -> None:
    answer = asked(ada, path, PAGE)
    assert (answer.status_code, answer.content, allowed(answer)) == (204, b"", PAGE)
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, POST"
    for name in ("authorization", "last-event-id"):
        assert name in answer.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize("origin", STRANGE)
def test_another_page_reads_nothing(ada: InboxUser, origin: str) -> None:
    for answer in (ada.send("GET", "", headers={"Origin": origin}), asked(ada, "/inbox", origin)):
        assert allowed(answer) is None
        assert "Access-Control-Allow-Headers" not in answer.headers
        assert answer.headers["Vary"] == "Origin", "a cache must not mistake one for the other"


@pytest.mark.parametrize("path", ["/inbox/tokens", "/inbox/tokens/x", "/notifications", "/devices"])
def test_what_takes_a_key_is_not_for_pages(ada: InboxUser, path: str) -> None:
    answer = asked(ada, path, PAGE)
    assert (answer.status_code, allowed(answer)) == (401, None)


def test_without_an_origin_nothing_is_said_of_any(ada: InboxUser) -> None:
    assert allowed(ada.get()) is None


def test_by_default_no_page_may() -> None:
    assert configure(Environment())["INBOX_ORIGINS"] == frozenset()


def test_origins_are_listed() -> None:
    listed = configure(Environment(INBOX_ORIGINS=f"{PAGE}, HTTP://localhost:3000"))["INBOX_ORIGINS"]
    assert listed == {PAGE, "http://localhost:3000"}


@pytest.mark.parametrize(
    "text", ["*", "app.example.com", f"{PAGE}/", "https://*.example.com", "null", "ws://x"]
)
def test_what_is_no_origin_stops_the_start(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="INBOX_ORIGINS"):
        configure(Environment(INBOX_ORIGINS=text))
