"""Recipients' own preferences, by inbox token."""

from typing import Any

import pytest
from bson import ObjectId

from access.clients import inbox_tokens
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection
from recipients import registration
from tests.support.clients.api import App, new_app, pointers
from tests.support.clients.inbox import InboxUser
from tests.support.fakes.provider import ScriptedProvider
from tests.support.samples import sampled
from tests.support.tables import each_case


@pytest.fixture
def ada(app: App) -> InboxUser:
    return InboxUser(app=app)


def put(user: InboxUser, **fields: Any) -> Any:
    return user.put("/preferences", fields)


def test_choices_are_the_active_types_and_critical_ones_are_locked(ada: InboxUser) -> None:
    body = ada.get("/preferences").json()
    assert (body["preferences"], body["quiet_hours"]) == ({}, None)
    types = {type_["slug"]: type_ for type_ in body["types"]}
    assert types["mfa_code"]["is_locked"]
    shipped = types["order_shipped"]
    assert (shipped["is_locked"], shipped["category"]) == (False, "transactional")
    assert shipped["channels"] == ["email", "push", "in_app"]
    assert shipped["name"] == "Order shipped"


def test_preference_applies_to_the_next_notification(app: App, ada: InboxUser) -> None:
    app.put("/recipients/ada", {"email": "ada@example.com"})
    wanted = {"transactional": {"muted_channels": ["email"], "digest": "off"}}
    hours = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "Europe/Lisbon"}
    answer = put(ada, preferences=wanted, quiet_hours=hours)
    assert answer.status_code == 200
    assert answer.json()["quiet_hours"] == hours
    assert ada.get("/preferences").json() == answer.json()
    sent = app.notify(user_id="ada", channels=["email", "in_app"]).json()["delivery"]
    assert {delivery["channel"]: delivery["status"] for delivery in sent} == {
        "email": "suppressed",
        "in_app": "delivered",
    }


def test_unregistered_recipient_is_registered(app: App) -> None:
    eve = InboxUser(app=app, user_id="eve")
    assert put(eve, preferences={"marketing": {"muted": True}}).status_code == 200
    stored = registration.get("eve")
    assert stored is not None
    assert stored["preferences"] == {"marketing": {"muted": True}}
    app.put("/recipients/eve", {"email": "eve@example.com"})
    assert eve.get("/preferences").json()["preferences"]["marketing"]["muted"]


def test_recipient_who_is_being_erased_is_not_registered_again(app: App, ada: InboxUser) -> None:
    app.put("/recipients/ada", {"email": "ada@example.com"})
    registration.begin_erasure("ada", now=utc_now())
    assert put(ada, preferences={}).status_code == 404


@each_case(
    "preferences, expected",
    [
        ({"mfa_code": {"channels": ["push"]}}, {"/preferences/mfa_code/channels": "critical"}),
        ({"gossip": {"muted": True}}, {"/preferences/gossip": "unknown_type"}),
        (
            {"alert": {"digest": {"every": "day", "at": "8"}}},
            {"/preferences/alert/digest/at": "invalid_time"},
        ),
        ({"marketing": {"muted": 1}}, {"/preferences/marketing/muted": "wrong_type"}),
    ],
)
def test_invalid_preference_is_refused(
    ada: InboxUser, preferences: dict[str, Any], expected: dict[str, str]
) -> None:
    answer = put(ada, preferences=preferences)
    assert (answer.status_code, pointers(answer)) == (422, expected)


HOURS = {"enabled": True, "start": "00:00", "end": "23:59", "timezone": "UTC"}
WISHES: list[dict[str, Any]] = [
    {"preferences": {"mfa_code": {"channels": ["push"]}}},
    {"preferences": {"mfa_code": {"channels": ["whatsapp"]}}},
    {"preferences": {"mfa_code": {"channels": ["in_app"]}}},
    {"preferences": {"mfa_code": {"channels": ["in_app", "email"]}}},
    {"preferences": {"mfa_code": {"muted": True}}},
    {"preferences": {"mfa_code": {"muted_channels": ["email"]}}},
    {"preferences": {"mfa_code": {"digest": {"every": "week"}}}},
    {"preferences": {"transactional": {"muted": True}}},
    {"preferences": {"transactional": {"channels": ["in_app"]}}},
    {"preferences": {"transactional": {"muted_channels": ["email"]}}},
    {"preferences": {"transactional": {"digest": {"every": "week"}}}},
    {"quiet_hours": HOURS},
]


STORED = [(wish, stored) for wish in WISHES for stored in ("by the token", "by the app", "earlier")]


@pytest.mark.parametrize(("wish", "stored"), sampled(STORED, each=5), ids=str)
def test_no_wish_stops_or_takes_a_login_code(
    app: App, ada: InboxUser, fcm: ScriptedProvider, wish: dict[str, Any], stored: str
) -> None:
    app.put("/recipients/ada", {"email": "ada@example.com"})
    if stored == "earlier":
        collection("recipients").update_one({"_id": "ada"}, {"$set": wish})
    elif stored == "by the app":
        app.put("/recipients/ada/preferences", wish)
    else:
        put(ada, **wish)
    fields = {"user_id": "ada", "recipient": ..., "data": {"code": "604271"}}
    answer = app.notify(type="mfa_code", priority="normal", **fields)
    assert answer.status_code == 202
    # Also as the template of another type.
    other = app.notify(type="payment_confirmed", content={"template_id": "mfa_code"}, **fields)
    assert other.status_code == 202
    ids = [ObjectId(delivery.json()["id"]) for delivery in (answer, other)]
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=utc_now)
    assert [request.recipient for request in fcm.seen] == ["ada@example.com"] * 2
    for delivery in (answer, other):
        found = app.get(f"/notifications/{delivery.json()['id']}").json()["delivery"]
        assert {d["channel"]: d["status"] for d in found} == {"email": "sent"}
    assert ada.ids() == []


@pytest.mark.usefixtures("app")
def test_token_of_a_test_key_changes_nothing() -> None:
    other = new_app("test", is_test=True)
    text = inbox_tokens.issue(client_id=other.id, user_id="ada", now=utc_now()).text
    answer = put(InboxUser(app=other, token=text), preferences={})
    assert (answer.status_code, answer.json()["code"]) == (403, "test_key")
    assert collection("recipients").count_documents({}) == 0
