"""The recipient routes: registration, profile, and validation."""

from typing import Any

import pytest

from access.models import Scope
from notifyproject.db.collections import collection
from recipients import registration
from tests.support.clients.api import Answer, App, new_app, pages, pointers
from tests.support.factories.notifications import NOON
from tests.support.tables import each_case

ADA = {
    "email": "ada@example.com",
    "phone": "+351912345678",
    "name": "Ada",
    "locale": "pt-BR",
    "timezone": "Europe/Lisbon",
    "attributes": {"plan": "gold", "children": [{"age": 7}]},
}
ONE = "/recipients/ada"
HOURS = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "Europe/Lisbon"}


def register(app: App, user_id: str = "ada", **fields: Any) -> Answer:
    """Register Ada with these fields. The value ... leaves a field out."""
    body = {name: value for name, value in {**ADA, **fields}.items() if value is not ...}
    return app.put(f"/recipients/{user_id}", body)


def test_recipient_is_registered_and_shown(app: App) -> None:
    answer = register(app)
    assert answer.status_code == 201
    shown = answer.json()
    at = shown["created_at"]
    expected = {"user_id": "ada", **ADA, "quiet_hours": None, "created_at": at, "updated_at": at}
    assert shown == expected
    assert app.get(ONE).json() == shown


def test_second_registration_replaces_the_profile_and_keeps_preferences(app: App) -> None:
    register(app, quiet_hours=HOURS)
    app.put(
        f"{ONE}/preferences", {"preferences": {"marketing": {"muted": True}}, "quiet_hours": HOURS}
    )
    answer = app.put(ONE, {"email": "ada@work.example"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["email"], shown["phone"], shown["attributes"]) == ("ada@work.example", None, {})
    assert shown["quiet_hours"] == HOURS
    preferences = app.get(f"{ONE}/preferences").json()["preferences"]
    assert preferences["marketing"]["muted"] is True
    stored = collection("recipients").find_one({"_id": "ada"})
    assert stored is not None
    assert "phone" not in stored, "an index holds only the people who have one"


def test_null_removes_quiet_hours(app: App) -> None:
    register(app, quiet_hours=HOURS)
    assert register(app, quiet_hours=None).json()["quiet_hours"] is None


def test_registered_recipient_is_reached_by_user_id(app: App) -> None:
    register(app)
    answer = app.notify(user_id="ada", recipient=..., channels=["email", "whatsapp"])
    assert answer.status_code == 202
    recipient = answer.json()["recipient"]
    assert (recipient["email"], recipient["phone"]) == (ADA["email"], ADA["phone"])


def test_unregistered_recipient_is_not_found(app: App) -> None:
    for path in (ONE, f"{ONE}/preferences", f"{ONE}/export"):
        assert app.get(path).status_code == 404
    assert app.put(f"{ONE}/preferences", {}).status_code == 404


@each_case("user_id", ["%20", "%00", "a%00b", "a%0Ab", "x" * 129])
def test_invalid_user_id_is_not_found(app: App, user_id: str) -> None:
    path = f"/recipients/{user_id}"
    answers = [
        app.get(path),
        app.delete(path),
        app.get(f"{path}/export"),
        app.get(f"{path}/preferences"),
        app.put(f"{path}/preferences", {}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 5
    # Where it would be stored, the code says why. A longer one has no route.
    new = [app.put(path, ADA), app.put(f"/topics/news/members/{user_id}", {})]
    assert {answer.status_code for answer in new} == {404 if len(user_id) > 128 else 422}
    assert collection("recipients").count_documents({}) == 0


BIG = {f"k{n}": "x" * 200 for n in range(90)}
BAD_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"email": "a@b.c\r\nBcc: x@y.z"}, "/email", "invalid_email"),
    ({"phone": "912345678"}, "/phone", "invalid_phone"),
    ({"name": "Ada\r\nBcc"}, "/name", "invalid_name"),
    ({"name": " "}, "/name", "invalid_name"),
    ({"name": "n" * 201}, "/name", "out_of_range"),
    ({"locale": "portuguese please"}, "/locale", "invalid_language"),
    ({"timezone": "Mars/Olympus"}, "/timezone", "unknown_timezone"),
    ({"attributes": BIG}, "/attributes", "too_long"),
    ({"attributes": {f"k{n}": 1 for n in range(101)}}, "/attributes", "out_of_range"),
    ({"attributes": {"$where": 1}}, "/attributes/$where", "forbidden_key"),
    ({"attributes": {"a": {"b.c": 1}}}, "/attributes/a/b.c", "forbidden_key"),
    ({"attributes": {"n": 2**63}}, "/attributes/n", "integer_too_large"),
    ({"is_active": False}, "/is_active", "unknown_field"),
    ({"preferences": {}}, "/preferences", "unknown_field"),
    ({"quiet_hours": {"start": "22:00"}}, "/quiet_hours/enabled", "required"),
    ({"quiet_hours": {**HOURS, "start": "24:00"}}, "/quiet_hours/start", "invalid_time"),
    ({"quiet_hours": {**HOURS, "end": "22:00"}}, "/quiet_hours/end", "empty_quiet_hours"),
    ({"quiet_hours": {**HOURS, "timezone": "CET+1"}}, "/quiet_hours/timezone", "unknown_timezone"),
    ({"quiet_hours": {**HOURS, "enabled": 1}}, "/quiet_hours/enabled", "wrong_type"),
]


