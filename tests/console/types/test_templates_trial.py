"""Before a version is published: what differs, and a test that arrives. After it: the way back."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from console.types.diff import LineChange, changes
from domain.time import utc_now
from notifications.catalog import types
from notifications.content import templates
from notifications.models import Notification
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in

pytestmark = pytest.mark.usefixtures("db", "broker")

SLUG = "payment_confirmed"
PAGE = f"/admin/notifications/notificationtype/{SLUG}/templates/"


def stored(**texts: str) -> int:
    """Store a version and return its number."""
    parts = {"default": {"body": "Paid.", **texts}}
    version = templates.create_version(
        type_slug=SLUG, parts=parts, note="", created_by="app:shop", now=utc_now()
    )
    return version.number


def publish(number: int) -> None:
    templates.publish_version(type_slug=SLUG, number=number, now=utc_now())


# What differs.


def test_lines_are_added_removed_and_kept() -> None:
    before = {"default": {"body": "Hello\nYou paid.\nBye", "push": "Same"}}
    after = {"default": {"body": "Hello\nWe have it.\nBye", "push": "Same"}, "pt": {"push": "Olá"}}
    body, push = changes(before, after)
    assert (body.language, body.label) == ("Default", "Text")
    assert [(line.change, line.text) for line in body.lines] == [
        (LineChange.KEPT, "Hello"),
        (LineChange.REMOVED, "You paid."),
        (LineChange.ADDED, "We have it."),
        (LineChange.KEPT, "Bye"),
    ]
    assert (push.language, push.label) == ("Portuguese", "Push")
    assert [(line.change, line.text) for line in push.lines] == [(LineChange.ADDED, "Olá")]


def test_a_long_text_is_shown_around_what_changed() -> None:
    lines = [f"Line {number}" for number in range(30)]
    before = {"default": {"body": "\n".join(lines)}}
    after = {"default": {"body": "\n".join([*lines[:20], "New", *lines[20:]])}}
    ((change),) = changes(before, after)
    assert [line.change for line in change.lines] == [
        *(
            LineChange.OMITTED,
            LineChange.KEPT,
            LineChange.KEPT,
            LineChange.ADDED,
            LineChange.KEPT,
            LineChange.KEPT,
        )
    ]


def test_the_same_texts_do_not_differ() -> None:
    assert changes({"default": {"body": "A\n"}}, {"default": {"body": "A"}}) == []


def test_a_version_is_compared_with_the_published_one(console: Client) -> None:
    publish(stored(push="Old"))
    page = console.get(f"{PAGE}{stored(push='New')}/")
    assert page.context["differences"]["from"] == "version 1"
    text = page.content.decode()
    assert "<del>Old</del>" in text
    assert "<ins>New</ins>" in text


def test_the_published_one_is_compared_with_the_one_before_it(console: Client) -> None:
    publish(stored(push="Old"))
    assert console.get(f"{PAGE}1/").context["differences"]["from"] == "the release's own"
    publish(0)
    assert console.get(f"{PAGE}0/").context["differences"] == {}


# A test.


def test_an_unpublished_version_is_sent_with_the_types_example(console: Client) -> None:
    number = stored(body="We have {{ amount }}.")
    answer = console.post(
        f"{PAGE}{number}/try/", {"channel": "email", "address": "ops@example.com"}, follow=True
    )
    assert "The test is on its way" in answer.content.decode()
    one = Notification.objects.get()
    assert (one.type, one.channels, one.recipient.email) == (SLUG, ["email"], "ops@example.com")
    assert (one.content.template_version, one.content.body) == (number, "We have 49.90.")
    assert types.get_template_version(SLUG) == 0
    (line,) = LogEntry.objects.all()
    assert line.change_message == f"Sent a test of version 1 by Email: {one.pk}."


def test_a_test_is_in_the_language_that_is_looked_at(console: Client) -> None:
    sent = {"channel": "email", "address": "ops@example.com", "language": "pt"}
    console.post(f"{PAGE}0/try/", sent)
    assert "Recebemos" in Notification.objects.get().content.body


@pytest.mark.parametrize(
    ("channel", "address"), [("email", "nobody"), ("in_app", "ada"), ("", ""), ("whatsapp", "12")]
)
def test_nothing_is_sent_to_what_is_no_address(console: Client, channel: str, address: str) -> None:
    sent = {"channel": channel, "address": address}
    answer = console.post(f"{PAGE}0/try/", sent, follow=True)
    assert "Nothing was sent" in answer.content.decode()
    assert collection("notifications").count_documents({}) == 0


def test_a_version_that_is_not_there_is_not_sent(console: Client) -> None:
    sent = {"channel": "email", "address": "ops@example.com"}
    answer = console.post(f"{PAGE}7/try/", sent, follow=True)
    assert "There is no such version." in answer.content.decode()


def test_who_may_not_send_tests_is_offered_none() -> None:
    looker = signed_in(make_staff("rui", "notifications.view_notificationtype"))
    assert "Send a test" not in looker.get(f"{PAGE}0/").content.decode()
    assert looker.post(f"{PAGE}0/try/").status_code == 403


# The way back.


def test_an_older_version_is_gone_back_to(console: Client) -> None:
    stored()
    publish(stored())
    stored()
    rows = console.get("/admin/notifications/notificationtype/payment_5Fconfirmed/change/")
    words = {row["name"]: row["publish_words"] for row in rows.context["rows"]}
    assert words == {
        "Version 3": "Publish",
        "Version 2": "Publish",
        "Version 1": "Roll back",
        "The release's own": "Roll back",
    }
    console.post(f"{PAGE}1/publish/")
    assert types.get_template_version(SLUG) == 1
