"""The variables of a type, by its schema and its example data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from notifications.catalog.digests import DIGEST_VARIABLE
from notifications.catalog.schemas import DEFINITIONS
from notifications.content.reminders import EVENT_VARIABLES
from notifications.documents.catalog import NotificationTypeDocument

MAX_TEXT = 20_000
LONG_TEXT = 200
"""A text that may have more characters than this gets several lines."""
_SIMPLE_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


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
