"""Error pages of the console, and problems outside it."""

from html import unescape
from typing import Any

import pytest
from django.test import Client

from api.http.problems import MEDIA_TYPE
from console.recipients.list import RecipientAdmin
from tests.support.clients.console import make_staff, signed_in
from tests.support.console_urls import addresses_with
from tests.support.samples import sampled
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")


def page(answer: Any) -> str:
    """Return the page, which must be self-contained and show the request ID of the logs."""
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    text = str(answer.content.decode())
    assert text.startswith("<!doctype html>")
    assert f"<code>{answer.headers['X-Request-Id']}</code>" in text
    assert 'href="/admin/"' in text
    for reference in ("<script", "<link", "src=", "http://", "https://"):
        assert reference not in text
    return text


@each_case(
    "path", ["nope/", "notifications/nope/", "notifications/nope/1/change/", "a/b/c/d/", "<b>/"]
)
def test_unknown_page_links_home_and_search(console: Client, path: str) -> None:
    answer = console.get(f"/admin/{path}")
    assert answer.status_code == 404
    text = page(answer)
    assert "Page not found" in text
    assert 'href="/admin/notifications/notification/"' in text
    assert "<b>" not in text


HOSTILE = ["1", "x", "0" * 24, "9" * 400, "a_20b\0$", "../x", "%2e%00", "😀"]


def test_no_address_of_the_console_fails(console: Client) -> None:
    console.raise_request_exception = False
    addresses = [address for value in HOSTILE for address in addresses_with(value)]
    assert len(addresses) > 80 * (len(HOSTILE) - 1)
    checked = sampled(addresses, each=11)
    assert [url for url in checked if console.get(url).status_code >= 500] == []


@each_case("model", ["auth/group", "access/apiclient", "recipients/recipient"])
def test_long_search_is_refused(console: Client, model: str) -> None:
    answer = console.get(f"/admin/{model}/", {"q": "x" * 70_000})
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/admin/{model}/?e=1")
    assert console.get(f"/admin/{model}/", {"q": "x" * 320}).status_code == 200


def test_unknown_page_redirects_to_login_without_a_session(client: Client) -> None:
    answer = client.get("/admin/nope/")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/admin/login/")


def test_forbidden_page_says_whom_to_ask(db: None) -> None:
    nobody = signed_in(make_staff("rui"))
    for path in ("notifications/notification/", "access/staffuser/", "recipients/recipient/add/"):
        answer = nobody.get(f"/admin/{path}")
        assert answer.status_code == 403
        text = page(answer)
        assert "Permission denied" in text
        assert "ask an admin" in text


def test_outdated_form_asks_for_a_reload(console: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = console.cookies
    answer = strict.post("/admin/recipients/suppression/add/", {"channel": "email"})
    assert answer.status_code == 403
    assert "reload the page" in page(answer)


def test_failed_page_hides_the_error(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: Any) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr(RecipientAdmin, "prepare_rows", fail)
    console.raise_request_exception = False
    answer = console.get("/admin/recipients/recipient/")
    assert answer.status_code == 500
    text = page(answer)
    assert "Unexpected error." in text
    assert "canary" not in text


def test_unknown_host_gets_an_error_page(console: Client) -> None:
    answer = console.get("/admin/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "evil" not in page(answer)


@each_case("path", ["/nope", "/api/v1/nope", "/api/nope", "/administration/nope"])
def test_unknown_path_outside_the_console_is_a_json_problem(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, MEDIA_TYPE)
    assert answer.json()["code"] == "not_found"


@each_case(
    "path, is_said",
    [
        ("/admin/notifications/notificationtype/mfa_5Fcode/change/", True),
        ("/admin/recipients/suppression/add/?_changelist_filters=channel%3Demail", True),
        ("/admin/notifications/providerstate/sendgrid/pause/", True),
        ("/admin/notifications/failednotification/", True),
        ("/admin/alerts/read/", True),
        ("/admin/", True),
        ("/admin/login/", False),
        ("/admin/logout/", False),
    ],
)
def test_form_sent_without_a_session_is_said_to_be_lost(
    db: None, client: Client, path: str, is_said: bool
) -> None:
    page = client.post(path, {"name": "Typed for an hour"}, follow=True).content.decode()
    assert ("You were signed out, so nothing was saved." in unescape(page)) is is_said
    again = client.get("/admin/login/").content.decode()
    assert "nothing was saved" not in again, "said once"


def test_page_opened_without_a_session_loses_nothing(db: None, client: Client) -> None:
    page = client.get("/admin/recipients/suppression/add/", follow=True).content.decode()
    assert "nothing was saved" not in page
