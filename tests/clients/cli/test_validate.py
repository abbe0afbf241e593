"""``notify validate``: data by the schema in the files."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from notifyproject_client.cli import command

from tests.support.tables import each_case

SCHEMA = {
    "type": "object",
    "properties": {"parcel": {"type": "string"}, "sent_on": {"type": "string", "format": "date"}},
    "required": ["parcel"],
    "additionalProperties": False,
}
RIGHT = {"parcel": "77", "sent_on": "2026-12-24"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kind = tmp_path / "types" / "parcel_lost"
    kind.mkdir(parents=True)
    (kind / "type.yaml").write_text("name: Parcel lost\ncategory: alert\nchannels: [email]\n")
    (kind / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


def validate(folder: Path, text: str, *, slug: str = "parcel_lost") -> tuple[int, str, str]:
    path = folder / "data.json"
    path.write_text(text)
    out, err = io.StringIO(), io.StringIO()
    words = ["validate", slug, str(path), "--types", str(folder / "types")]
    code = command.run(words, environment={}, out=out, err=err)
    return code, out.getvalue().replace(f"{folder}/", ""), err.getvalue()


@each_case(
    "data, lines",
    [
        (RIGHT, []),
        ({**RIGHT, "parcel": 77}, ['data.json:2: parcel: 77 is not of type "string"']),
        ({"parcel": "77", "sent_on": "soon"}, ['data.json:3: sent_on: "soon" is not a "date"']),
        ({}, ['data.json:1: "parcel" is a required property']),
        (
            {**RIGHT, "day": 1},
            ["data.json:1: Additional properties are not allowed ('day' was unexpected)"],
        ),
    ],
)
def test_each_difference_is_named_by_its_line(folder: Path, data: Any, lines: list[str]) -> None:
    code, out, err = validate(folder, json.dumps(data, indent=1))
    assert (code, out.splitlines(), err) == (int(bool(lines)), lines, "")


def test_type_without_a_schema_takes_any_data(folder: Path) -> None:
    (folder / "types" / "parcel_lost" / "schema.json").unlink()
    assert validate(folder, "{}") == (0, "", "")


def test_what_can_not_be_read_is_invalid_use(folder: Path) -> None:
    assert validate(folder, "{")[0] == 2
    assert validate(folder, "[" * 100_000)[0] == 2
    assert validate(folder, "{}", slug="nope") == (2, "", "There is no type nope.\n")
    (folder / "types" / "parcel_lost" / "schema.json").write_text('{"type": "colour"}')
    code, out, err = validate(folder, "{}")
    assert (code, out, err.startswith("schema.json: ")) == (2, "", True)
    (folder / "types" / "parcel_lost" / "schema.json").write_text("[" * 100_000)
    assert validate(folder, "{}")[0] == 2
    (folder / "types" / "parcel_lost" / "schema.json").unlink()
    (folder / "types" / "parcel_lost" / "type.yaml").write_text("a: " + "[" * 100_000)
    assert validate(folder, "{}")[0] == 2
