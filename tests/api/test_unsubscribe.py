"""Unsubscribe links: the page, its button, one-click POSTs, errors and languages."""

import logging
import re
from typing import Any

import pytest
from django.test import Client
from pymongo.errors import NetworkTimeout

from domain.time import utc_now
from notifyproject.db.collections import collection
from privacy import unsubscribe
from recipients import queries
from recipients.models import SuppressionReason
from recipients.queries import find_suppressed
from tests.support.clients.unsubscribe import ADA, actions, heading, link
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")
PAIR = ("email", ADA)
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture
def http() -> Client:
    return Client(enforce_csrf_checks=True, raise_request_exception=False)


def stored() -> list[dict[str, Any]]:
    return list(collection("suppressions").find())


def is_suppressed() -> bool:
    return PAIR in find_suppressed([PAIR], now=utc_now())


@each_case("method", ["get", "head"])
def test_reading_the_page_changes_nothing(http: Client, method: str) -> None:
    """Link scanners open every link of a mail."""
    for _ in range(3):
        assert getattr(http, method)(link()).status_code == 200
    assert stored() == []


def test_page_has_one_button_and_a_masked_address(http: Client) -> None:
    path = link()
    page = http.get(path)
    assert heading(page) == "Stop these emails?"
    assert actions(page) == [("post", path)]
    assert "a***@example.com" in page.text
    assert ADA not in page.text


def test_page_of_an_unsubscribed_recipient_shows_it(http: Client) -> None:
    path = link()
    http.post(path)
    page = http.get(path)
    assert heading(page) == "You are unsubscribed"
    assert actions(page) == [("post", f"{path}/undo")]


@each_case(
    "how",
    [
        {"data": ONE_CLICK},
        {"data": "List-Unsubscribe=One-Click", "content_type": "application/x-www-form-urlencoded"},
        {"data": {}},
        {"data": b"", "content_type": ""},
        {"data": b"\xff\xfe", "content_type": "multipart/form-data; boundary="},
        {"data": b"{", "content_type": "application/json"},
    ],
)
def test_post_unsubscribes_without_cookie_or_login(http: Client, how: dict[str, Any]) -> None:
    answer = http.post(link(), **how)
    assert answer.status_code == 200
    assert heading(answer) == "You are unsubscribed"
    (suppression,) = stored()
    assert (suppression["channel"], suppression["address"]) == PAIR
    assert (suppression["reason"], suppression["source"]) == ("unsubscribed", "one-click")
    assert suppression["marketing_only"] is True
    assert "expires_at" not in suppression
    collection("suppressions").delete_many({})


def test_response_has_no_cookie_and_no_redirect(http: Client) -> None:
    answer = http.post(link(), ONE_CLICK)
    assert answer.cookies == {}
    assert "Location" not in answer
    assert http.get(link()).cookies == {}


def test_repeated_unsubscription_changes_only_its_time(http: Client) -> None:
    path = link()
    http.post(path)
    (first,) = stored()
    assert http.post(path, ONE_CLICK).status_code == 200
    assert http.post(link()).status_code == 200
    (last,) = stored()
    assert last["created_at"] >= first["created_at"]
    assert last | {"created_at": first["created_at"]} == first


def test_unsubscription_can_be_undone(http: Client) -> None:
    path = link()
    http.post(path)
    page = http.post(f"{path}/undo")
    assert heading(page) == "You are subscribed again"
    assert actions(page) == [("post", path)]
    assert stored() == []
    assert heading(http.post(path)) == "You are unsubscribed"
    assert is_suppressed()


def test_undo_without_unsubscription_changes_nothing(http: Client) -> None:
    assert http.post(f"{link()}/undo").status_code == 200
    assert stored() == []


@each_case("reason", [SuppressionReason.HARD_BOUNCE, SuppressionReason.COMPLAINT])
@each_case("marketing_only", [True, False])
def test_undo_keeps_other_suppressions(
    http: Client, reason: SuppressionReason, marketing_only: bool
) -> None:
    factories.suppress(ADA, reason=reason, marketing_only=marketing_only, at=utc_now())
    (before,) = stored()
    http.post(link())
    assert heading(http.post(f"{link()}/undo")) == "You are unsubscribed"
    assert stored() == [before]
    collection("suppressions").delete_many({})


def test_get_of_the_undo_page_redirects(http: Client) -> None:
    path = link()
    http.post(path)
    answer = http.get(f"{path}/undo")
    assert (answer.status_code, answer["Location"]) == (302, path)
    assert is_suppressed()


@each_case("is_suppressed_before", [False, True])
@each_case("step", ["", "/undo"])
def test_link_of_a_test_changes_nothing(
    http: Client, is_suppressed_before: bool, step: str
) -> None:
    if is_suppressed_before:
        http.post(link())
    before = stored()
    answer = http.post(f"{link(is_test=True)}{step}", ONE_CLICK)
    assert answer.status_code == 200
    assert heading(answer) == "This email was a test"
    assert actions(answer) == []
    assert stored() == before


