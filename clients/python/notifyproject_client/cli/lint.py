"""What the rules find in the types of a folder, with its place in their files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import files
from .files import TypeFiles
from .rules import type_rules

PAGE = "docs/reference/lint.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found. ``pointer`` is the place in a request with the types in their order."""

    code: str
    pointer: str
    detail: str
    line: int | None


def find_without_server(types: Mapping[str, TypeFiles]) -> Iterator[Finding]:
    """Yield what the rules find that need no server."""
    for index, each in enumerate(types.values()):
        for found in type_rules.find(each.definition, each.parts):
            pointer = f"/types/{index}{found.pointer}"
            yield Finding(code=found.code, pointer=pointer, detail=found.detail, line=found.line)


def place(slugs: Sequence[str], pointer: str) -> tuple[str, str, str]:
    """Return the type, the file, and the path in it that a pointer into the request means."""
    _, _, index, kind, *rest = [*pointer.split("/"), "", "", ""][: max(4, pointer.count("/") + 1)]
    slug = slugs[int(index)] if index.isdecimal() else ""
    match kind, rest:
        case "definition", ["schema", *path]:
            return slug, files.SCHEMA, "/".join(path)
        case "parts", [language, part, *_]:
            return slug, files.text_name(language, part), ""
        case _:
            return slug, files.DEFINITION, "/".join(rest)


def line_of(path: Path, within: str) -> int:
    """Return the line of a path such as ``properties/days`` in a JSON or YAML file, at least 1.

    Where the file has no such name, it is the line of the last one that it has.
    """
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    at = 0
    for name in within.split("/") if within else ():
        quoted = json.dumps(name, ensure_ascii=False)
        places = [text.find(form, at) for form in (f"{quoted}:", f"{name}:")]
        at = min((place for place in places if place >= 0), default=at)
    return text.count("\n", 0, at) + 1
