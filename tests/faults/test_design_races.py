"""A type that begins to use an item of the design, while that is removed: one of both is refused.

Else each new message of the type would be.
"""

from collections.abc import Callable
from functools import partial

import pytest
from bson import ObjectId
from django.test import Client

from domain.states import BroadcastStatus
from domain.time import utc_now
from notifications.catalog import designs, types
from notifications.catalog.designs import DesignMovedError, Kind
from notifications.content import design_changes, type_writes
from notifications.content.design_changes import Change
from notifications.content.type_writes import TypeMovedError
from notifications.documents.broadcasts import BROADCASTS
from notifications.documents.catalog import DESIGNS
from notifications.validation import InvalidRequestError
from tests.console.types.test_managed_by_code import SETTINGS
from tests.support.clients.api import App
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "broker")

TURNS = 5
SLUG = "parcel"
PAGE = f"/admin/notifications/notificationtype/{SLUG}/change/"
DEFINITION = {
    "name": "Parcel lost",
    "category": "transactional",
    "channels": ["email"],
    "example_data": {"parcel": "77"},
}
PLAIN = {"subject": "Lost: {{ parcel }}", "body": "We are sorry."}
TEXTS = {
    "partials": PLAIN | {"body": "We are sorry. {% render 'footer' %}"},
    "translations": PLAIN | {"body": "{{ 'sorry' | t }}"},
}
"""Texts that use the item, of the kinds that texts use."""
CONTENT = "{{ content }} <a href='{{ unsubscribe_url }}'>Stop</a>"
ITEMS = {
    "brands": {"name": "acme", "brand": {"name": "Acme"}},
    "layouts": {
        "name": "main",
        "html": f"<html><body>{CONTENT}</body></html>",
    },
    "partials": {"name": "footer", "texts": {"default": {"text": "Acme"}}},
    "translations": {"name": "default", "texts": {"sorry": "We are sorry."}},
}
BROADCAST = {
    "type": SLUG,
    "audience": {"all": True},
    "data": {"parcel": "77"},
}
NAMED = {"brands": {"brand": "acme"}, "layouts": {"layout": "main"}}
EMPTY = {"brands": "brand", "layouts": "html", "partials": "texts", "translations": "texts"}


def by_definition(app: App, console: Client, kind: str) -> bool:
    return app.put(f"/types/{SLUG}", DEFINITION | NAMED[kind]).status_code == 200


def by_publication(app: App, console: Client, kind: str) -> bool:
    return app.post(f"/types/{SLUG}/templates/versions/2/publish").status_code == 200


def by_files(app: App, console: Client, kind: str) -> bool:
    (now,) = [e for e in app.get("/type-files", limit=100).json()["results"] if e["slug"] == SLUG]
    file = {
        "slug": SLUG,
        "revision": now["revision"],
        "definition": DEFINITION | NAMED.get(kind, {}),
        "parts": {"default": TEXTS.get(kind, PLAIN)},
    }
    return app.post("/type-files", {"types": [file], "publish": True}).status_code == 200


def by_form(app: App, console: Client, kind: str) -> bool:
    return console.post(PAGE, SETTINGS | NAMED[kind]).status_code == 302


def by_publish_button(app: App, console: Client, kind: str) -> bool:
    url = f"/admin/notifications/notificationtype/{SLUG}/templates/2/publish/"
    console.post(url)
    return types.get_template_version(SLUG) == 2


def by_new_broadcast(app: App) -> bool:
    return app.post("/broadcasts", BROADCAST | NAMED["brands"]).status_code == 202


def by_changed_broadcast(app: App) -> bool:
    return app.put(f"/broadcasts/{awaiting(app)}", BROADCAST | NAMED["brands"]).status_code == 200


def by_submitted_broadcast(app: App) -> bool:
    return app.post(f"/broadcasts/{awaiting(app)}/submit").status_code == 202


def awaiting(app: App) -> str:
    """The ID of the only broadcast."""
    (found,) = app.get("/broadcasts").json()["results"]
    return str(found["id"])


def no_broadcast(app: App) -> None:
    """Store none."""


def unbranded_broadcast(app: App) -> None:
    """Store one that awaits an approval."""
    answer = app.post("/broadcasts", BROADCAST)
    assert answer.status_code == 202, answer.content


def expired_broadcast(app: App) -> None:
    """Store one with the brand, about which nobody decided."""
    answer = app.post("/broadcasts", BROADCAST | NAMED["brands"])
    assert answer.status_code == 202, answer.content
    expired = {"$set": {"status": BroadcastStatus.EXPIRED.value}}
    BROADCASTS().update_one({"_id": ObjectId(awaiting(app))}, expired)


