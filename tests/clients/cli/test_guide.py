"""The commands of the guide to types as files work as they are printed there."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from notifyproject_client.cli import command

from access.models import Scope
from notifications.content import templates
from notifications.models import Notification
from notifyproject.wsgi import application
from tests.support.clients.api import App, new_app
from tests.support.source import ROOT

GUIDE = (ROOT / "docs" / "guides" / "types_as_files.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
SHELL = [text for language, text in BLOCKS if language == "sh"]
GITHUB, GITLAB = (
    yaml.safe_load(text) for language, text in BLOCKS if language == "yaml" and "notify" in text
)
(TUTORIAL,) = (text for text in SHELL if "notify init" in text and "notify preview" in text)
(DESIGN,) = (text for text in SHELL if "notify init brands" in text)
STUB = r"""
pip() { :; }
notify() { printf '%s\x1f' "$NOTIFY_API_KEY" "$@"; printf '\x1e'; }
"""
"""Records the words of each call instead of making it."""


class Shell:
    """Runs the lines of a page in a folder, and their calls of ``notify`` at the service."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._environment = environment

    def run(self, text: str) -> list[tuple[str, int]]:
        """Return each call with its exit code."""
        found: list[tuple[str, int]] = []
        for line in text.replace("\\\n", "").splitlines():
            for key, *words in calls_of(line, self._folder, self._environment):
                code = command.run(
                    words,
                    environment={"NOTIFY_URL": "http://testserver", "NOTIFY_API_KEY": key},
                    transport=httpx.WSGITransport(app=application),
                )
                found.append((" ".join(words), code))
        return found


def calls_of(line: str, folder: Path, environment: Mapping[str, str]) -> list[list[str]]:
    """Run a line of a shell. Return the key and the words of each call of ``notify``."""
    done = subprocess.run(
        ["bash", "-euc", STUB + line],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return [call.split("\x1f")[:-1] for call in done.stdout.split("\x1e")[:-1]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_of_the_guide_exists(folder: Path) -> None:
    keys = {"NOTIFY_API_KEY": "", "TEST_KEY": "", "GITHUB_SHA": "a", "CI_COMMIT_SHA": "a"}
    blocks = [text for text in SHELL if text not in (TUTORIAL, DESIGN)]
    lines = [line for text in blocks for line in text.splitlines()]
    inline = re.findall(r"`(notify [^`]+)`", GUIDE)
    found = [call for line in (*lines, *inline) for call in calls_of(line, folder, keys)]
    assert len(found) > 15
    for _, *words in found:
        command._parser().parse_args(words)


def test_tutorial_leads_from_the_first_file_to_a_published_change(folder: Path, app: App) -> None:
    tester = new_app("tester", *Scope, is_test=True)
    shell = Shell(folder, NOTIFY_API_KEY=app.key, TEST_KEY=tester.key)
    calls = shell.run(TUTORIAL)
    assert [code for _, code in calls] == [0] * len(calls), calls
    assert {words.split()[0] for words, _ in calls} == {
        *("init", "lint", "push", "preview", "diff", "send", "tail")
    }
    kind = app.get("/types/welcome").json()
    assert kind["template_version"] == 2
    version = templates.get_version(type_slug="welcome", number=2)
    assert version is not None
    assert version.parts["default"]["subject"] == "Hello, {{ first_name }}"
    sent = Notification.objects.get()
    assert (sent.content.subject, sent.is_test) == ("Hello, Ada", True)
    calls = shell.run(DESIGN)
    assert [code for _, code in calls] == [0] * len(calls), calls
    assert app.get("/types/welcome").json()["brand"] == "acme"
    assert (
        app.notify(type="welcome", content=..., data={"first_name": "Ada"})
        .json()["content"]["body"]
        .endswith("Begin: https://example.com")
    )


def pipeline_of_github(event: str) -> list[str]:
    steps: Sequence[Mapping[str, Any]] = GITHUB["jobs"]["types"]["steps"]
    return [
        step["run"]
        for step in steps
        if "run" in step and step.get("if", f"'{event}'").endswith(f"'{event}'")
    ]


def pipeline_of_gitlab(_event: str) -> list[str]:
    script: list[str] = GITLAB["types"]["script"]
    return script


@pytest.mark.parametrize("lines_for", [pipeline_of_github, pipeline_of_gitlab])
def test_pipeline_checks_a_request_and_publishes_after_it(
    folder: Path, app: App, lines_for: Any
) -> None:
    Shell(folder, NOTIFY_API_KEY=app.key).run("notify init welcome")

    def run(event: str, branch: str) -> list[tuple[str, int]]:
        environment = {
            "CI_COMMIT_BRANCH": branch,
            "CI_COMMIT_SHA": "c0ffee",
            "GITHUB_SHA": "c0ffee",
        }
        shell = Shell(folder, NOTIFY_API_KEY=app.key, **environment)
        return [call for line in lines_for(event) for call in shell.run(line)]

    assert run("pull_request", "shorter-texts") == [("lint", 0), ("push --publish --dry-run", 0)]
    assert app.get("/types/welcome").status_code == 404
    assert run("push", "main") == [("lint", 0), ("push --publish --note c0ffee", 0)]
    (version,) = app.get("/types/welcome/templates").json()["results"]
    assert (version["note"], version["is_published"]) == ("c0ffee", True)
    # A request that can't be pushed fails.
    (folder / "notify/types/welcome/body.txt").write_text("{{ nobody }}\n")
    assert run("pull_request", "wrong") == [("lint", 1), ("push --publish --dry-run", 1)]
