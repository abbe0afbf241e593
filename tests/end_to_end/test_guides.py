"""The commands in the README and the guides work as they are printed there."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from bson import ObjectId
from django.core.management import get_commands, load_command_class

from delivery import pipeline
from delivery.runtime import SendingRuntime
from devices.push_keys import new_key
from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app
from tests.support.source import ROOT
from tests.support.subprocess import python
from tests.support.tables import each_case

GUIDES = ROOT / "docs" / "guides"
PAGES = (ROOT / "README.md", *sorted(GUIDES.glob("*.md")))
HERE = ("http://127.0.0.1:8000", "$URL")
CODE = re.compile(r"^```sh\n(.*?)^```|((?:^ {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:\.venv/bin/python )?manage\.py [^`]+|make [a-z-]+[^`]*)`")
WITHOUT_DJANGO = ("setup", "healthcheck", "service")
RULES = re.findall(r"^([\w./ -]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
TARGETS = {target for rule in RULES for target in rule.split()}


@dataclass(frozen=True)
class Request:
    """What a curl command sends."""

    method: str
    path: str
    body: str
    headers: dict[str, str]


def blocks(page: Path) -> list[str]:
    """Return the shell code of a page."""
    found = CODE.findall(page.read_text(encoding="utf-8"))
    return [(fenced or indented).replace("\\\n", " ") for fenced, indented in found]


def curl_commands(page: Path) -> list[list[str]]:
    """Return the words of each curl command. A quoted body may have several lines."""
    found = []
    for block in blocks(page):
        for command in re.split(r"^ *(?=curl )", block, flags=re.MULTILINE)[1:]:
            reader = shlex.shlex(command, posix=True, punctuation_chars="\n")
            reader.whitespace, reader.whitespace_split, reader.commenters = " \t", True, "#"
            words = []
            for word in reader:
                if word.startswith("\n"):
                    break
                words.append(word)
            found.append(words)
    return found


def parse(words: list[str], **values: str) -> Request:
    """Return the request of a curl command. Raises ValueError if it has an unknown option."""
    method, target, body, headers = "", "", "", {}
    rest = iter(words[1:])
    for word in rest:
        match word:
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = Template(next(rest)).substitute(values).partition(": ")
                headers[name] = value
            case "-d":
                body = next(rest)
            case _ if word.startswith("-") or target:
                raise ValueError(word)
            case _:
                target = word
    path = next(target.removeprefix(host) for host in HERE if target.startswith(host))
    path = Template(path).substitute(values).removeprefix("/api/v1")
    return Request(method or ("POST" if body else "GET"), path, body, headers)


def run(app: App, page: Path, **more: Callable[[], str]) -> list[Answer]:
    """Send a page's curl commands in their order. ``more`` are further shell variables."""
    answers = []
    for words in curl_commands(page):
        names = {name for name in more if any(f"${name}" in word for word in words)}
        request = parse(words, KEY=app.key, **{name: more[name]() for name in names})
        assert request.headers.pop("Authorization") == f"Bearer {app.key}"
        kind = request.headers.pop("Content-Type", "application/json")
        answers.append(
            app.send(
                request.path,
                request.body.encode(),
                method=request.method,
                content_type=kind,
                headers=request.headers,
            )
        )
    return answers


def statuses(answers: list[Answer]) -> list[int]:
    return [answer.status_code for answer in answers]


def newest(name: str, **wanted: Any) -> str:
    found = collection(name).find_one(wanted, sort=[("_id", -1)])
    assert found is not None
    return str(found["_id"])


def test_notification_of_the_readme_is_accepted(app: App) -> None:
    assert statuses(run(app, ROOT / "README.md")) == [202]


def test_callback_endpoint_is_created(app: App) -> None:
    assert statuses(run(app, GUIDES / "callbacks.md")) == [200]


def test_outbox_and_clock_of_a_test_key_are_used(db: None, broker: Any) -> None:
    tester = new_app("tester", is_test=True)
    assert statuses(run(tester, GUIDES / "testing.md")) == [200, 200]


