"""Creating a notification: recipients, channels, links, attachments, and test mode."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.time import utc_now
from notifications.models import Notification
from notifications.store.reading import content_of
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, pointers
from tests.support.factories import notifications as factories
from tests.support.tables import each_case


def known_recipient(user_id: str = "ada", **fields: Any) -> None:
    collection("recipients").insert_one(
        {"_id": user_id, "is_active": True, "preferences": {}, **fields}
    )


def statuses(answer: Any) -> dict[str, str]:
    return {d["channel"]: d["status"] for d in answer.json()["delivery"]}


def test_source_is_returned_and_kept_by_a_resend(app: App) -> None:
    accepted = app.notify(source="shop / checkout").json()
    assert accepted["source"] == "shop / checkout"
    again = app.post(f"/notifications/{accepted['id']}/resend").json()
    assert again["source"] == "shop / checkout"
    assert app.notify().json()["source"] is None


@each_case("source", ["", "x" * 65, "a\x00b", 5, ["shop"]])
def test_invalid_source_is_refused(app: App, source: Any) -> None:
    answer = app.notify(source=source)
    assert (answer.status_code, list(pointers(answer))) == (422, ["/source"])
    assert app.notify(source="x" * 64).status_code == 202


def test_recipient_without_address_is_refused(app: App) -> None:
    assert pointers(app.notify(recipient={})) == {"/recipient": "no_address"}
    assert pointers(app.notify(recipient=...)) == {"/recipient": "no_address"}


def test_suppressed_address_gets_nothing(app: App) -> None:
    factories.suppress("Ada@Example.com", at=utc_now())
    for email in ("ada@example.com", "ADA@EXAMPLE.COM", "Ada@Example.com"):
        answer = app.notify(recipient={"email": email})
        assert (answer.status_code, statuses(answer)) == (202, {"email": "suppressed"})
        assert answer.json()["status"] == "suppressed"
        assert answer.json()["delivery"][0]["failure_code"] == "suppressed"


def test_preferred_channels_are_used_when_none_are_named(app: App) -> None:
    known_recipient(
        email="ada@example.com", preferences={"transactional": {"channels": ["in_app"]}}
    )
    assert statuses(app.notify(recipient=..., user_id="ada")) == {"in_app": "delivered"}
    named = app.notify(recipient=..., user_id="ada", channels=["email"])
    assert statuses(named) == {"email": "pending"}


def test_recipient_is_notified_once_per_type_and_entity(app: App, other_app: App) -> None:
    first = app.notify(user_id="ada", entity_id="order-1")
    again = app.notify(user_id="ada", entity_id="order-1")
    assert (again.status_code, again.json()["code"]) == (409, "already_notified")
    assert again.json()["notification_id"] == first.json()["id"]
    foreign = other_app.notify(user_id="ada", entity_id="order-1")
    assert foreign.status_code == 202, "another client doesn't know of the first"
    foreign_again = other_app.notify(user_id="ada", entity_id="order-1")
    assert foreign_again.json()["notification_id"] == foreign.json()["id"]
    assert app.notify(user_id="bob", entity_id="order-1").status_code == 202
    assert app.notify(user_id="ada", entity_id="order-2").status_code == 202
    assert app.notify(entity_id="order-1").status_code == 202
    assert app.notify(entity_id="order-1").status_code == 202


@each_case("notification_id", ["x", "1", "z" * 24, "65c1111111111111111111111", "a" * 24])
def test_invalid_id_is_not_found(app: App, notification_id: str) -> None:
    assert app.get(f"/notifications/{notification_id}").status_code == 404


FILE = {"url": "https://files.example.com/7.pdf", "filename": "invoice.pdf"}
STORED = {**FILE, "content_type": "application/pdf"}
Stored = Callable[[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def _allowed(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset({"files.example.com"})


def test_attachments_are_stored_read_by_the_model_and_kept_by_a_resend(
    app: App, stored: Stored
) -> None:
    answer = app.notify(content={"reply_to": "agent@example.com", "attachments": [FILE]})
    assert answer.status_code == 202
    assert stored(answer)["content"]["attachments"] == [STORED]
    content = Notification.objects.get(pk=answer.json()["id"]).content
    (attachment,) = content.attachments
    assert content.reply_to == "agent@example.com"
    assert (attachment.url, attachment.filename, attachment.content_type) == tuple(STORED.values())
    app.post(f"/notifications/{answer.json()['id']}/resend")
    first, second = [content_of(d) for d in collection("notifications").find().sort("_id")]
    assert first == second
    assert [attachment.filename for attachment in second.attachments] == ["invoice.pdf"]


def test_attachment_problems_have_pointers(app: App) -> None:
    files = [FILE, {"url": "https://evil.example/7.pdf", "filename": "../7.pdf"}]
    answer = app.notify(content={"reply_to": "a@b.example, c@d.example", "attachments": files})
    assert (answer.status_code, pointers(answer)) == (
        422,
        {
            "/content/reply_to": "invalid_email",
            "/content/attachments/1/url": "host_not_allowed",
            "/content/attachments/1/filename": "invalid_filename",
        },
    )
    assert "evil" not in answer.text


@pytest.fixture
def test_app(db: None, broker: Any) -> App:
    return new_app("test_app", is_test=True)


def test_notification_of_a_test_key_is_a_test(test_app: App, stored: Stored) -> None:
    answer = test_app.notify()
    assert (answer.status_code, answer.json()["is_test"]) == (202, True)
    assert stored(answer)["is_test"] is True
    assert test_app.get(f"/notifications/{answer.json()['id']}").json()["is_test"] is True


def test_notification_of_a_live_key_is_not_a_test(app: App, stored: Stored) -> None:
    answer = app.notify()
    assert answer.json()["is_test"] is False
    assert "is_test" not in stored(answer)


@each_case("channels", ["all", ["all"]])
def test_all_channels_are_those_that_reach_the_recipient(app: App, channels: Any) -> None:
    recipient = {"email": "ada@example.com", "phone": "+351912345678"}
    accepted = app.notify(channels=channels, recipient=recipient).json()
    status = {delivery["channel"]: delivery["status"] for delivery in accepted["delivery"]}
    assert status == {
        "email": "pending",
        "whatsapp": "pending",
        "push": "suppressed",
        "in_app": "suppressed",
    }


def test_type_names_the_channels_of_a_request_without_any(app: App) -> None:
    definition = {"name": "Release", "category": "alert", "channels": ["email", "whatsapp"]}
    assert app.put("/types/release", definition).status_code == 201
    recipient = {"email": "ada@example.com", "phone": "+351912345678"}
    content = {"subject": "Out now", "body": "It is out."}
    accepted = app.notify(type="release", recipient=recipient, content=content, data=...).json()
    assert accepted["channels"] == ["email", "whatsapp"]