def remove(app: App, kind: str) -> bool:
    item = ITEMS[kind]
    (present,) = app.get("/design").json()[kind]
    gone = {"name": item["name"], "revision": present["revision"], EMPTY[kind]: None}
    return app.post("/design", {kind: [gone]}).status_code == 200


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        (by_definition, "brands"),
        (by_definition, "layouts"),
        (by_publication, "partials"),
        (by_publication, "translations"),
        (by_files, "brands"),
        (by_files, "partials"),
        (by_files, "translations"),
        (by_form, "brands"),
        (by_form, "layouts"),
        (by_publish_button, "partials"),
    ],
)
def test_of_a_use_and_a_removal_at_once_one_is_refused(
    app: App, console: Client, use: Callable[[App, Client, str], bool], kind: str
) -> None:
    for turn in range(TURNS):
        assert app.put(f"/types/{SLUG}", DEFINITION).status_code in (200, 201)
        if turn == 0:
            assert app.post("/design", {kind: [ITEMS[kind]]}).status_code == 200
            for parts in (PLAIN, TEXTS.get(kind, PLAIN)):
                version = {"parts": {"default": parts}}
                assert app.post(f"/types/{SLUG}/templates", version).status_code == 201
        assert app.post(f"/types/{SLUG}/templates/versions/1/publish").status_code == 200
        if not app.get("/design").json()[kind]:
            assert app.post("/design", {kind: [ITEMS[kind]]}).status_code == 200
        is_used, is_removed = at_once(partial(use, app, console, kind), partial(remove, app, kind))
        assert is_used != is_removed
        is_there = bool(app.get("/design").json()[kind])
        assert is_there == is_used


@pytest.mark.parametrize(
    ("use", "prepare"),
    [
        (by_new_broadcast, no_broadcast),
        (by_changed_broadcast, unbranded_broadcast),
        (by_submitted_broadcast, expired_broadcast),
    ],
)
def test_of_a_broadcast_with_a_brand_and_its_removal_at_once_one_is_refused(
    app: App, use: Callable[[App], bool], prepare: Callable[[App], object]
) -> None:
    assert app.put(f"/types/{SLUG}", DEFINITION | {"approval": {"above": 0}}).status_code == 201
    parts = {"default": PLAIN}
    assert app.post(f"/types/{SLUG}/templates", {"parts": parts}).status_code == 201
    assert app.post(f"/types/{SLUG}/templates/versions/1/publish").status_code == 200
    for _ in range(TURNS):
        BROADCASTS().delete_many({})
        if not app.get("/design").json()["brands"]:
            assert app.post("/design", {"brands": [ITEMS["brands"]]}).status_code == 200
        prepare(app)
        is_used, is_removed = at_once(partial(use, app), partial(remove, app, "brands"))
        assert is_used != is_removed


def test_neither_is_stored_on_what_the_other_has_changed_since_the_check(app: App) -> None:
    assert app.post("/design", {"brands": [ITEMS["brands"]]}).status_code == 200
    assert app.put(f"/types/{SLUG}", DEFINITION).status_code == 201
    before, design = types.read_type(SLUG), designs.read_newest()
    gone = Change(
        kind=Kind.BRAND,
        name="acme",
        content=None,
        replaces=designs.revision_of(design.brands["acme"]),
        pointer="",
    )
    planned = design_changes.plan([gone], before=design)

    type_writes.store(SLUG, {"brand": "acme"}, before=before, design=design, now=utc_now())
    write = partial(design_changes.insert, planned, created_by="ada", now=utc_now())
    with DESIGNS().database.client.start_session() as session, pytest.raises(DesignMovedError):
        session.with_transaction(write)
    with pytest.raises(InvalidRequestError):
        design_changes.store([gone], created_by="ada", now=utc_now())

    used = types.read_type(SLUG)
    type_writes.store(SLUG, {"brand": None}, before=used, design=design, now=utc_now())
    design_changes.store([gone], created_by="ada", now=utc_now())
    unused = types.read_type(SLUG)
    with pytest.raises(TypeMovedError):
        type_writes.store(SLUG, {"brand": "acme"}, before=unused, design=design, now=utc_now())
    assert types.read_type(SLUG) == unused


def test_a_type_that_uses_nothing_of_the_design_leaves_it_alone(app: App) -> None:
    assert app.post("/design", {"brands": [ITEMS["brands"]]}).status_code == 200
    assert app.put(f"/types/{SLUG}", DEFINITION).status_code == 201
    assert designs.read_newest().touches is None
    assert app.put(f"/types/{SLUG}", DEFINITION | NAMED["brands"]).status_code == 200
    assert designs.read_newest().touches == 1
