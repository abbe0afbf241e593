"""What files say: fields as YAML, texts, and a type as a folder of both with ``schema.json``.

The files have whatever fields and parts the server has: none is named here but ``schema``. Texts
are kept byte for byte, and have one line break more than the server's. A file that is written again
keeps the comments, order, and style of every field that has not changed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

DEFINITION, SCHEMA = "type.yaml", "schema.json"
OWN_LANGUAGE = "default"  # Its texts are beside type.yaml; others have a folder
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?")
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_HTML = "_html"  # A part with this ending is an .html file without it
_FIELD = re.compile(r"(?P<quote>['\"]?)(?P<field>[A-Za-z_][A-Za-z0-9_]*)(?P=quote):(?:\s|$)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LINES = re.compile(r"[^\s].*[^\n]\n?", re.DOTALL)
_BLANKS = " \r\n"
"""What a line without a text has. Other blanks, such as U+00A0, are a text in YAML."""
_OTHER_BREAK = re.compile("[\x85\u2028\u2029]")
Parts = dict[str, dict[str, str]]
"""Texts by language and part."""


class FileError(ValueError):
    """A file that can't be read as what it should be."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


@dataclass(frozen=True, slots=True)
class Content:
    """What the files of a type or another item say."""

    definition: dict[str, Any]
    parts: Parts = field(default_factory=dict)


class _Loader(yaml.SafeLoader):
    """Reads what JSON can say: ``no`` and ``2026-12-24`` are texts, as is ``12:30``."""


class _Dumper(yaml.SafeDumper):
    """Quotes each text that any reader of YAML would take for something else."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Else by line. Trailing breaks would be a part of what follows, and YAML 1.1 has other breaks.
    style = None
    if _OTHER_BREAK.search(text):
        style = '"'
    elif "\n" in text:
        style = "|" if _LINES.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", re.compile(r"true|false"), ["t", "f"]),
    ("null", re.compile(r"null|~|"), ["n", "~", ""]),
    ("int", re.compile(r"-?(0|[1-9][0-9]*)"), [*"-0123456789"]),
    ("float", re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?"), [*"-0123456789"]),
):
    _whole = re.compile(f"(?:{_pattern.pattern})$")
    for _either in (_Loader, _Dumper):
        _either.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole, _first)
_Dumper.add_representer(str, _write_text)


def read_types(folder: Path, slugs: Sequence[str] = ()) -> dict[str, Content]:
    """Return the types in a folder by slug: these, or all. Raises FileError."""
    return {
        slug: read_type(folder / slug) for slug in type_names(folder) if not slugs or slug in slugs
    }


def type_names(folder: Path) -> list[str]:
    """Return the types in a folder. Folders without ``type.yaml`` are none."""
    return sorted(path.parent.name for path in folder.glob(f"*/{DEFINITION}"))


def read_type(folder: Path) -> Content:
    """Return the type in a folder. Raises FileError."""
    path = folder / DEFINITION
    definition = read_fields(path)
    if "schema" in definition:
        raise FileError(path, f"The schema has a file of its own, {SCHEMA}.")
    schema = folder / SCHEMA
    if schema.is_file():
        try:
            definition["schema"] = json.loads(read_file(schema))
        except (ValueError, RecursionError) as error:
            raise FileError(schema, str(error)) from error
    parts: Parts = {}
    for language, part, text_path in _text_files(folder):
        parts.setdefault(language, {})[part] = read_text(text_path)
    return Content(definition, parts)


def texts_of_type(content: Content, folder: Path | None = None) -> dict[str, str]:
    """Return the text of each file of a type, by its name in the type's folder.

    What ``folder`` already says the same keeps its form. Raises FileError for a name that can't be
    one of a file.
    """
    definition = dict(content.definition)
    schema = definition.pop("schema", None)
    texts = {DEFINITION: fields_text(folder and folder / DEFINITION, definition)}
    if schema is not None:
        texts[SCHEMA] = _schema_text(folder and folder / SCHEMA, schema)
    for language, parts in content.parts.items():
        if language != OWN_LANGUAGE and not LANGUAGE.fullmatch(language):
            raise FileError(folder or Path(), f"{language!r} is no language.")
        for part, text in parts.items():
            if not NAME.fullmatch(part):
                raise FileError(folder or Path(), f"{part!r} is no part.")
            texts[text_name(language, part)] = f"{text}\n"
    return texts


def paths_of_type(folder: Path) -> list[Path]:
    """Return the present files of a type, besides its definition."""
    schema = folder / SCHEMA
    texts = [path for _, _, path in _text_files(folder)]
    return [schema, *texts] if schema.is_file() else texts


def place_in_type(tokens: Sequence[str]) -> tuple[str, str]:
    """Return the file and the path in it that a pointer into a type of a request means."""
    match tokens:
        case ["definition", "schema", *path]:
            return SCHEMA, "/".join(path)
        case ["parts", language, part, *_]:
            return text_name(language, part), ""
        case _:
            return DEFINITION, "/".join(tokens[1:])


def text_name(language: str, part: str) -> str:
    """Return the name of a text's file in the type's folder."""
    name = f"{part.removesuffix(_HTML)}.html" if part.endswith(_HTML) else f"{part}.txt"
    return name if language == OWN_LANGUAGE else f"{language}/{name}"


def _text_files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the language, the part, and the path of each text."""
    languages = [p for p in folder.glob("*") if p.is_dir() and LANGUAGE.fullmatch(p.name)]
    for place in (folder, *sorted(languages)):
        language = OWN_LANGUAGE if place == folder else place.name
        for path in sorted(place.glob("*.txt")):
            yield language, path.stem, path
        for path in sorted(place.glob("*.html")):
            yield language, f"{path.stem}{_HTML}", path


