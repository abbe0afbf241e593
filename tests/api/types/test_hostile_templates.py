"""Templates that would end a process: refused, and harmless where they are stored already."""

from typing import Any

import pytest
from django.test import Client

from domain.time import utc_now
from notifications.content import templates
from tests.api.types.test_template_versions import create, publish
from tests.support.clients.api import App, request
from tests.support.clients.console import make_staff, signed_in

NESTED = "<p>\n" + "<div>" * 13_000


@pytest.fixture
def stored(app: App) -> None:
    """Publish a version with such HTML, as an earlier release took it."""
    templates.create_version(
        type_slug="payment_confirmed",
        parts={"default": {"subject": "S", "body": "Hello", "email_html": NESTED}},
        note="",
        created_by="app:shop",
        now=utc_now(),
    )
    assert publish(app, 1).status_code == 200


@pytest.mark.parametrize(
    ("part", "source", "code", "detail"),
    [
        ("email_html", NESTED, "too_complex", "Line 2: HTML nests at most 200 levels deep"),
        ("body", "a\n{{ (1..4000000) | join }}", "template_failed", "Line 2: A list or range has"),
        ("body", "{{" * 20_000, "syntax", "Line 1: Expected '}}', found end of file."),
        ("body", "{{ amount }}\n" * 501, "too_complex", "Line 501: A part has at most 500"),
        ("push", "\n{{ 'a' | append: 'a' }}" + "{{" * 3, "syntax", "Line 2: Expected '}}'"),
    ],
)
def test_it_is_refused_with_its_line_and_the_reason(
    app: App, part: str, source: str, code: str, detail: str
) -> None:
    answer = create(app, {"default": {"subject": "S", "body": "B", part: source}})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == (f"/parts/default/{part}", code)
    assert error["detail"].startswith(detail)


def test_one_that_is_there_is_previewed_as_what_is_wrong_with_it(app: App, stored: None) -> None:
    answer = app.post("/notifications/preview", request(channels=["in_app"], user_id="ada"))
    assert answer.status_code == 200
    channels = {one["channel"]: one for one in answer.json()["channels"]}
    assert "200 levels" in channels["email"]["problem"]
    assert channels["in_app"]["text"] == "Hello"


def test_mail_by_one_that_is_there_is_refused(app: App, stored: None) -> None:
    answer = app.notify(channels=["email"])
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["code"] == "too_complex"
    assert "200 levels" in error["detail"]


def test_the_pages_of_one_that_is_there_are_shown(app: App, stored: None) -> None:
    looker: Client = signed_in(make_staff("rui", "notifications.view_notificationtype"))
    for page in ("payment_5Fconfirmed/change/", "payment_confirmed/templates/1/"):
        shown: Any = looker.get(f"/admin/notifications/notificationtype/{page}")
        assert shown.status_code == 200
        assert "Hello" in shown.content.decode()
