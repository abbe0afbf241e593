"""An inbox is one person's, at one client: nobody else sees it, changes it, or learns of it."""

from typing import Any

import pytest

from domain.content import Recipient
from domain.states import Channel
from notifications import store
from notifyproject.db.collections import collection
from tests.support.clients.api import App
from tests.support.clients.inbox import IN_APP, Person, at, delivered

ACTIONS = ["read", "unread", "archive", "unarchive"]


@pytest.fixture
def strangers(app: App, other_app: App) -> list[Person]:
    """Give a test the same person at another client, and others who are called nearly the same."""
    names = ["eve", "ADA", "ada ", "ad", "ada2", "$ne", "*", "ada\u200b"]
    return [Person(app=other_app), *(Person(app=app, user_id=name) for name in names)]


def everything() -> list[Any]:
    return [*collection("notifications").find(), *collection("inbox_visits").find()]


def test_nobody_else_sees_anything(app: App, strangers: list[Person]) -> None:
    delivered(app)
    for stranger in strangers:
        for query in ({}, {"unread": "true"}, {"archived": "true"}, {"limit": "100"}):
            assert stranger.ids(**query) == [], stranger.user_id
        assert stranger.counts() == (0, 0)


def test_nobody_else_changes_anything(app: App, strangers: list[Person]) -> None:
    read, other = delivered(app, created_at=at(0)), delivered(app, created_at=at(1))
    ada = Person(app=app)
    ada.post(f"/{read['_id']}/read")
    ada.get()
    before = everything()
    for stranger in strangers:
        assert stranger.post("/read-all").json() == {"updated": 0}
        for action in ACTIONS:
            for document in (read, other):
                answer = stranger.post(f"/{document['_id']}/{action}")
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert everything() == before
    assert ada.counts() == (1, 0)


def test_anothers_cursor_leads_nowhere_else(app: App, strangers: list[Person]) -> None:
    for n in range(3):
        delivered(app, created_at=at(n))
    cursor = Person(app=app).get(limit=1).json()["next"]
    for stranger in strangers:
        assert stranger.get(cursor=cursor).json()["results"] == []


def test_a_cursor_of_another_list_is_none_here(app: App) -> None:
    for n in range(2):
        delivered(app, created_at=at(n))
    cursor = app.get("/notifications", limit=1).json()["next"]
    assert Person(app=app).get(cursor=cursor).status_code == 400


def test_what_is_for_nobody_is_in_nobodys_inbox(app: App) -> None:
    delivered(app, user_id=None)
    assert Person(app=app, user_id="None").ids() == []


def test_an_item_says_nothing_of_other_channels_or_of_how_it_was_sent(app: App) -> None:
    document = delivered(
        app,
        channels=[Channel.EMAIL, Channel.WHATSAPP, IN_APP],
        recipient=Recipient(email="ada@private.example", phone="+351912345678", name="Ada L"),
        data={"secret_variable": "kept back"},
        idempotency_key="their-key",
        external_id="their-id",
        entity_id="their-entity",
        request_id="their-request",
    )
    store.reopen(
        notification_id=document["_id"], channels=[Channel.EMAIL], extra_attempts=1, now=at(0)
    )
    ada = Person(app=app)
    shown = ada.get().content.decode() + ada.post(f"/{document['_id']}/read").content.decode()
    for word in (
        *("private.example", "912345678", "Ada L", "kept back", "secret_variable", "their-"),
        *("delivery", "recipient", "attempt", "provider", "error", "claim", "client_id", "status"),
        *("priority", "user_id", "data", "idempotency", "created_at"),
    ):
        assert word not in shown, word
