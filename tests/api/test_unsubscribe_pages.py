"""The pages behind an unsubscribe link: in whose language, when something is wrong, how guarded."""

import logging
import re
from typing import Any

import pytest
from django.test import Client
from pymongo.errors import NetworkTimeout

from notifyproject.db.collections import collection
from privacy import unsubscribe
from tests.support.clients.unsubscribe import actions, heading, link

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def http() -> Client:
    """Give a test a client that is held to every rule about forms."""
    return Client(enforce_csrf_checks=True, raise_request_exception=False)


# In their language.


@pytest.mark.parametrize(
    ("locale", "browser", "language", "title"),
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
def test_the_page_is_in_the_persons_language(
    http: Client, locale: str | None, browser: str, language: str, title: str
) -> None:
    page = http.get(link(locale=locale), headers={"Accept-Language": browser})
    assert heading(page) == title
    assert f'<html lang="{language}">' in page.text


@pytest.mark.parametrize("step", ["", "/undo"])
def test_the_answers_are_in_portuguese_too(http: Client, step: str) -> None:
    page = http.post(f"{link(locale='pt')}{step}")
    assert '<html lang="pt">' in page.text
    assert "subscrição" in heading(page)


# What goes wrong.


@pytest.mark.parametrize("method", ["get", "head", "post"])
@pytest.mark.parametrize("token", ["x", "A" * 80, "A" * 3_000, "%00", "%C3%A9", "a.b"])
def test_a_link_that_is_none_of_ours_is_a_clear_404(http: Client, method: str, token: str) -> None:
    for path in (f"/u/{token}", f"/u/{token}/undo"):
        answer = getattr(http, method)(path, headers={"Accept-Language": "pt"})
        assert answer.status_code == 404
        if method != "head":
            assert heading(answer) == "Esta ligação não funciona"
            assert actions(answer) == []
    assert collection("suppressions").count_documents({}) == 0


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("step", ["", "/undo"])
def test_a_database_that_is_away_is_told_as_ours_and_to_try_again(
    http: Client, monkeypatch: pytest.MonkeyPatch, method: str, step: str
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise NetworkTimeout("away")

    monkeypatch.setattr(unsubscribe, "suppress", away)
    monkeypatch.setattr(unsubscribe.recipients, "find_suppressed", away)
    path = link()
    answer = getattr(http, method)(f"{path}{step}")
    if (method, step) == ("get", "/undo"):
        assert answer.status_code == 302
        return
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert actions(answer) == [("get", path)]


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_other_methods_are_not_taken(http: Client, method: str) -> None:
    assert getattr(http, method)(link()).status_code == 405


# What it gives away.


def test_the_page_runs_nothing_loads_nothing_and_is_in_nobodys_frame(http: Client) -> None:
    for answer in (http.get(link()), http.post(link()), http.get("/u/x")):
        policy = answer["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'nonce-")
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        (nonce,) = re.findall(r"'nonce-([^']+)'", policy)
        assert f'<style nonce="{nonce}">' in answer.text
        assert not re.search(r"<script|<link|<img|src=|style=|\bon\w+=", answer.text)
        assert answer["X-Frame-Options"] == "DENY"


def test_its_address_is_not_passed_on_or_kept(http: Client) -> None:
    for answer in (http.get(link()), http.post(link())):
        assert answer["Referrer-Policy"] == "no-referrer"
        assert answer["Cache-Control"] == "no-store"
        assert "noindex" in answer["X-Robots-Tag"]


def test_no_log_line_holds_an_address(http: Client, caplog: pytest.LogCaptureFixture) -> None:
    path = link()
    with caplog.at_level(logging.DEBUG):
        http.post(path)
        http.post(f"{path}/undo")
        http.get("/u/x")
    said = caplog.text
    assert "unsubscribed" in said
    assert "resubscribed" in said
    assert "ada" not in said.lower()
    assert "example.com" not in said


def test_a_name_of_the_sender_is_shown_as_text(http: Client, settings: Any) -> None:
    settings.EMAIL_FROM = '"<b>Shop</b> & Co" <shop@example.com>'
    assert "&lt;b&gt;Shop&lt;/b&gt; &amp; Co" in http.get(link()).text
    settings.EMAIL_FROM = "shop@example.com"
    assert "shop@example.com" in http.get(link()).text
