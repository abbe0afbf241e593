"""What the rules find in the types of a folder, with its place in their files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError

from .kinds import TYPE, Item
from .rules import type_rules
from .rules.schema_changes import pointer_token
from .rules.type_rules import Finding

PAGE = "docs/reference/lint.md"
_SHAPES: Mapping[str, tuple[type, str]] = {
    "channels": (list, "a list"),
    "example_data": (dict, "an object"),
    "schema": (dict, "an object"),
}
"""The fields that the rules read into."""


def find_without_server(local: Sequence[Item]) -> Iterator[Finding]:
    """Yield what the rules find that need no server, or what they can't read of a type.

    The pointers are those of a request with the items in their order.
    """
    types = [item.content for item in local if item.kind is TYPE]
    for index, each in enumerate(types):
        wrong = [*_find_wrong_shapes(each.definition)]
        for found in wrong or type_rules.find(each.definition, each.parts):
            yield replace(found, pointer=f"/{TYPE.folder}/{index}{found.pointer}")


def _find_wrong_shapes(definition: Mapping[str, Any]) -> Iterator[Finding]:
    for name, (shape, called) in _SHAPES.items():
        if name in definition and not isinstance(definition[name], shape):
            reason = f"Expected {called}."
            yield Finding(code="wrong_type", pointer=f"/definition/{name}", detail=reason)
    if isinstance(schema := definition.get("schema"), dict):
        try:
            Draft202012Validator(schema, offline=True)
        except ValidationError as error:
            place = "/".join(("/definition/schema", *map(path_token, error.instance_path)))
            yield Finding(code="invalid", pointer=place, detail=error.message)
        except ValueError as error:  # Nested too deeply for the library
            yield Finding(code="invalid", pointer="/definition/schema", detail=str(error))


def path_token(key: str | int) -> str:
    """Return a name or an index as a part of a path that :func:`line_of` takes."""
    return pointer_token(str(key))


def line_of(path: Path, within: str) -> int:
    """Return the line of a path such as ``properties/days`` in a JSON or YAML file, at least 1.

    Its names are escaped as in a JSON Pointer: ``properties/from~1to``. Where the file has no such
    name, it is the line of the last one that it has.
    """
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    at = 0
    for token in within.split("/") if within else ():
        name = token.replace("~1", "/").replace("~0", "~")
        quoted = json.dumps(name, ensure_ascii=False)
        places = [text.find(form, at) for form in (f"{quoted}:", f"{name}:")]
        at = min((place for place in places if place >= 0), default=at)
    return text.count("\n", 0, at) + 1
