"""The properties of a type's data, and what a text that a person entered is as their value."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..catalog.digests import DIGEST_VARIABLE
from ..catalog.schemas import DEFINITIONS
from ..documents.catalog import NotificationTypeDocument
from .reminders import EVENT_VARIABLES

LONG_TEXT = 200
"""A text that may have more characters than this has several lines."""
MAX_TEXT = 20_000  # Characters of a text without a schema
_HAS_ZONE = re.compile(r"(?:Z|[+-]\d\d:\d\d)\Z", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)  # What fits into 64 bits
_DECIMAL = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_SIMPLE_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataProperty:
    """A variable of a type, and what its schema says of it."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool
    is_secret: bool
    example: Any = None


def properties_of(document: NotificationTypeDocument) -> list[DataProperty]:
    """Return the variables of a stored type: those of its schema, then others of its examples."""
    schema = json.loads(document.get("schema") or "{}")
    examples, secrets = document["example_data"], document["sensitive_variables"]
    named: Mapping[str, Any] = schema.get("properties", {})
    # The service gives these by itself: of a digest, and of the event of a reminder.
    given = {DIGEST_VARIABLE, *(EVENT_VARIABLES if document.get("notify_before_seconds") else ())}
    is_open = schema.get("additionalProperties") is not False
    others = [name for name in examples if name not in named and is_open]
    return [
        DataProperty(
            name=name,
            schema=_resolved(named.get(name, _guessed(examples.get(name))), schema),
            is_required=name in schema.get("required", ()),
            is_secret=name in secrets,
            example=examples.get(name),
        )
        for name in [*named, *others]
        if name not in given
    ]


def _guessed(example: Any) -> Mapping[str, Any]:
    """Return the schema of a variable that has only an example."""
    kind = _SIMPLE_TYPES.get(type(example))
    is_text = kind == "string" and len(example) > LONG_TEXT // 2
    return {"type": kind, "maxLength": MAX_TEXT} if is_text else {"type": kind} if kind else {}


def _resolved(part: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a property's schema with what its reference names. References don't recur."""
    found = dict(part) if isinstance(part, Mapping) else {}
    while reference := found.pop("$ref", None):
        found = {**schema.get("$defs", {}).get(reference.removeprefix(DEFINITIONS), {}), **found}
    return found


def kind_of(schema: Mapping[str, Any]) -> str | None:
    """Return the type of the input; None for what only JSON can say."""
    named = schema.get("type")
    kinds = [named] if isinstance(named, str) else [kind for kind in named or () if kind != "null"]
    if "string" in kinds:
        # What may be a text or a number is a text.
        return "string" if not {"array", "object"}.intersection(kinds) else None
    return kinds[0] if len(kinds) == 1 and kinds[0] not in ("array", "object") else None


def with_offset(text: str) -> str:
    """Return the text of a browser's time input, which has no offset, as a time in UTC."""
    if _HAS_ZONE.search(text):
        return text
    return f"{text}:00Z" if text.count(":") == 1 else f"{text}Z"


def value_of(text: str, schema: Mapping[str, Any]) -> Any:
    """Return what a cell's text is for a property. What doesn't fit stays a text.

    The check of the data against the schema then says what was expected.
    """
    for choice in schema.get("enum", ()):
        if text in (choice, json.dumps(choice)):
            return choice
    found: Any = text
    match kind_of(schema):
        case "integer" | "number" if _INTEGER.fullmatch(text):
            found = int(text)
        case "number" if _DECIMAL.fullmatch(text):
            found = float(text)
        case "boolean":
            found = _TRUTH.get(text.casefold(), text)
        case "string" if schema.get("format") == "date-time" and _TIME.fullmatch(text):
            found = with_offset(text.replace(" ", "T"))
        case None if schema.get("type") in ("array", "object"):
            found = _parsed(text)
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
