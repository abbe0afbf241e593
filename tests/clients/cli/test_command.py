"""``notify pull``, ``diff``, and ``push`` at the service."""

import io
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest
import yaml
from notifyproject_client.cli import command, messages

from access.models import Scope
from domain.time import utc_now
from notifications.catalog import types
from notifications.catalog.shipped_types import FOLDER, shipped_types
from notifications.documents.catalog import EmergencyChangeDocument
from notifyproject.db.collections import collection
from notifyproject.wsgi import application
from tests.support.clients.api import App, new_app
from tests.support.factories.templates import publish_version
from tests.support.tables import each_case

PARCEL = """\
# Owned by logistics.
name: Parcel lost
category: transactional
channels: [email]
example_data:
  parcel: "77"  # A text
"""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notify:
    """The command in a folder of its own."""

    def __init__(self, folder: Path, app: App) -> None:
        self.types = folder / "notify" / "types"
        self._key = app.key
        self.transport: httpx.BaseTransport = httpx.WSGITransport(app=application)
        self.out, self.err = "", ""
        self.answer: str | None = None
        """What is typed on a terminal; None: there is none."""
        self.is_terminal = False
        """Whether its output and its error stream are one."""

    def __call__(self, *words: str, **environment: str) -> int:
        out, err = (_Terminal() if self.is_terminal else io.StringIO() for _ in range(2))
        answers = io.StringIO() if self.answer is None else _Terminal(self.answer)
        folder = [] if words[0] in messages.COMMANDS else ["--types", str(self.types)]
        code = command.run(
            [*words, *folder],
            environment={
                "NOTIFY_URL": "http://testserver",
                "NOTIFY_API_KEY": self._key,
                **environment,
            },
            answers=answers,
            out=out,
            err=err,
            transport=self.transport,
        )
        self.out, self.err = out.getvalue(), err.getvalue()
        return code

    def write(self, slug: str, name: str, text: str) -> None:
        path = self.types / slug / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.types.parent)): path.read_bytes()
            for path in sorted(self.types.parent.glob("**/*"))
            if path.is_file()
        }


@pytest.fixture
def notify(tmp_path: Path, app: App) -> Iterator[Notify]:
    return Notify(tmp_path, app)


@pytest.fixture
def parcel(notify: Notify) -> Notify:
    """Push a new type, whose folder is the only one."""
    notify.write("parcel_lost", "type.yaml", PARCEL)
    notify.write("parcel_lost", "subject.txt", "Lost: {{ parcel }}\n")
    notify.write("parcel_lost", "body.txt", "We are sorry.\n")
    notify.write("parcel_lost", "pt/body.txt", "Lamentamos.\n")
    notify.write("parcel_lost", "pt/subject.txt", "Perdida: {{ parcel }}\n")
    assert notify("push", "--publish", "--note", "First") == 0, notify.out + notify.err
    assert notify.out == "parcel_lost: created and published\n"
    return notify


def test_shipped_types_do_not_differ_from_a_fresh_installation(notify: Notify) -> None:
    shutil.copytree(FOLDER, notify.types, ignore=shutil.ignore_patterns("_*"))
    assert (notify("diff", "--exit-code"), notify.out, notify.err) == (0, "", "")
    before = notify.files()
    assert notify("pull") == 0
    assert {name: text for name, text in notify.files().items() if name in before} == before


def test_pull_push_and_pull_again_change_nothing(notify: Notify) -> None:
    assert notify("pull") == 0
    assert len(notify.out.splitlines()) == len(shipped_types())
    before = notify.files()
    assert (notify("push", "--publish"), notify.out) == (0, "")
    assert (notify("pull"), notify.out) == (0, "")
    assert (notify("diff", "--exit-code"), notify.out) == (0, "")
    assert notify.files() == before


def test_pushed_type_is_sent(parcel: Notify, app: App) -> None:
    answer = app.notify(type="parcel_lost", content=..., data={"parcel": "77"})
    assert answer.json()["content"]["subject"] == "Lost: 77"
    version = app.get("/types/parcel_lost/templates/versions/1").json()
    assert (version["note"], version["is_published"]) == ("First", True)


def test_comments_of_a_pushed_type_stay_at_a_pull(parcel: Notify) -> None:
    types.define_type("parcel_lost", {"max_retries": 5}, now=utc_now())
    assert (parcel("pull", "parcel_lost"), parcel.out) == (0, "parcel_lost: pulled\n")
    written = (parcel.types / "parcel_lost" / "type.yaml").read_text()
    assert written == PARCEL + "max_retries: 5\n"