@each_case("is_suppressed_before", [False, True])
def test_page_of_a_test_ignores_suppressions(http: Client, is_suppressed_before: bool) -> None:
    if is_suppressed_before:
        http.post(link())
    path = link(is_test=True)
    page = http.get(path)
    assert heading(page) == "Stop these emails?"
    assert actions(page) == [("post", path)]


def test_response_to_a_test_is_translated(http: Client) -> None:
    assert heading(http.post(link(locale="pt", is_test=True))) == "Este e-mail era um teste"


@each_case(
    "locale, browser, language, title",
    [
        ("pt", "en", "pt", "Deixar de receber estes e-mails?"),
        ("pt-BR", "en", "pt", "Deixar de receber estes e-mails?"),
        ("en", "pt", "en", "Stop these emails?"),
        ("de", "pt", "en", "Stop these emails?"),
        (None, "pt-PT,pt;q=0.9,en;q=0.8", "pt", "Deixar de receber estes e-mails?"),
        (None, "de", "en", "Stop these emails?"),
        ("../pt", "en", "en", "Stop these emails?"),
    ],
)
def test_page_is_in_the_recipients_language(
    http: Client, locale: str | None, browser: str, language: str, title: str
) -> None:
    page = http.get(link(locale=locale), headers={"Accept-Language": browser})
    assert heading(page) == title
    assert f'<html lang="{language}">' in page.text


@each_case("step", ["", "/undo"])
def test_responses_are_translated(http: Client, step: str) -> None:
    page = http.post(f"{link(locale='pt')}{step}")
    assert '<html lang="pt">' in page.text
    assert "subscrição" in heading(page)


@each_case("method", ["get", "head", "post"])
@each_case("token", ["x", "A" * 80, "A" * 3_000, "%00", "%C3%A9", "a.b"])
def test_invalid_link_is_not_found(http: Client, method: str, token: str) -> None:
    for path in (f"/u/{token}", f"/u/{token}/undo"):
        answer = getattr(http, method)(path, headers={"Accept-Language": "pt"})
        assert answer.status_code == 404
        if method != "head":
            assert heading(answer) == "Esta ligação não funciona"
            assert actions(answer) == []
    assert collection("suppressions").count_documents({}) == 0


@each_case("method", ["get", "post"])
@each_case("step", ["", "/undo"])
def test_store_failure_answers_503_with_a_retry_link(
    http: Client, monkeypatch: pytest.MonkeyPatch, method: str, step: str
) -> None:
    def unavailable(*_: Any, **__: Any) -> None:
        raise NetworkTimeout("unavailable")

    monkeypatch.setattr(unsubscribe, "suppress", unavailable)
    monkeypatch.setattr(queries, "find_suppressed", unavailable)
    path = link()
    answer = getattr(http, method)(f"{path}{step}")
    if (method, step) == ("get", "/undo"):
        assert answer.status_code == 302
        return
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert actions(answer) == [("get", path)]


@each_case("method", ["put", "patch", "delete", "options"])
def test_other_methods_are_refused(http: Client, method: str) -> None:
    assert getattr(http, method)(link()).status_code == 405


def test_page_loads_nothing_and_cannot_be_framed(http: Client) -> None:
    for answer in (http.get(link()), http.post(link()), http.get("/u/x")):
        policy = answer["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'nonce-")
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        (nonce,) = re.findall(r"'nonce-([^']+)'", policy)
        assert f'<style nonce="{nonce}">' in answer.text
        assert not re.search(r"<script|<link|<img|src=|style=|\bon\w+=", answer.text)
        assert answer["X-Frame-Options"] == "DENY"


def test_page_is_not_referred_cached_or_indexed(http: Client) -> None:
    for answer in (http.get(link()), http.post(link())):
        assert answer["Referrer-Policy"] == "no-referrer"
        assert answer["Cache-Control"] == "no-store"
        assert "noindex" in answer["X-Robots-Tag"]


def test_log_holds_no_address(http: Client, caplog: pytest.LogCaptureFixture) -> None:
    path = link()
    with caplog.at_level(logging.DEBUG):
        http.post(path)
        http.post(f"{path}/undo")
        http.get("/u/x")
    log = caplog.text
    assert "unsubscribed" in log
    assert "resubscribed" in log
    assert "ada@" not in log.lower()
    assert "example.com" not in log


def test_sender_name_is_escaped(http: Client, settings: Any) -> None:
    settings.EMAIL_FROM = '"<b>Shop</b> & Co" <shop@example.com>'
    assert "&lt;b&gt;Shop&lt;/b&gt; &amp; Co" in http.get(link()).text
    settings.EMAIL_FROM = "=?utf-8?q?Caf=C3=A9=2C_Inc=2E?= <shop@example.com>"
    assert "Caf\u00e9, Inc." in http.get(link()).text
    settings.EMAIL_FROM = "shop@example.com"
    assert "shop@example.com" in http.get(link()).text