def test_addresses_that_fail_are_those_of_the_sandbox() -> None:
    page, sandbox = (
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("guides/testing.md", "reference/sandbox.md")
    )
    named = re.findall(r"^\| (?:email|SMS|WhatsApp|push) \| [^|]*?`([\w-]+@?)", page, re.MULTILINE)
    assert len(named) > 10
    forms = {name: (f"`{name}`", f"`…{name}`", f"`{name}…`") for name in named}
    unknown = {name for name, of in forms.items() if not any(form in sandbox for form in of)}
    assert unknown == set()


def test_plan_begins_and_is_cancelled_by_its_entity(app: App) -> None:
    planned, cancelled = run(app, GUIDES / "plans.md")
    assert planned.status_code == 202
    assert cancelled.json() == {"cancelled": 1}


def test_login_code_is_accepted_with_its_channels(app: App) -> None:
    (accepted,) = run(app, GUIDES / "login_codes.md")
    assert accepted.status_code == 202
    steps = {delivery["channel"]: delivery["step"] for delivery in accepted.json()["delivery"]}
    assert steps == {"sms": 1, "whatsapp": 2, "email": 3}


def test_browser_is_registered(app: App, settings: Any) -> None:
    settings.WEBPUSH_KEYS = (new_key().private_text,)
    assert statuses(run(app, GUIDES / "web_push.md")) == [201]


def test_limit_is_set_for_all_and_for_one(app: App) -> None:
    app.put("/recipients/ada", {"email": "ada@example.com"})
    assert statuses(run(app, GUIDES / "limits.md")) == [201, 200, 200]


def test_digest_is_listed_sent_and_cancelled(app: App) -> None:
    def joined() -> str:
        """Let a message open a digest, and return it."""
        number = collection("digests").count_documents({})
        data = {"document": f"Plan {number}", "author": "Ada"}
        answer = app.notify(type="comment_added", user_id="ada", data=data, channels=["email"])
        at = utc_now() + timedelta(seconds=1)
        pipeline.dispatch(
            SendingRuntime(),
            [ObjectId(answer.json()["id"])],
            channel=Channel.EMAIL,
            clock=lambda: at,
        )
        return newest("digests", status="open")

    page = {"parts": {"default": {"subject": "{{ document }}", "body": "{{ author }}"}}}
    try:
        defined = curl_commands(GUIDES / "digests.md")[0]
        request = parse(defined, KEY=app.key)
        assert app.send(request.path, request.body.encode(), method="PUT").status_code == 201
        assert app.post("/types/comment_added/templates", page).status_code == 201
        assert app.post("/types/comment_added/templates/versions/1/publish").status_code == 200
        assert statuses(run(app, GUIDES / "digests.md", ID=joined)) == [200, 200, 202, 202]
    finally:
        collection("notification_types").delete_one({"_id": "comment_added"})
        types.invalidate_types()


def test_each_page_with_requests_is_tested() -> None:
    tested = {"README", "callbacks", "plans", "limits", "digests", "login_codes", "web_push"}
    tested |= {"testing", "quickstart", "send", "inbox"}  # The last three in test_tabs.py
    recorded = {"developing"}  # One run on a stack, with its log and documents.
    assert {page.stem for page in PAGES if curl_commands(page)} == tested | recorded


@each_case("page", PAGES)
def test_management_commands_and_make_targets_exist_with_their_options(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = [line.strip() for block in blocks(page) for line in block.splitlines()]
    for line in [*lines, *INLINE.findall(text)]:
        before, found, command = line.partition("manage.py ")
        if found and (not before or before.endswith(("python ", "$ "))):
            check_command(shlex.split(command, comments=True))
        elif line.startswith("make "):
            words = shlex.split(line, comments=True)[1:]
            targets = {word for word in words if "=" not in word}
            assert targets, line
            assert targets <= TARGETS, line
            assert all(re.match(r"[A-Z_]+=", word) for word in words if "=" in word), line


@cache
def help_of(command: str) -> str:
    return python("manage.py", command, "--help")


def check_command(words: list[str]) -> None:
    name, *arguments = words
    if name in WITHOUT_DJANGO:
        assert all(
            argument in help_of(name) for argument in arguments if argument.startswith("--")
        ), words
        return
    command = load_command_class(get_commands()[name], name)
    if arguments and not any("…" in argument for argument in arguments):
        command.create_parser("manage.py", name).parse_args(arguments)
