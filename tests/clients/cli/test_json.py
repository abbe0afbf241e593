"""``--json``: each command that the parser knows prints one JSON document."""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from notifyproject_client.cli import command
from notifyproject_client.cli.profiles import FILE as PROFILES

from tests.clients.cli.test_command import Notify, notify, parcel
from tests.support.clients.api import App

__all__ = ["notify", "parcel"]

WORDS: Mapping[str, str] = {
    "diff": "",
    "init": "first",
    "lint": "",
    "preview": "parcel_lost",
    "promote": "--from here --to here",
    "pull": "",
    "push": "--publish",
    "send": "parcel_lost --to ada@example.com --data data.json",
    "tail": "--once --last 1",
    "types generate": "--python types_.py",
    "validate": "parcel_lost data.json",
}
"""What each command needs to have something to say."""


def names(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the commands of a parser, each with those that it is below."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not below:
        yield " ".join(path)
    for each in below:
        for name, inner in each.choices.items():
            yield from names(inner, (*path, name))


@pytest.fixture
def folder(
    parcel: Notify, app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, str]:
    """A folder with what the commands read. Returns their environment."""
    monkeypatch.chdir(tmp_path)
    Path("data.json").write_text('{"parcel": "77"}')
    path = Path("profiles.toml")
    path.write_text(f"[here]\nurl = 'http://testserver'\nkey = '{app.key}'\n")
    path.chmod(0o600)
    return {PROFILES: str(path)}


def test_table_has_every_command() -> None:
    assert sorted(names(command._parser())) == sorted(WORDS)


@pytest.mark.parametrize("name", WORDS)
def test_command_prints_one_document(
    name: str, parcel: Notify, folder: Mapping[str, str], app: App
) -> None:
    if name == "tail":
        assert app.notify().status_code == 202
    words = [*name.split(), *WORDS[name].split(), "--json"]
    assert parcel(*words, **folder) == 0, parcel.err
    assert isinstance(json.loads(parcel.out), dict | list)
    assert parcel.out.count("\n") == 1


def test_what_init_generate_and_validate_say_has_its_place(
    parcel: Notify, folder: Mapping[str, str]
) -> None:
    assert parcel("init", "brands/acme", "--json") == 0
    path = parcel.types.parent / "brands" / "acme.yaml"
    assert json.loads(parcel.out) == [{"brand": "acme", "what": "written", "place": str(path)}]
    assert parcel("types", "generate", "--python", "types_.py", "--check", "--json") == 1
    assert json.loads(parcel.out) == [{"what": "would change", "place": "types_.py"}]
    parcel.write("parcel_lost", "schema.json", '{"type": "object", "required": ["day"]}')
    assert parcel("validate", "parcel_lost", "data.json", "--json") == 1
    text = '"day" is a required property'
    assert json.loads(parcel.out) == [
        {"type": "parcel_lost", "what": "invalid_data", "text": text, "place": "data.json:1"}
    ]


def test_refused_message_is_a_document_too(parcel: Notify, folder: Mapping[str, str]) -> None:
    Path("data.json").write_text("{}")
    assert parcel("send", "parcel_lost", "--to", "a@example.com", "--json") == 1
    (error,) = json.loads(parcel.out)["errors"]
    assert (error["pointer"], error["code"]) == ("/data/parcel", "missing_variable")
