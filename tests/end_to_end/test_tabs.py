"""The tabs *curl*, *Python*, and *TypeScript* of recipes and guides do the same, as they say."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.rooms import RoomKind
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from rooms import registry
from scripts import docs_site
from tests.support import npm
from tests.support.clients import typescript
from tests.support.clients.api import App
from tests.support.source import ROOT

from .test_guides import HERE, curl_commands, newest, parse, run

DOCS = ROOT / "docs"
FOLDER = DOCS / "recipes"
START = "recipes/README"
"""The page that says how a program begins."""
RECIPES = sorted(FOLDER.glob("[a-z]*.md"))
WITHOUT_REQUESTS = {"change_provider"}
CREATED = {
    "recipes/login_code": 1,
    "recipes/order_receipt": 1,
    "recipes/comments": 1,
    "recipes/on_call": 2,
    "recipes/appointment": 1,
    "recipes/invitation": 1,
    "recipes/incident": 1,
    "recipes/statement": 2,
    "recipes/inbox": 0,
    "guides/quickstart": 1,
    "guides/send": 2,
    "guides/plans": 1,
    "guides/login_codes": 1,
    "guides/inbox": 0,
}
"""How many notifications and broadcasts a page creates."""
BEGINS_ITSELF = {"guides/quickstart"}
"""Pages whose program doesn't begin as that of a recipe."""
ONCE = {"order_receipt", "statement", "on_call"}
"""Recipes whose entity prevents a second notification, also with another key."""
FIELDS = (
    *("type", "user_id", "recipient.email", "entity_id", "content.subject", "status"),
    *("delivery.step", "audience"),
)
STORED = ("notifications", "broadcasts", "topic_members")


def text(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def code(page: str, language: str) -> str:
    """Return a page's program in a language, from its beginning."""
    pages = [page] if page in BEGINS_ITSELF else [START, page]
    block = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return "\n".join(found for each in pages for found in block.findall(text(each)))


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
def here(
    app: App, live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Put what a program needs into a folder, and return its environment."""
    (tmp_path / ".data").mkdir()
    credentials = tmp_path / ".data" / "local-credentials.json"
    credentials.write_text(json.dumps({"api_key": app.key}))
    monkeypatch.chdir(tmp_path)
    environment = {"URL": live_server.url, "KEY": app.key}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """Compile all programs in TypeScript at once, where Node.js is installed."""
    if not npm.is_installed():
        return None
    folder = tmp_path_factory.mktemp("tabs")
    with npm.alone_in(typescript.FOLDER):
        shutil.copytree(typescript.build(), typescript.new_app(folder))
    names = []
    for page in CREATED:
        names.append(f"{page.replace('/', '_')}.ts")
        (folder / names[-1]).write_text(code(page, "ts"))
    typescript.compile_app(folder, files=names)
    return folder


def created() -> list[dict[str, Any]]:
    """Return what is stored of the requests, in an order that doesn't depend on time."""
    shown = {**dict.fromkeys(FIELDS, 1), "_id": 0}
    found = [one for name in STORED[:2] for one in collection(name).find({}, shown)]
    found += collection("topic_members").find({}, {"created_at": 0})
    return sorted(found, key=str)


def by_commands(page: str, app: App) -> list[dict[str, Any]]:
    """Send the page's curl commands. Return what they created, and remove it."""
    answers = run(app, DOCS / f"{page}.md", ID=lambda: newest("notifications"))
    assert [answer.status_code for answer in answers if answer.status_code >= 400] == []
    found = created()
    for name in (*STORED, "idempotency_keys"):
        collection(name).delete_many({})
    assert len([one for one in found if "type" in one]) == CREATED[page]
    return found


@pytest.mark.parametrize("page", CREATED)
def test_python_does_what_the_commands_do(page: str, app: App, here: dict[str, str]) -> None:
    expected = by_commands(page, app)
    names: dict[str, Any] = {}
    exec(compile(code(page, "python").replace(HERE[0], here["URL"]), page, "exec"), names)
    names["notifier"].close()
    assert created() == expected


@pytest.mark.slow
@pytest.mark.parametrize("page", CREATED)
def test_typescript_does_what_the_commands_do(
    page: str, app: App, here: dict[str, str], programs: Path | None, tmp_path: Path
) -> None:
    if programs is None:
        return
    expected = by_commands(page, app)
    program = programs / f"{page.replace('/', '_')}.js"
    program.write_text(program.read_text().replace(HERE[0], here["URL"]))
    npm.run("node", str(program), cwd=tmp_path)
    assert created() == expected


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


def test_every_page_with_tabs_has_all_of_them_and_is_run() -> None:
    with_tabs = set()
    for path in DOCS.glob("**/*.md"):
        page = str(path.relative_to(DOCS).with_suffix(""))
        tabs = re.findall(r'^=== "(\w+)"', docs_site.with_tabs(text(page)), re.MULTILINE)
        assert tabs == ["curl", "Python", "TypeScript"] * (len(tabs) // 3), page
        with_tabs |= {page} if tabs else set()
    assert with_tabs == CREATED.keys() | {START}


def test_list_has_each_recipe() -> None:
    listed = re.findall(r"\(([a-z_]+)\.md\)", text(START))
    assert sorted(listed) == [page.stem for page in RECIPES]
    assert {page.stem for page in RECIPES} == {
        page.removeprefix("recipes/") for page in CREATED if page.startswith("recipes/")
    } | WITHOUT_REQUESTS
