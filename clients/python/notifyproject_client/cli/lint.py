"""What the rules find in the types of a folder, with its place in their files."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError

from .files import OWN_LANGUAGE, Parts
from .kinds import BRAND, KINDS, LAYOUT, PARTIAL, TRANSLATION, TYPE, Item, Kind
from .rules import design_rules, type_rules
from .rules.schema_changes import pointer_token
from .rules.type_rules import Finding

PAGE = "docs/reference/lint.md"
_NAMED_BY_TYPES = (PARTIAL, LAYOUT)
"""Kinds that types, or each other, name. A brand is named by requests, too."""
_PLACES: Mapping[Kind, str] = {TYPE: "/parts", PARTIAL: "/texts"}
"""Where an item of a request has its texts by language."""
_SHAPES: Mapping[str, tuple[type, str]] = {
    "channels": (list, "a list"),
    "example_data": (dict, "an object"),
    "schema": (dict, "an object"),
}
"""The fields that the rules read into."""


def find_without_server(local: Sequence[Item], *, is_all: bool) -> Iterator[Finding]:
    """Yield what the rules find that need no server, or what they can't read of an item.

    The pointers are those of a request with the items in their order. ``is_all``: there are no
    others that could use them.
    """
    texts = {item.name: item.content.definition for item in local if item.kind is TRANSLATION}
    partials = {item.name: item.content.parts for item in local if item.kind is PARTIAL}
    known = texts if is_all else {}  # Others may have what these lack.
    used = _used(local) if is_all and any(item.kind is TYPE for item in local) else None
    for kind in KINDS:
        for index, item in enumerate(item for item in local if item.kind is kind):
            is_unused = used is not None and kind in _NAMED_BY_TYPES and item.key not in used
            for found in (
                *_find_in_item(item, texts, partials),
                *_find_unknown_keys(item, known),
                *([design_rules.unused_finding()] if is_unused else ()),
            ):
                yield replace(found, pointer=f"/{kind.folder}/{index}{found.pointer}")


def _find_in_item(
    item: Item, translations: Mapping[str, Any], partials: Mapping[str, Parts]
) -> Iterable[Finding]:
    content = item.content
    if item.kind is TYPE:
        wrong = [*_find_wrong_shapes(content.definition)]
        return wrong or type_rules.find(content.definition, content.parts)
    if item.kind is PARTIAL:
        return design_rules.find_in_partial(content.parts)
    if item.kind is LAYOUT:
        html = content.parts[OWN_LANGUAGE][design_rules.HTML]
        return design_rules.find_in_layout(html, partials)
    if item.kind is BRAND:
        return design_rules.find_in_brand(content.definition)
    if item.kind is TRANSLATION:
        return design_rules.find_in_translations(item.name, translations)
    return ()


def _find_unknown_keys(item: Item, translations: Mapping[str, Any]) -> Iterable[Finding]:
    for each in design_rules.find_unknown_keys(item.content.parts, translations):
        place = "/html" if item.kind is LAYOUT else f"{_PLACES[item.kind]}{each.pointer}"
        yield replace(each, pointer=place)


def _used(local: Sequence[Item]) -> set[str]:
    """Return the keys of the partials and the layouts that something uses."""
    partials = {item.name: item.content.parts for item in local if item.kind is PARTIAL}
    texts = (
        text
        for item in local
        if item.kind in (TYPE, LAYOUT)
        for by_part in item.content.parts.values()
        for text in by_part.values()
    )
    used = {PARTIAL.key(name) for name in design_rules.used_partials(texts, partials)}
    layouts = (item.content.definition.get("layout") for item in local)
    return used | {LAYOUT.key(name) for name in layouts if isinstance(name, str)}


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