def test_only_named_types_are_pulled(notify: Notify) -> None:
    assert notify("pull", "mfa_code", "alert") == 0
    assert {path.name for path in notify.types.iterdir()} == {"mfa_code", "alert"}
    assert notify("pull", "nope") == 2
    assert notify.err == "There is no type nope.\n"


def test_diff_shows_lines_and_what_is_only_on_the_server(parcel: Notify) -> None:
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    assert (parcel("diff"), parcel("diff", "--exit-code")) == (0, 1)
    assert parcel.out.splitlines()[0] == "parcel_lost: changed"
    assert "-We are sorry.\n+We are very sorry.\n" in parcel.out
    assert "mfa_code" in parcel.err
    assert parcel("diff", "--exit-code", "--json") == 1
    (event,) = json.loads(parcel.out)
    assert (event["type"], event["what"]) == ("parcel_lost", "changed")


def test_another_form_of_the_same_is_no_difference(parcel: Notify) -> None:
    parcel.write("parcel_lost", "type.yaml", f"{PARCEL}priority: normal\nmax_retries: 3\n")
    assert (parcel("diff", "--exit-code"), parcel.out) == (0, "")


def test_push_without_publication_makes_a_draft_once(parcel: Notify, app: App) -> None:
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    for _ in range(2):
        assert parcel("push") == 0
        assert parcel.out == "parcel_lost: draft of version 2, not published\n"
    assert app.get("/types/parcel_lost").json()["template_version"] == 1
    assert (parcel("push", "--publish"), parcel("diff", "--exit-code")) == (0, 0)
    assert app.get("/types/parcel_lost").json()["template_version"] == 2


def test_dry_run_stores_nothing(parcel: Notify) -> None:
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    assert parcel("push", "--publish", "--dry-run") == 0
    assert parcel.out == "parcel_lost: would be changed\n"
    assert collection("template_versions").count_documents({}) == 1


def test_refused_files_are_named_with_the_reason(parcel: Notify) -> None:
    parcel.write("parcel_lost", "pt/body.txt", "{{ parcl }}\n")
    parcel.write("mine", "type.yaml", PARCEL.replace("email", "fax"))
    parcel.write("mine", "schema.json", '{"type": "object", "oneOf": []}')
    before = collection("notification_types").count_documents({})
    assert parcel("push", "--publish") == 1
    lines = parcel.out.splitlines()
    assert any(line.startswith("mine: type.yaml: channels/0: Expected one of") for line in lines)
    assert "mine: schema.json: oneOf: Not in the schema." in lines
    assert any(line.startswith("parcel_lost: pt/body.txt: Line 1: ") for line in lines)
    assert collection("notification_types").count_documents({}) == before


def test_change_on_the_server_since_the_pull_is_a_conflict(parcel: Notify, app: App) -> None:
    types.define_type("parcel_lost", {"description": "By staff."}, now=utc_now())
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    assert parcel("push", "--publish") == 3
    assert (
        parcel.out
        == """\
parcel_lost: conflict: changed on the server since the last pull
--- pulled/parcel_lost/type.yaml
+++ server/parcel_lost/type.yaml
@@ -1,4 +1,5 @@
 name: Parcel lost
+description: By staff.
 category: transactional
 channels:
   - email
--- pulled/parcel_lost/body.txt
+++ files/parcel_lost/body.txt
@@ -1 +1 @@
-We are sorry.
+We are very sorry.
"""
    )
    assert app.get("/types/parcel_lost").json()["template_version"] == 1
    before = parcel.files()
    assert parcel("pull") == 3
    assert {name: parcel.files()[name] for name in before if "parcel_lost" in name} == {
        name: text for name, text in before.items() if "parcel_lost" in name
    }
    assert parcel("push", "--publish", "--force", "parcel_lost") == 0
    assert app.get("/types/parcel_lost").json()["description"] == ""
    assert parcel("push", "--publish", "parcel_lost") == 0


