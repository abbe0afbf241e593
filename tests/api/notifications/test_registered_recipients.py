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
    created_path = f"/notifications/{created.json()['id']}"
    yield "create", created.content.decode()
    yield "preview", app.post("/notifications/preview", GREETING).content.decode()
    yield "get", app.get(created_path).content.decode()
    yield "list", app.get("/notifications").content.decode()
    new_time = {"scheduled_at": "2027-02-01T00:00:00Z"}
    for path, body in (
        (f"/notifications/{scheduled}/reschedule", new_time),
        (f"{created_path}/cancel", {}),
    ):
        answer = app.post(path, body)
        assert answer.status_code == 200, answer.content
        yield path, answer.content.decode()
    failed = {"status": "failed", "delivery.0.status": DeliveryStatus.FAILED}
    for action in ("resend", "retry"):
        collection("notifications").update_one(
            {"_id": ObjectId(created_path[15:])}, {"$set": failed}
        )
        answer = app.post(f"{created_path}/{action}")
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


WORDS = {
    "default": {
        "subject": "Hi {{ recipient.name }} {{ n | plus: 1 }}",
        "body": "English for {{ recipient.timezone }}",
    },
    "pt": {
        "subject": "Olá {{ recipient.name }}",
        "body": "Português para {{ recipient.timezone }}",
    },
}


@pytest.fixture
def greeting(app: App) -> dict[str, Any]:
    """Return a request whose template shows all that the registry knows for texts."""
    kind = {
        "name": "Hello",
        "category": "transactional",
        "channels": ["email"],
        "example_data": {"n": 1},
    }
    assert app.put("/types/hello", kind).status_code == 201
    made = app.post("/types/hello/templates", {"parts": WORDS})
    assert made.status_code == 201, made.content
    published = app.post("/types/hello/templates/versions/1/publish")
    assert published.status_code == 200, published.content
    return {"type": "hello", "user_id": "ada", "recipient": {}, "data": {"n": 1}}


def test_texts_are_those_of_the_request_alone(sender: App, greeting: dict[str, Any]) -> None:
    created = sender.post("/notifications", greeting).json()
    views = [created, sender.get(f"/notifications/{created['id']}").json()]
    for view in views:
        assert view["content"]["subject"] == f"Hi {MASK} 2"
        assert view["content"]["body"] == "English for UTC"
    preview = sender.post("/notifications/preview", greeting).json()
    assert preview["locale"] is None
    (email,) = [channel for channel in preview["channels"] if channel["channel"] == "email"]
    assert (email["subject"], email["text"]) == (f"Hi {MASK} 2", "English for UTC")
    assert "Portugu" not in email["html"]
    own = {**greeting, "recipient": {"locale": "pt", "timezone": "Asia/Tokyo"}}
    assert (
        sender.post("/notifications", own).json()["content"]["body"] == "Português para Asia/Tokyo"
    )


def test_subject_that_renders_differently_later_is_not_taken_for_the_requests_own(
    sender: App, greeting: dict[str, Any]
) -> None:
    created = sender.post("/notifications", greeting).json()
    # As if the template's result had changed, such as by the time or a release.
    changed = {"$set": {"content.subject": f"Hi {ADA['name']} yesterday"}}
    collection("notifications").update_one({"_id": ObjectId(created["id"])}, changed)
    shown_subject = sender.get(f"/notifications/{created['id']}").json()["content"]["subject"]
    assert shown_subject == f"Hi {MASK} 2"
    own = sender.post("/notifications", {**greeting, "content": {"subject": "Mine"}}).json()
    assert sender.get(f"/notifications/{own['id']}").json()["content"]["subject"] == "Mine"


def test_time_on_the_registered_clock_is_not_shown(sender: App, greeting: dict[str, Any]) -> None:
    local = {**greeting, "scheduled_local": {"at": "2027-01-15T09:00:00"}, "ttl": 3600}
    for path in ("/notifications", "/notifications/preview"):
        answer = sender.post(path, local)
        assert answer.status_code in (200, 202), answer.content
        assert (answer.json()["scheduled_at"], answer.json()["expires_at"]) == (None, None)
        assert "2027-01-15T" not in answer.content.decode()
    stored = collection("notifications").find_one({"scheduled_local": {"$exists": True}})
    assert stored is not None
    assert stored["scheduled_at"] is not None
    text = sender.get(f"/notifications/{stored['_id']}").content.decode()
    assert "2027-01-15T" not in text
    given = {**local, "scheduled_local": {"at": "2027-01-15T09:00:00", "timezone": "Asia/Tokyo"}}
    assert sender.post("/notifications", given).json()["scheduled_at"] == "2027-01-15T00:00:00Z"


@pytest.mark.parametrize("scopes", [SENDER, (*SENDER, S.RECIPIENTS_READ)])
def test_broadcasts_name_only_recipients_that_the_client_may_know(
    registered: None, scopes: tuple[Scope, ...]
) -> None:
    client = new_app("broadcaster", *scopes)
    content = {"subject": "Spring", "body": "It is spring."}
    body = {"type": "marketing", "content": content, "channels": ["whatsapp"]}
    collection("recipients").update_one({"_id": "ada"}, {"$unset": {"phone": ""}})
    whole = client.post("/broadcasts/preview", {**body, "audience": {"all": True}}).json()
    (reason,) = whole["skipped"]
    assert reason["count"] == 1
    assert reason["examples"] == (["ada"] if S.RECIPIENTS_READ in scopes else [])
    listed = client.post("/broadcasts/preview", {**body, "audience": {"user_ids": ["ada"]}}).json()
    assert listed["skipped"][0]["examples"] == ["ada"]
    made = client.post("/broadcasts", {**body, "audience": {"all": True}}).json()
    skipped = {"no_address": {"count": 1, "examples": ["ada"]}}
    collection("broadcasts").update_one(
        {"_id": ObjectId(made["id"])}, {"$set": {"skipped": skipped}}
    )
    shown = client.get(f"/broadcasts/{made['id']}").json()
    (first,) = client.get("/broadcasts").json()["results"]
    for view in (shown, first, client.post(f"/broadcasts/{made['id']}/cancel").json()):
        assert view["skipped"][0]["examples"] == reason["examples"]
