"""``notify push --prune``: what the files no longer have."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from access.models import Scope
from notifications.catalog import designs
from notifications.catalog.designs import Kind
from tests.clients.cli.test_command import Notify
from tests.clients.cli.test_designs import BRAND, BUTTON, LAYOUT, store, write
from tests.support.clients.api import App, new_app

PRUNE = ("push", "--publish", "--prune")
PARCEL = "name: Parcel lost\ncategory: transactional\nchannels: [email]\n"
DEFINITION = {"name": "Parcel lost", "category": "transactional", "channels": ["email"]}
TEXTS = {"subject.txt": "Lost\n", "body.txt": "{% render 'button', label: 'Ask', url: '/' %}\n"}
FILES = {
    "brands/acme.yaml": BRAND,
    "layouts/main.html": LAYOUT,
    "partials/button.txt": BUTTON,
    "translations/pt.yaml": "sorry: Lamentamos\n",
}
KEYS = ["brands/acme", "layouts/main", "partials/button", "translations/pt"]


@pytest.fixture
def notify(tmp_path: Path, app: App) -> Notify:
    """Push a type that uses each item but the translations, and one that uses none."""
    notify = Notify(tmp_path, app)
    notify.write("parcel_lost", "type.yaml", f"{PARCEL}brand: acme\n")
    notify.write("parcel_found", "type.yaml", PARCEL.replace("lost", "found"))
    for name, text in TEXTS.items():
        notify.write("parcel_lost", name, text)
        notify.write("parcel_found", name, "Found\n")
    for name, text in FILES.items():
        write(notify, name, text)
    assert notify("push", "--publish") == 0, notify.out + notify.err
    return notify


def delete(notify: Notify, *names: str) -> None:
    for name in names:
        path = notify.types.parent / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def let_use_nothing(app: App) -> None:
    """Let the type on the server have neither the brand nor the partial."""
    parts = {"default": {"subject": "Lost", "body": "Plain"}}
    assert app.put("/types/parcel_lost", DEFINITION).status_code == 200
    assert app.post("/types/parcel_lost/templates", {"parts": parts}).status_code == 201
    assert app.post("/types/parcel_lost/templates/versions/2/publish").status_code == 200


def designed(app: App) -> list[str]:
    """The items of the server's design."""
    view = app.get("/design").json()
    return [
        f"{folder}/{each['name']}"
        for folder in ("brands", "layouts", "partials", "translations")
        for each in view[folder]
    ]


def is_active(app: App, slug: str) -> bool:
    return bool(app.get(f"/types/{slug}").json()["is_active"])


def locked(notify: Notify) -> Mapping[str, Any]:
    lock: dict[str, Any] = json.loads((notify.types.parent / "notify.lock").read_text())
    return lock


def test_nothing_is_taken_away_unless_it_is_asked_for(notify: Notify, app: App) -> None:
    delete(notify, "translations", "types/parcel_found")
    assert (notify("push", "--publish"), notify.out) == (0, "")
    assert designed(app) == KEYS
    assert is_active(app, "parcel_found")
    assert notify("push", "--prune", "--yes") == 2
    assert notify.err == "--prune needs --publish, or --dry-run, which shows what it would do.\n"


def test_type_is_disabled_and_all_else_removed(notify: Notify, app: App) -> None:
    let_use_nothing(app)
    delete(notify, "types/parcel_lost", "brands", "layouts", "partials", "translations")
    assert notify(*PRUNE, "--yes", "--force") == 0, notify.out + notify.err
    assert notify.out.splitlines() == [
        "brands/acme: removed",
        "layouts/main: removed",
        "parcel_lost: disabled",
        "partials/button: removed",
        "translations/pt: removed",
    ]
    assert designed(app) == []
    assert not is_active(app, "parcel_lost")
    assert is_active(app, "parcel_found")
    assert (notify(*PRUNE), notify.out) == (0, "")


def test_dry_run_shows_it_and_stores_nothing(notify: Notify, app: App) -> None:
    delete(notify, "translations", "types/parcel_found")
    before = notify.files()
    for words in (("push", "--prune", "--dry-run"), (*PRUNE, "--dry-run")):
        assert notify(*words) == 0
        assert notify.out == (
            "parcel_found: would be disabled\ntranslations/pt: would be removed\n"
        )
    assert notify("push", "--prune", "--dry-run", "--json") == 0
    assert json.loads(notify.out) == [
        {"type": "parcel_found", "what": "would be disabled"},
        {"translation": "pt", "what": "would be removed"},
    ]
    assert designed(app) == KEYS
    assert is_active(app, "parcel_found")
    assert notify.files() == before