def test_emergency_change_is_a_conflict_with_its_reason(parcel: Notify, app: App) -> None:
    by_code = "managed_by: code\nrepository: https://git.example.com/acme/notify\n"
    parcel.write("parcel_lost", "type.yaml", PARCEL + by_code)
    assert parcel("push", "--publish") == 0
    parts = {"default": {"subject": "Lost: {{ parcel }}", "body": "We found it."}}
    version = app.post("/types/parcel_lost/templates", {"parts": parts})
    emergency: EmergencyChangeDocument = {
        "reason": "The text is wrong.",
        "by": "staff:ana",
        "at": datetime(2026, 11, 29, 1, 0, tzinfo=UTC),
    }
    publish_version(
        type_slug="parcel_lost",
        number=version.json()["number"],
        now=utc_now(),
        emergency=emergency,
    )
    line = (
        "Changed on the server in an emergency, 2026-11-29T01:00:00Z by staff:ana: "
        "The text is wrong.\n"
    )
    assert parcel("diff", "--exit-code", "parcel_lost") == 1
    head = f"parcel_lost: changed\n{line}--- server/parcel_lost/body.txt\n"
    assert parcel.out.startswith(head), parcel.out
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    assert parcel("push", "--publish", "parcel_lost") == 3
    assert f"since the last pull\n{line}--- pulled/parcel_lost/body.txt\n" in parcel.out
    assert parcel("pull", "parcel_lost") == 3
    assert line in parcel.out
    assert parcel("pull", "--force", "parcel_lost") == 0
    assert (parcel("push", "--publish", "parcel_lost"), parcel.out) == (0, "")
    parcel.write("parcel_lost", "body.txt", "We are sorry again.\n")
    assert parcel("diff", "parcel_lost") == 0
    assert "emergency" not in parcel.out


