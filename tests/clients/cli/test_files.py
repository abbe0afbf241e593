"""A type as files: what is written is read again, byte for byte, and comments stay."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from notifyproject_client.cli import files
from notifyproject_client.cli.files import Content, FileError
from notifyproject_client.cli.kinds import TYPE

from notifications.catalog.shipped_types import FOLDER, shipped_types
from notifications.content import templates
from tests.support.tables import each_case

PARCEL = Content(
    {"name": "Parcel lost", "category": "transactional", "channels": ["email"], "max_retries": 2},
    {
        "default": {"subject": "Lost", "body": "We are sorry.\n", "email_html": "<p>Sorry</p>"},
        "pt-BR": {"subject": "Perdida"},
    },
)


def write_type(folder: Path, content: Content) -> list[Path]:
    return TYPE.write(folder.parent, folder.name, content)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_bytes().decode()
        for path in folder.glob("**/*")
        if path.is_file()
    }


def test_each_text_has_a_file(tmp_path: Path) -> None:
    changed = write_type(tmp_path, PARCEL)
    assert contents(tmp_path) == {
        "type.yaml": "name: Parcel lost\ncategory: transactional\n"
        "channels:\n  - email\nmax_retries: 2\n",
        "subject.txt": "Lost\n",
        "body.txt": "We are sorry.\n\n",
        "email.html": "<p>Sorry</p>\n",
        "pt-BR/subject.txt": "Perdida\n",
    }
    assert len(changed) == 5
    assert files.read_type(tmp_path) == PARCEL
    assert write_type(tmp_path, PARCEL) == []


def test_text_that_the_type_lost_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    write_type(tmp_path, PARCEL)
    for name in ("README.md", "notes/plan.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Ours.")
    changed = write_type(tmp_path, replace(PARCEL, parts={"default": {"subject": "Lost"}}))
    assert {path.name for path in changed} == {"body.txt", "email.html", "subject.txt"}
    assert contents(tmp_path).keys() == {"type.yaml", "subject.txt", "README.md", "notes/plan.txt"}


WRITTEN = """\
# Owned by logistics.

name: 'Parcel lost'   # As the customer reads it

# Retries are cheap here.
max_retries: 2
channels: [email]

category: transactional
# The end.
"""


def test_comments_order_and_style_of_what_has_not_changed_stay(tmp_path: Path) -> None:
    path = tmp_path / "type.yaml"
    path.write_text(WRITTEN)
    assert write_type(tmp_path, replace(PARCEL, parts={})) == []
    more = {**PARCEL.definition, "max_retries": 5, "priority": "high"}
    assert write_type(tmp_path, Content(more)) == [path]
    assert path.read_text() == WRITTEN.replace("max_retries: 2", "max_retries: 5") + (
        "priority: high\n"
    )
    fewer = {name: value for name, value in PARCEL.definition.items() if name != "max_retries"}
    write_type(tmp_path, Content(fewer))
    assert files.read_type(tmp_path).definition == fewer


@each_case(
    "text", ["no", "on", "off", "2026-12-24", "12:30", "1e5", "012", "0x1F", "1_000", "null"]
)
def test_texts_that_yaml_would_take_for_something_else_stay_texts(text: str) -> None:
    with TemporaryDirectory() as folder:
        write_type(Path(folder), Content({"name": text}))
        written = (Path(folder) / "type.yaml").read_text()
        assert files.read_type(Path(folder)).definition == {"name": text}
        assert yaml.safe_load(written) == {"name": text}


@each_case(
    "value",
    [
        *("\n", "a\n\n", " a\n", ["\n"], {"\n": None}, {"\x85": None}, "a\u2028b", "a\x85\nb"),
        *("a\n\xa0", "a\n\u2003", "a\n\xa0\n", "a\n\t", "a\n\t\n", "a\n\r", "a\n#", "a\nb: c"),
    ],
)
def test_every_line_is_kept_before_another_field_and_written_once(value: Any) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for each in ({"a": None}, {"a": value, "b": None}, {"a": value}):
            write_type(folder, Content(each))
            assert files.read_type(folder).definition == each
            assert write_type(folder, Content(each)) == []


@each_case("text", ["no", "off", "2026-12-24", "12:30", "012"])
def test_unquoted_text_is_a_text(text: str) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "type.yaml").write_text(f"locale: {text}\n")
        assert files.read_type(Path(folder)).definition == {"locale": text}


@each_case(
    "name, text",
    [
        ("type.yaml", "name: [\n"),
        ("type.yaml", "- name\n"),
        ("type.yaml", ""),
        ("type.yaml", "name: x\nschema: {}\n"),
        ("type.yaml", "name: !!python/object:os.system x\n"),
        ("schema.json", "{"),
        ("subject.txt", "\udcff"),
    ],
)
def test_unreadable_file_is_named(name: str, text: str) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "type.yaml").write_text("name: x\n")
        (Path(folder) / name).write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(FileError, match=name):
            files.read_type(Path(folder))


@each_case(
    "language, part",
    [("..", "subject"), ("pt/../..", "subject"), ("default", "../x"), ("default", "a/b")],
)
def test_no_name_of_the_server_leaves_the_folder(language: str, part: str) -> None:
    with TemporaryDirectory() as folder, pytest.raises(FileError):
        write_type(Path(folder) / "t", Content({"name": "x"}, {language: {part: "x"}}))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["no", "1e5", "2026-12-24", " a", "a ", "#", "a: b", "\n", "- x", "~"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
NAMES = st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True)
PART_NAMES = st.sampled_from(["subject", "body", "email_html", "push", "sms"])
TYPES = st.builds(
    Content,
    st.dictionaries(NAMES.filter(lambda name: name != "schema"), VALUES, min_size=1, max_size=5),
    st.dictionaries(
        st.sampled_from(["default", "pt", "zh-Hant-TW"]),
        st.dictionaries(PART_NAMES, TEXTS, min_size=1, max_size=3),
        max_size=3,
    ),
)


@settings(max_examples=300, deadline=None)
@given(TYPES, TYPES)
def test_written_type_is_read_again_and_written_no_more(one: Content, other: Content) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for each in (one, other):
            write_type(folder, each)
            found = files.read_type(folder)
            assert json.dumps(found.definition, sort_keys=True) == json.dumps(
                each.definition, sort_keys=True
            )
            assert found.parts == each.parts
            assert write_type(folder, each) == []


def test_shipped_types_are_such_files(tmp_path: Path) -> None:
    found = files.read_types(FOLDER)
    assert list(found) == [shipped.slug for shipped in shipped_types()]
    for slug, each in found.items():
        assert each.parts == templates.shipped_texts(slug)
        assert write_type(tmp_path / slug, each) != []
    assert contents(tmp_path) == {
        name: text for name, text in contents(FOLDER).items() if not name.startswith("_")
    }


def test_shipped_types_are_read_alike_by_the_service(tmp_path: Path) -> None:
    for shipped in shipped_types():
        definition: dict[str, Any] = files.read_type(FOLDER / shipped.slug).definition
        assert {name: getattr(shipped.definition, name) for name in definition}["name"]
        assert shipped.definition.example_data == definition.get("example_data", {})