@each_case("fields, pointer, code", BAD_FIELDS)
def test_invalid_field_is_refused_with_its_pointer(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    answer = register(app, **fields)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    assert collection("recipients").count_documents({}) == 0


def test_recipients_are_shared_by_all_clients(app: App, other_app: App) -> None:
    """A user is the same person to all apps of a company, but notifications belong to one app."""
    register(app)
    assert other_app.get(ONE).json()["email"] == ADA["email"]
    app.notify(user_id="ada")
    assert other_app.get(f"{ONE}/notifications").json()["results"] == []


def listed(app: App, **query: Any) -> list[str]:
    answer = app.get("/recipients", **query)
    assert answer.status_code == 200
    return [result["user_id"] for result in answer.json()["results"]]


def test_recipients_are_listed_by_user_id(app: App) -> None:
    for user_id in ("eve", "ada", "bob", "cyd", "dan"):
        register(app, user_id)
    found = [recipient for page in pages(app.get, "/recipients", limit=2) for recipient in page]
    assert [recipient["user_id"] for recipient in found] == ["ada", "bob", "cyd", "dan", "eve"]
    assert found[0] == app.get(ONE).json()


def test_recipient_being_erased_is_not_listed(app: App) -> None:
    register(app, "ada")
    register(app, "eve")
    registration.begin_erasure("ada", now=NOON)
    assert listed(app) == ["eve"]


@pytest.fixture
def three(app: App) -> None:
    register(app, "ada")
    register(app, "bob", email="bob@example.com", phone="+351912345679")
    register(app, "eve", phone="+351912345679")


@pytest.mark.usefixtures("three")
@each_case(
    "query, expected",
    [
        ({"email": "ada@example.com"}, ["ada", "eve"]),
        ({"email": "ada@EXAMPLE.com"}, ["ada", "eve"]),
        ({"phone": "+351912345679"}, ["bob", "eve"]),
        ({"phone": " 351912345679"}, ["bob", "eve"]),
        ({"email": "ada@example.com", "phone": "+351912345679"}, ["eve"]),
        ({"email": "nobody@example.com"}, []),
    ],
)
def test_recipients_are_found_by_address(
    app: App, query: dict[str, str], expected: list[str]
) -> None:
    assert listed(app, **query) == expected


def test_invalid_addresses_are_refused_together(app: App) -> None:
    answer = app.get("/recipients", email="ada", phone="911", limit=0)
    assert pointers(answer) == {
        "/email": "invalid_email",
        "/phone": "invalid_phone",
        "/limit": "out_of_range",
    }


def test_recipients_are_listed_with_the_scope_to_read_them(app: App) -> None:
    reader = new_app("reader", Scope.RECIPIENTS_READ)
    sender = new_app("sender", Scope.NOTIFICATIONS_READ)
    register(app)
    assert listed(reader) == ["ada"]
    assert sender.get("/recipients").json()["code"] == "insufficient_scope"