def test_change_on_the_server_during_a_diff_is_a_conflict(parcel: Notify) -> None:
    service = httpx.WSGITransport(app=application)

    def changed_meanwhile(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            types.define_type("parcel_lost", {"description": "By staff."}, now=utc_now())
        answer = service.handle_request(request)
        return httpx.Response(answer.status_code, json=json.loads(answer.read()))

    parcel.transport = httpx.MockTransport(changed_meanwhile)
    assert parcel("diff", "parcel_lost") == 3
    assert "changed on the server meanwhile" in parcel.err


@each_case("answer", [[], "x", None, 1])
def test_answer_that_is_no_object_is_an_error_of_the_server(notify: Notify, answer: Any) -> None:
    notify.transport = httpx.MockTransport(lambda _: httpx.Response(200, text=json.dumps(answer)))
    assert notify("pull") == 2
    assert "without a JSON object" in notify.err


@each_case(
    "servers",
    [
        {"http://testserver": {"parcel_lost": {"revision": "1", "files": "2", "more": "3"}}},
        {"http://testserver": {"parcel_lost": []}},
        {"http://testserver": []},
        [],
    ],
)
def test_lock_of_another_form_is_named(notify: Notify, servers: Any) -> None:
    notify.write("parcel_lost", "type.yaml", PARCEL)
    (notify.types.parent / "notify.lock").write_text(json.dumps({"servers": servers}))
    assert notify("push") == 2
    assert "notify.lock: Not a lock of this command." in notify.err


def test_pull_by_force_takes_the_servers(parcel: Notify) -> None:
    types.define_type("parcel_lost", {"description": "By staff."}, now=utc_now())
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    assert parcel("pull", "--force", "parcel_lost") == 0
    assert (parcel.types / "parcel_lost" / "body.txt").read_text() == "We are sorry.\n"


def test_pull_keeps_what_only_the_files_have_changed(parcel: Notify) -> None:
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    assert parcel("pull", "parcel_lost") == 0
    assert parcel.out == "parcel_lost: kept, since only the files have changed\n"
    assert (parcel.types / "parcel_lost" / "body.txt").read_text() == "We are very sorry.\n"


def test_of_two_pushers_at_once_one_wins(parcel: Notify, tmp_path: Path, app: App) -> None:
    other = Notify(tmp_path / "other", app)
    shutil.copytree(parcel.types.parent, other.types.parent)
    parcel.write("parcel_lost", "body.txt", "Mine.\n")
    other.write("parcel_lost", "body.txt", "Theirs.\n")
    service, together = httpx.WSGITransport(app=application), Barrier(2)

    def at_once(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            together.wait()
        answer = service.handle_request(request)
        return httpx.Response(answer.status_code, json=json.loads(answer.read()))

    for pusher in (parcel, other):
        pusher.transport = httpx.MockTransport(at_once)
    with ThreadPoolExecutor(2) as pool:
        codes = [*pool.map(lambda pusher: pusher("push", "--publish"), (parcel, other))]
    assert sorted(codes) == [0, 3]
    loser, texts = (other, ("Mine.", "Theirs.")) if codes[1] else (parcel, ("Theirs.", "Mine."))
    for name, text in zip(("server", "files"), texts, strict=True):
        assert (
            f"--- pulled/parcel_lost/body.txt\n+++ {name}/parcel_lost/body.txt\n"
            f"@@ -1 +1 @@\n-We are sorry.\n+{text}\n"
        ) in loser.out


def test_conflict_of_a_copy_without_what_was_pulled_shows_both_sides(parcel: Notify) -> None:
    """Such as in a pipeline, which has the lock of the repository alone."""
    (excluded,) = parcel.types.parent.glob(".pulled/.gitignore")
    assert excluded.read_text() == "*\n"
    shutil.rmtree(excluded.parent)
    types.define_type("parcel_lost", {"description": "By staff."}, now=utc_now())
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    assert parcel("push", "--publish") == 3
    assert "-description: By staff." in parcel.out
    assert "+We are very sorry." in parcel.out
    assert "pulled/" not in parcel.out


def test_type_that_the_server_does_not_have_stays_in_the_files(parcel: Notify) -> None:
    parcel.write("mine", "type.yaml", PARCEL)
    assert parcel("pull") == 0
    assert (parcel.types / "mine" / "type.yaml").read_text() == PARCEL


def test_type_that_the_server_has_lost_is_stored_again_by_force(parcel: Notify) -> None:
    """Such as by a server that was set up anew under its name."""
    collection("notification_types").delete_one({"_id": "parcel_lost"})
    assert (parcel("diff", "--exit-code"), parcel.out.splitlines()[0]) == (
        1,
        "parcel_lost: created",
    )
    assert parcel("push", "--publish") == 3
    assert parcel("push", "--publish", "--force") == 0
    assert parcel.out == "parcel_lost: created and published\n"


@each_case("name", ["NOTIFY_URL", "NOTIFY_API_KEY"])
def test_missing_variable_is_named(notify: Notify, name: str) -> None:
    assert notify("pull", **{name: ""}) == 2
    assert name in notify.err


def test_refused_key_and_unreadable_file_are_invalid_use(notify: Notify, db: None) -> None:
    notify.write("parcel_lost", "type.yaml", "name: [")
    assert notify("push") == 2
    assert "type.yaml" in notify.err
    shutil.rmtree(notify.types)
    weak = Notify(notify.types.parents[1], new_app("weak", Scope.NOTIFICATIONS_READ))
    assert weak("pull") == 2
    assert "403" in weak.err
    assert weak.types.exists() is False


def test_file_that_cannot_be_read_stops_no_other_type(parcel: Notify) -> None:
    parcel.write("broken", "type.yaml", "name: [")
    for words in ("lint", "lint --server", "push --publish", "diff --exit-code", "pull"):
        assert parcel(*words.split(), "parcel_lost") == 0, parcel.err
        assert parcel(*words.split()) == 2
        assert "broken/type.yaml" in parcel.err


def test_field_that_the_client_does_not_know_is_kept(notify: Notify) -> None:
    """The client names no field but the schema: what the server has is in the file."""
    assert notify("pull", "payment_confirmed") == 0
    written: dict[str, Any] = yaml.safe_load(
        (notify.types / "payment_confirmed" / "type.yaml").read_text()
    )
    (shipped,) = (each for each in shipped_types() if each.slug == "payment_confirmed")
    assert written["max_retries"] == shipped.definition.max_retries
    source = Path(command.__file__).with_name("files.py").read_text()
    assert not [name for name in written if f'"{name}"' in source]


def test_lint_by_the_server_compares_with_what_is_published(parcel: Notify) -> None:
    assert (parcel("lint", "--server"), parcel.out) == (0, "")
    schema = {
        "type": "object",
        "properties": {"parcel": {"type": "string"}},
        "required": ["parcel"],
    }
    parcel.write("parcel_lost", "schema.json", json.dumps(schema, indent=2))
    assert (parcel("lint"), parcel.out) == (0, "")
    assert parcel("lint", "--server") == 1
    assert parcel.out.startswith(f"{parcel.types}/parcel_lost/schema.json:4: breaking_schema: ")
    assert "docs/reference/lint.md" in parcel.err
    assert parcel("push", "--publish") == 1
    assert "parcel_lost: schema.json: properties/parcel: It is newly required." in parcel.out
    assert parcel("push", "--publish", "--breaking") == 0
    assert (parcel("lint", "--server"), parcel.out) == (0, "")


def test_lint_by_the_server_names_what_it_would_refuse(parcel: Notify) -> None:
    parcel.write("parcel_lost", "type.yaml", PARCEL.replace("email", "fax"))
    assert parcel("lint", "--server") == 1
    assert parcel.out.startswith(f"{parcel.types}/parcel_lost/type.yaml:4: unknown_channel: ")