def test_terminal_is_asked_before_anything_is_stored(notify: Notify, app: App) -> None:
    delete(notify, "translations", "types/parcel_found")
    notify.write("parcel_lost", "subject.txt", "New\n")
    question = (
        "parcel_found: to be disabled\ntranslations/pt: to be removed\n"
        "Take 2 away from http://testserver? [y/N] "
    )
    for answer in ("n\n", "\n", ""):
        notify.answer = answer
        assert (notify(*PRUNE), notify.out) == (1, "")
        assert notify.err == f"{question}Nothing was stored.\n"
    assert designed(app) == KEYS
    assert app.get("/types/parcel_lost").json()["template_version"] == 1
    notify.answer = "Y\n"
    assert notify(*PRUNE) == 0
    assert notify.err == question
    assert notify.out == (
        "parcel_lost: changed and published\nparcel_found: disabled\ntranslations/pt: removed\n"
    )


def test_pipeline_needs_a_word_for_it(notify: Notify, app: App) -> None:
    assert (notify(*PRUNE), notify.out, notify.err) == (0, "", "")  # There is nothing to prune.
    delete(notify, "translations")
    assert notify(*PRUNE) == 2
    assert notify.err == (
        "translations/pt: to be removed\n"
        "Without a terminal to ask on, --prune needs --yes, or --dry-run.\n"
    )
    assert designed(app) == KEYS
    assert (notify(*PRUNE, "--yes"), notify.out) == (0, "translations/pt: removed\n")


def test_what_a_type_of_the_server_uses_is_kept_with_the_reason(notify: Notify, app: App) -> None:
    app.put("/types/by_staff", DEFINITION | {"brand": "acme"})
    parts = {"default": {"subject": "Lost", "body": TEXTS["body.txt"]}}
    app.post("/types/by_staff/templates", {"parts": parts})
    app.post("/types/by_staff/templates/versions/1/publish")
    let_use_nothing(app)
    delete(notify, "types/parcel_lost", "brands", "layouts", "partials", "translations")
    assert notify(*PRUNE, "--yes", "--force") == 0
    assert notify.out == (
        "parcel_lost: disabled\n"
        "translations/pt: removed\n"
        "brands/acme: kept: Used by the type by_staff.\n"
        "layouts/main: kept: Used by the brand acme.\n"
        "partials/button: kept: The type by_staff can't use it: "
        "body, default, line 1: Unknown partial 'button'.\n"
    )
    assert designed(app) == KEYS[:3]
    assert app.notify(type="by_staff", content=..., data={}).status_code == 202


def test_disabled_type_keeps_what_it_uses(notify: Notify, app: App) -> None:
    delete(notify, "types/parcel_lost", "brands", "layouts", "partials")
    assert notify(*PRUNE, "--yes") == 0
    assert notify.out.splitlines()[0] == "parcel_lost: disabled"
    assert designed(app) == KEYS
    app.put("/types/parcel_lost", DEFINITION | {"is_active": True})
    assert app.notify(type="parcel_lost", content=..., data={}).status_code == 202


def test_change_on_the_server_since_the_pull_is_a_conflict(notify: Notify, app: App) -> None:
    store(Kind.TRANSLATION, "pt", {"sorry": "Desculpe"})
    app.put("/types/parcel_found", DEFINITION | {"description": "By staff."})
    delete(notify, "translations", "types/parcel_found")
    notify.write("parcel_lost", "subject.txt", "New\n")
    for word in ("--yes", "--dry-run"):
        assert notify(*PRUNE, word) == 3
        lines = notify.out.splitlines()
        conflict = "conflict: changed on the server since the last pull, and gone from the files"
        assert [line for line in lines if "conflict" in line] == [f"translations/pt: {conflict}"]
        assert lines[1:3] == ["--- pulled/translations/pt.yaml", "+++ server/translations/pt.yaml"]
        assert "files/" not in notify.out
    assert designed(app) == KEYS
    assert app.get("/types/parcel_lost").json()["template_version"] == 1
    assert notify(*PRUNE, "--yes", "--force") == 0
    assert "translations/pt" not in designed(app)
    assert not is_active(app, "parcel_found")
    assert app.get("/types/parcel_found").json()["description"] == "By staff."


def test_what_the_lock_never_knew_is_not_touched(notify: Notify, app: App) -> None:
    store(Kind.BRAND, "other", {"name": "Other", "colours": {}})
    assert app.put("/types/by_staff", DEFINITION).status_code == 201
    assert (notify(*PRUNE), notify.out) == (0, "")
    (notify.types.parent / "notify.lock").unlink()
    delete(notify, "translations", "types/parcel_found")
    assert (notify("push", "--publish", "--prune", "--yes"), notify.out) == (0, "")
    assert designed(app) == ["brands/acme", "brands/other", *KEYS[1:]]
    assert is_active(app, "by_staff")


