"""A client without ``recipients:read`` sees only the recipient data that it sent itself."""

from collections.abc import Iterator
from typing import Any

import pytest
from bson import ObjectId

from access.models import Scope
from domain.states import DeliveryStatus
from notifications.catalog.types import MASK
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app

S = Scope
ADA = {"email": "ada.l@example.com", "phone": "+351912345678", "name": "Ada Q. Byron"}
GREETING = {"type": "order_shipped", "user_id": "ada", "recipient": {}, "data": {"order": "7"}}
SENDER = (S.NOTIFICATIONS_READ, S.NOTIFICATIONS_WRITE, S.NOTIFICATIONS_RESEND)


@pytest.fixture
def registered(app: App) -> None:
    profile = {**ADA, "locale": "pt", "timezone": "Europe/Lisbon"}
    assert app.put("/recipients/ada", profile).status_code == 201


@pytest.fixture
def sender(registered: None) -> App:
    """Return a client that sends and reads notifications, but must not read recipients."""
    return new_app("sender", *SENDER)


def answers(app: App) -> Iterator[tuple[str, str]]:
    """Yield the text of each answer about a notification, with its operation."""
    later = {**GREETING, "scheduled_at": "2027-01-01T00:00:00Z"}
    created = app.post("/notifications", GREETING)
    scheduled = app.post("/notifications", later).json()["id"]
    one = f"/notifications/{created.json()['id']}"
    yield "create", created.content.decode()
    yield "preview", app.post("/notifications/preview", GREETING).content.decode()
    yield "get", app.get(one).content.decode()
    yield "list", app.get("/notifications").content.decode()
    new_time = {"scheduled_at": "2027-02-01T00:00:00Z"}
    for path, body in ((f"/notifications/{scheduled}/reschedule", new_time), (f"{one}/cancel", {})):
        answer = app.post(path, body)
        assert answer.status_code == 200, answer.content
        yield path, answer.content.decode()
    failed = {"status": "failed", "delivery.0.status": DeliveryStatus.FAILED}
    for action in ("resend", "retry"):
        collection("notifications").update_one({"_id": ObjectId(one[15:])}, {"$set": failed})
        answer = app.post(f"{one}/{action}")
        assert answer.status_code == 202, answer.content
        yield action, answer.content.decode()


def shown(text: str) -> set[str]:
    return {value for value in (*ADA.values(), "Europe/Lisbon") if value in text}


def test_registered_data_is_in_no_answer_to_a_sender(sender: App) -> None:
    found = {operation: shown(text) for operation, text in answers(sender)}
    assert not any(found.values()), found
    stored = collection("notifications").find_one({"user_id": "ada"})
    assert stored is not None
    assert stored["recipient"]["email"] == ADA["email"], "the message still has an address"
    assert ADA["name"] in stored["content"]["body"]


@pytest.mark.parametrize("scope", [S.RECIPIENTS_READ, S.RECIPIENTS_WRITE, S.ADMIN])
def test_reader_of_recipients_sees_registered_data(registered: None, scope: Scope) -> None:
    reader = new_app("reader", *SENDER, scope)
    recipient = reader.post("/notifications", GREETING).json()["recipient"]
    assert {name: recipient[name] for name in ADA} == ADA
    for operation, text in answers(reader):
        assert ADA["name"] in text, operation


def test_given_data_is_shown_to_the_sender(sender: App) -> None:
    given = {"email": "own@example.com", "name": "Own Name"}
    created = sender.post("/notifications", {**GREETING, "recipient": given}).json()
    read = sender.get(f"/notifications/{created['id']}").json()
    for view in (created, read):
        recipient = view["recipient"]
        assert (recipient["email"], recipient["name"]) == tuple(given.values())
        assert (recipient["phone"], recipient["locale"], recipient["timezone"]) == (None,) * 3
        assert "Own Name" in view["content"]["body"]


def test_texts_do_not_confirm_a_guessed_name(sender: App) -> None:
    bodies = []
    for guess in (ADA["name"], "Grace Hopper"):
        content = {"subject": guess}
        body = {**GREETING, "data": {"order": guess}, "content": content}
        created = sender.post("/notifications", body).json()
        assert created["content"]["subject"] == guess
        assert created["content"]["body"].count(MASK) == 1
        bodies.append(created["content"]["body"].replace(guess, "…"))
    assert bodies[0] == bodies[1]


def test_older_notification_shows_a_sender_no_address_of_a_user(sender: App) -> None:
    unregistered = {**GREETING, "user_id": None, "recipient": {"email": "own@example.com"}}
    for body in (GREETING, unregistered):
        sender.post("/notifications", body)
    collection("notifications").update_many({}, {"$unset": {"recipient.given": ""}})
    emails = {n["recipient"]["email"] for n in sender.get("/notifications").json()["results"]}
    assert emails == {None, "own@example.com"}


def test_reader_reads_recipients_and_changes_none(registered: None) -> None:
    reader = new_app("reader", S.RECIPIENTS_READ)
    for path in ("/recipients/ada", "/recipients/ada/preferences", "/recipients/ada/notifications"):
        assert reader.get(path).status_code == 200, path
    refused: list[Any] = [
        reader.put("/recipients/ada", ADA),
        reader.delete("/recipients/ada"),
        reader.get("/recipients/ada/export"),
    ]
    assert [answer.status_code for answer in refused] == [403, 403, 403]