def read_fields(path: Path) -> dict[str, Any]:
    """Return the fields of a file. Raises FileError."""
    try:
        fields = _load(read_file(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise FileError(path, str(error)) from error
    if not isinstance(fields, dict):
        raise FileError(path, "Expected fields, such as `name: Parcel lost`.")
    return fields


def read_text(path: Path) -> str:
    """Return the text of a file, without the line break that each has. Raises FileError."""
    return read_file(path).removesuffix("\n")


def read_file(path: Path) -> str:
    """Return all that a file has. Raises FileError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(path, str(error)) from error


def write_texts(wanted: Mapping[Path, str], present: Sequence[Path]) -> list[Path]:
    """Write texts by their paths, and delete the present ones that aren't wanted.

    Return the files that changed.
    """
    changed = [p for p, text in wanted.items() if not p.is_file() or read_file(p) != text]
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8", newline="")
    gone = [path for path in present if path not in wanted]
    for path in gone:
        path.unlink()
    return changed + gone


def _load(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _schema_text(path: Path | None, schema: Mapping[str, Any]) -> str:
    """Return the text of a schema: the present one, if it says the same."""
    if path is not None and path.is_file():
        present = read_file(path)
        try:
            if _same(json.loads(present), schema):
                return present
        except ValueError:
            pass
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def fields_text(path: Path | None, fields: Mapping[str, Any]) -> str:
    """Return the text of fields, with what the present one says the same of each."""
    kept: dict[str, str] = {}
    head = ""
    if path is not None and path.is_file():
        head, blocks = _blocks(read_file(path))
        for name, block in blocks.items():
            comment, text = _without_comments_before(block)
            try:
                value = _load(text)
            except yaml.YAMLError:
                continue
            if name in fields:
                is_same = _same(value, {name: fields[name]})
                kept[name] = block if is_same else comment + _dump({name: fields[name]})
    fresh = {name: kept.get(name) or _dump({name: fields[name]}) for name in fields}
    order = [*kept, *(name for name in fresh if name not in kept)]
    return head + "".join(fresh[name] for name in order)


def _blocks(text: str) -> tuple[str, dict[str, str]]:
    """Return what precedes the first field, and the lines of each with the comments before it."""
    head: list[str] = []
    blocks: dict[str, list[str]] = {}
    before: list[str] = []
    current: list[str] = head
    for line in _LINE.findall(text):
        ended = line if line.endswith("\n") else f"{line}\n"
        if found := _FIELD.match(line):
            current = blocks.setdefault(found["field"], [])
            current.extend([*before, ended])
            before = []
        elif line.startswith("#") or not line.strip(_BLANKS):
            before.append(ended)
        else:
            current.extend([*before, ended])
            before = []
    current.extend(before)
    return "".join(head), {name: "".join(lines) for name, lines in blocks.items()}


def _without_comments_before(block: str) -> tuple[str, str]:
    lines = _LINE.findall(block)
    first = next(number for number, line in enumerate(lines) if _FIELD.match(line))
    return "".join(lines[:first]), "".join(lines[first:])


def _dump(fields: Mapping[str, Any]) -> str:
    return yaml.dump(dict(fields), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: ``1`` isn't ``true``."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