def test_named_items_alone_are_pruned(notify: Notify, app: App) -> None:
    delete(notify, "translations", "types/parcel_found")
    assert (notify(*PRUNE, "--yes", "translations/pt"), notify.out) == (
        0,
        "translations/pt: removed\n",
    )
    assert is_active(app, "parcel_found")
    assert notify(*PRUNE, "--yes", "brands/never") == 2
    assert notify.err == "There is no brand never.\n"


def test_folder_without_any_type_prunes_nothing(notify: Notify, app: App) -> None:
    delete(notify, "types", "brands", "layouts", "partials", "translations")
    assert notify(*PRUNE, "--yes") == 2
    assert notify.err == f"There are no types in {notify.types}.\n"
    assert designed(app) == KEYS


def test_disabled_type_does_not_come_back_to_the_files(notify: Notify, app: App) -> None:
    delete(notify, "types/parcel_found", "translations")
    assert notify(*PRUNE, "--yes") == 0
    before = notify.files()
    assert notify("pull", "parcel_lost", *KEYS[:3]) == 0
    assert notify("diff") == 0
    assert "parcel_found" not in notify.err
    assert notify.files() == before
    assert set(locked(notify)["pruned"]["http://testserver"]) == {"parcel_found"}

    assert (notify("pull", "parcel_found"), notify.out) == (0, "parcel_found: pulled\n")
    definition = notify.types / "parcel_found" / "type.yaml"
    assert "is_active: false" in definition.read_text()
    assert "pruned" not in locked(notify)
    definition.write_text(PARCEL)
    assert notify("push", "--publish", "parcel_found") == 0, notify.out
    assert is_active(app, "parcel_found")


def test_folder_that_is_back_replaces_the_disabled_type(notify: Notify, app: App) -> None:
    folder = notify.types / "parcel_found"
    kept = {path.name: path.read_text() for path in folder.iterdir()}
    delete(notify, "types/parcel_found")
    assert notify(*PRUNE, "--yes") == 0
    for name, text in kept.items():
        notify.write("parcel_found", name, text)
    assert (notify("push", "--publish"), notify.out) == (0, "parcel_found: changed and published\n")
    assert is_active(app, "parcel_found")


def test_type_that_is_enabled_again_is_pulled(notify: Notify, app: App) -> None:
    delete(notify, "types/parcel_found")
    assert notify(*PRUNE, "--yes") == 0
    app.put("/types/parcel_found", DEFINITION)
    assert notify("pull") == 0
    assert "parcel_found: pulled" in notify.out.splitlines()


def test_type_that_is_disabled_already_needs_no_question(notify: Notify, app: App) -> None:
    app.put("/types/parcel_found", DEFINITION | {"is_active": False})
    delete(notify, "types/parcel_found")
    store(Kind.TRANSLATION, "pt", None)
    delete(notify, "translations")
    assert (notify(*PRUNE), notify.out, notify.err) == (0, "", "")
    lock = locked(notify)
    assert "translations/pt" not in lock["servers"]["http://testserver"]
    assert set(lock["pruned"]["http://testserver"]) == {"parcel_found"}


def test_files_that_are_refused_take_nothing_away(notify: Notify, app: App) -> None:
    delete(notify, "translations")
    notify.write("parcel_lost", "subject.txt", "{{ unknown }}\n")
    assert notify(*PRUNE, "--yes") == 1
    assert notify.out.startswith("parcel_lost: subject.txt: Line 1: ")
    assert designed(app) == KEYS


def test_file_that_still_uses_it_is_named(notify: Notify, app: App) -> None:
    delete(notify, "brands", "partials")
    assert notify(*PRUNE, "--yes") == 1
    assert notify.out == "parcel_lost: type.yaml: brand: Unknown brand.\n"
    notify.write("parcel_lost", "type.yaml", PARCEL)
    assert notify(*PRUNE, "--yes") == 1
    assert notify.out == "parcel_lost: body.txt: Line 1: Unknown partial 'button'.\n"
    assert designed(app) == KEYS


def test_critical_type_is_disabled_by_those_who_may(
    notify: Notify, tmp_path: Path, app: App
) -> None:
    notify.write("parcel_found", "type.yaml", f"{PARCEL}priority: critical\n")
    assert notify("push", "--publish") == 0
    delete(notify, "types/parcel_found")
    weaker = Notify(tmp_path, new_app("weaker", Scope.TEMPLATES_WRITE))
    assert weaker(*PRUNE, "--yes") == 2
    assert "types:admin" in weaker.err
    assert is_active(app, "parcel_found")
    assert notify(*PRUNE, "--yes") == 0
    assert not is_active(app, "parcel_found")
    assert designs.read_newest().number == 1
