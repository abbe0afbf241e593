"""A type as files: a folder with ``type.yaml``, ``schema.json``, and one file for each text.

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
_OTHER_BREAK = re.compile("[\x85\u2028\u2029]")
Parts = dict[str, dict[str, str]]
"""Texts by language and part."""


class FileError(ValueError):
    """A file that can't be read as what it should be."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


@dataclass(frozen=True, slots=True)
class TypeFiles:
    """The content of a type's folder."""

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


def read_types(folder: Path, slugs: Sequence[str] = ()) -> dict[str, TypeFiles]:
    """Return the types in a folder by slug: these, or all. Folders without ``type.yaml`` are none.

    Raises FileError.
    """
    found = sorted(path.parent for path in folder.glob(f"*/{DEFINITION}"))
    return {each.name: read_type(each) for each in found if not slugs or each.name in slugs}


def read_type(folder: Path) -> TypeFiles:
    """Return the type in a folder. Raises FileError."""
    path = folder / DEFINITION
    try:
        definition = _load(_read(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise FileError(path, str(error)) from error
    if not isinstance(definition, dict):
        raise FileError(path, "Expected fields, such as `name: Parcel lost`.")
    if "schema" in definition:
        raise FileError(path, f"The schema has a file of its own, {SCHEMA}.")
    schema = folder / SCHEMA
    if schema.is_file():
        try:
            definition["schema"] = json.loads(_read(schema))
        except (ValueError, RecursionError) as error:
            raise FileError(schema, str(error)) from error
    parts: Parts = {}
    for language, part, text_path in _text_files(folder):
        parts.setdefault(language, {})[part] = _read(text_path).removesuffix("\n")
    return TypeFiles(definition, parts)


def write_type(folder: Path, files: TypeFiles) -> list[Path]:
    """Write a type into its folder, and delete texts that it does not have.

    Return the files that changed. Raises FileError for a name that can't be one of a file.
    """
    wanted = {folder / name: text for name, text in texts_of(files, folder).items()}
    changed = [path for path, text in wanted.items() if not path.is_file() or _read(path) != text]
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8", newline="")
    known = [folder / SCHEMA, *(path for _, _, path in _text_files(folder))]
    for path in known:
        if path not in wanted and path.is_file():
            path.unlink()
            changed.append(path)
    return changed


def texts_of(files: TypeFiles, folder: Path | None = None) -> dict[str, str]:
    """Return the text of each file of a type, by its name in the type's folder.

    What ``folder`` already says the same keeps its form. Raises FileError for a name that can't be
    one of a file.
    """
    definition = dict(files.definition)
    schema = definition.pop("schema", None)
    texts = {DEFINITION: _definition_text(folder and folder / DEFINITION, definition)}
    if schema is not None:
        texts[SCHEMA] = _schema_text(folder and folder / SCHEMA, schema)
    for language, parts in files.parts.items():
        if language != OWN_LANGUAGE and not LANGUAGE.fullmatch(language):
            raise FileError(folder or Path(), f"{language!r} is no language.")
        for part, text in parts.items():
            if not NAME.fullmatch(part):
                raise FileError(folder or Path(), f"{part!r} is no part.")
            texts[text_name(language, part)] = f"{text}\n"
    return texts


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


def _load(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(path, str(error)) from error


def _schema_text(path: Path | None, schema: Mapping[str, Any]) -> str:
    """Return the text of a schema: the present one, if it says the same."""
    if path is not None and path.is_file():
        present = _read(path)
        try:
            if _same(json.loads(present), schema):
                return present
        except ValueError:
            pass
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def _definition_text(path: Path | None, definition: Mapping[str, Any]) -> str:
    """Return the text of a definition, with what the present one says the same of a field."""
    kept: dict[str, str] = {}
    head = ""
    if path is not None and path.is_file():
        head, blocks = _blocks(_read(path))
        for name, block in blocks.items():
            comment, text = _without_comments_before(block)
            try:
                value = _load(text)
            except yaml.YAMLError:
                continue
            if name in definition:
                is_same = _same(value, {name: definition[name]})
                kept[name] = block if is_same else comment + _dump({name: definition[name]})
    fresh = {name: kept.get(name) or _dump({name: definition[name]}) for name in definition}
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
        elif line.startswith("#") or not line.strip():
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
