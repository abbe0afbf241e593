"""The commands and the Python of ``docs/recipes`` do what their pages say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.wsgi import get_wsgi_application
from notifyproject_client import Notifier

from domain.rooms import RoomKind
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from rooms import registry
from tests.support.clients.api import App
from tests.support.source import ROOT

from .test_guides import curl_commands, newest, parse, run

FOLDER = ROOT / "docs" / "recipes"
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
RECIPES = sorted(FOLDER.glob("[a-z]*.md"))
WITHOUT_REQUESTS = {"change_provider"}
NOTIFICATIONS = {
    "login_code": 1,
    "order_receipt": 1,
    "comments": 1,
    "on_call": 2,
    "appointment": 1,
    "invitation": 1,
    "incident": 1,
    "statement": 2,
    "inbox": 0,
}
"""How many a recipe creates."""
ONCE = {"order_receipt", "statement", "on_call"}
"""Recipes whose entity prevents a second notification, also with another key."""


@pytest.fixture(autouse=True)
def _world(app: App, settings: Any) -> Iterator[None]:
    settings.ATTACHMENT_HOSTS = ("files.example.com",)
    registry.create(
        slug="ops",
        kind=RoomKind.SLACK_WEBHOOK,
        name="Operations",
        target="https://hooks.slack.com/services/T00/B00/abc",
        min_gap_seconds=1,
        now=utc_now(),
    )
    for person in ("ada", "grace"):
        app.put(f"/recipients/{person}", {"email": f"{person}@example.com"})
    yield
    registry.remove("ops")
    collection("notification_types").delete_one({"_id": "comment_added"})
    types.invalidate_types()


@pytest.fixture
def notifier(app: App) -> Iterator[Notifier]:
    transport = httpx.WSGITransport(get_wsgi_application())
    with Notifier("http://testserver", key=app.key, transport=transport) as found:
        yield found


def created() -> list[dict[str, Any]]:
    """Return what notifications have of a request, in the order of the recipients."""
    fields = ("type", "user_id", "recipient.email", "entity_id", "content.subject", "delivery.step")
    found = collection("notifications").find({}, {**dict.fromkeys(fields, 1), "_id": 0})
    return sorted(found, key=str)


@pytest.mark.parametrize("page", RECIPES, ids=[page.stem for page in RECIPES])
def test_commands_and_python_do_the_same(
    page: Path, app: App, notifier: Notifier, db: None
) -> None:
    answers = run(app, page, ID=lambda: newest("notifications"))
    assert [answer.status_code for answer in answers if answer.status_code >= 400] == []
    blocks = PYTHON.findall(page.read_text(encoding="utf-8"))
    if page.stem in WITHOUT_REQUESTS:
        assert (answers, blocks) == ([], [])
        return
    by_commands = created()
    assert len(by_commands) == NOTIFICATIONS[page.stem]
    collection("notifications").delete_many({})
    names: dict[str, Any] = {"notifier": notifier}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
    assert created() == by_commands


@pytest.mark.parametrize("name", sorted(ONCE))
def test_entity_prevents_a_second_one_with_another_key(name: str, app: App, db: None) -> None:
    page = FOLDER / f"{name}.md"
    run(app, page)
    created_first = created()
    for words in curl_commands(page):
        request = parse(words, KEY=app.key)
        if key := request.headers.get("Idempotency-Key"):
            headers = {"Idempotency-Key": f"{key}-again"}
            app.send(request.path, request.body.encode(), method="POST", headers=headers)
    assert created() == created_first


def test_list_has_each_recipe() -> None:
    listed = re.findall(r"\(([a-z_]+)\.md\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [page.stem for page in RECIPES]
    assert {page.stem for page in RECIPES} == NOTIFICATIONS.keys() | WITHOUT_REQUESTS
