"""Where answers to a mail go, and its attachments, from the request to the documents."""

from collections.abc import Callable
from typing import Any

import pytest

from notifications.models import Notification
from notifications.store import content_of
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers

FILE = {"url": "https://files.example.com/7.pdf", "filename": "invoice.pdf"}
STORED = {**FILE, "content_type": "application/pdf"}
Stored = Callable[[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def _allowed(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset({"files.example.com"})


def test_they_are_stored_with_the_notification(app: App, stored: Stored) -> None:
    answer = app.notify(content={"reply_to": "agent@example.com", "attachments": [FILE]})
    assert answer.status_code == 202
    content = stored(answer)["content"]
    assert (content["reply_to"], content["attachments"]) == ("agent@example.com", [STORED])


def test_staff_can_read_them(app: App) -> None:
    answer = app.notify(content={"reply_to": "agent@example.com", "attachments": [FILE]})
    content = Notification.objects.get(pk=answer.json()["id"]).content
    (one,) = content.attachments
    assert content.reply_to == "agent@example.com"
    assert (one.url, one.filename, one.content_type) == tuple(STORED.values())


def test_a_notification_without_them_reads_as_one_without_them(app: App) -> None:
    answer = app.notify()
    content = Notification.objects.get(pk=answer.json()["id"]).content
    assert (content.reply_to, content.attachments) == (None, [])


def test_a_resend_has_them_too(app: App) -> None:
    answer = app.notify(content={"reply_to": "agent@example.com", "attachments": [FILE]})
    app.post(f"/notifications/{answer.json()['id']}/resend")
    first, second = [content_of(d) for d in collection("notifications").find().sort("_id")]
    assert first == second
    assert [one.filename for one in second.attachments] == ["invoice.pdf"]


def test_every_problem_of_theirs_has_its_place(app: App) -> None:
    files = [FILE, {"url": "https://evil.example/7.pdf", "filename": "../7.pdf"}]
    answer = app.notify(content={"reply_to": "a@b.example, c@d.example", "attachments": files})
    assert answer.status_code == 422
    assert pointers(answer) == {
        "/content/reply_to": "invalid_email",
        "/content/attachments/1/url": "host_not_allowed",
        "/content/attachments/1/filename": "invalid_filename",
    }
    assert "evil" not in answer.text


def test_a_field_of_an_attachment_that_is_missing_has_its_place(app: App) -> None:
    answer = app.notify(content={"attachments": [{"url": FILE["url"]}]})
    assert pointers(answer) == {"/content/attachments/0/filename": "required"}


def test_where_no_host_is_allowed_attachments_are_refused(app: App, settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset()
    answer = app.notify(content={"attachments": [FILE]})
    assert answer.status_code == 422
    assert pointers(answer) == {"/content/attachments": "not_enabled"}
    assert collection("notifications").count_documents({}) == 0
