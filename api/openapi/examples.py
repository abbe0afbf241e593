"""Composes examples of requests and responses from the examples of their fields."""

from collections.abc import Mapping
from typing import Any

from ..http.fields import EXAMPLE_TIME

Schema = Mapping[str, Any]
REFERENCE = "#/components/schemas/"


def example_of(schema: Schema, components: Mapping[str, Schema], *, name: str = "") -> Any:
    """Return a schema's example or default, or compose one. ``name`` is the example of a text."""
    if values := schema.get("examples") or schema.get("enum"):
        return values[0]
    if "default" in schema:
        return schema["default"]
    if "$ref" in schema:
        return example_of(components[schema["$ref"].removeprefix(REFERENCE)], components, name=name)
    if options := schema.get("anyOf"):
        by_preference = sorted(
            options, key=lambda option: ("examples" not in option, option.get("type") != "null")
        )
        return example_of(by_preference[0], components, name=name)
    return _type_example(schema, components, name=name)


def _type_example(schema: Schema, components: Mapping[str, Schema], *, name: str) -> Any:
    match schema.get("type"):
        case "object":
            return _object_example(schema, components)
        case "array":
            return [example_of(schema["items"], components, name=name.rstrip("s"))]
        case "string":
            return EXAMPLE_TIME if schema.get("format") == "date-time" else name
        case "boolean":
            return False
        case "integer" | "number":
            return schema.get("minimum", 1)
        case _:
            return None


def _object_example(schema: Schema, components: Mapping[str, Schema]) -> dict[str, Any]:
    is_request = schema.get("additionalProperties") is False
    required = schema.get("required", ())
    return {
        field: example_of(property_schema, components, name=field)
        for field, property_schema in schema.get("properties", {}).items()
        if not is_request or field in required or "examples" in property_schema
    }
