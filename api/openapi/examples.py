"""Examples of requests and answers, made of their schemas and a word for each field."""

from collections.abc import Mapping, Sequence
from typing import Any

from .wording import EXAMPLE_TIME, FIELD_EXAMPLES

Schema = Mapping[str, Any]
REFERENCE = "#/components/schemas/"
JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def example_of(schema: Schema, components: Mapping[str, Schema], *, name: str = "") -> Any:
    """Return an example of a schema; ``name`` says what it is, such as ``DeviceView.platform``.

    A text of which neither its schema nor a word says anything is the field's name; a test does not
    let that pass.
    """
    for key in (name, name.rpartition(".")[2]):
        if key in FIELD_EXAMPLES and _matches(FIELD_EXAMPLES[key], schema, components):
            return FIELD_EXAMPLES[key]
    if "$ref" in schema:
        return example_of(_resolve(schema, components), components, name=name)
    values: Sequence[Any] = schema.get("examples") or schema.get("enum") or ()
    if values or "default" in schema:
        return values[0] if values else schema["default"]
    if options := schema.get("anyOf"):
        return example_of(options[0], components, name=name)
    return _type_example(schema, components, name=name)


def _type_example(schema: Schema, components: Mapping[str, Schema], *, name: str) -> Any:
    match schema.get("type"):
        case "object" if "properties" in schema:
            return _structure_example(schema, components)
        case "object":
            return {}
        case "array":
            return [example_of(schema["items"], components, name=name.rstrip("s"))]
        case "string":
            return EXAMPLE_TIME if schema.get("format") == "date-time" else name.rpartition(".")[2]
        case "boolean":
            return False
        case kind:
            return None if kind is None else schema.get("minimum", 1)


def _structure_example(schema: Schema, components: Mapping[str, Schema]) -> dict[str, Any]:
    """Return all of an answer; of a request what it needs and what has a word of its own."""
    title, is_request = schema["title"], schema.get("additionalProperties") is False
    required = schema.get("required", ())
    return {
        field: example_of(property_schema, components, name=f"{title}.{field}")
        for field, property_schema in schema["properties"].items()
        if not is_request or field in required or f"{title}.{field}" in FIELD_EXAMPLES
    }


def _matches(value: Any, schema: Schema, components: Mapping[str, Schema]) -> bool:
    """Return whether a value is of a schema's kind; a word may be for another field of the name."""
    if "$ref" in schema:
        return _matches(value, _resolve(schema, components), components)
    if options := schema.get("anyOf"):
        return any(_matches(value, option, components) for option in options)
    if "enum" in schema:
        return value in schema["enum"]
    if isinstance(value, list) and "items" in schema:
        return all(_matches(one, schema["items"], components) for one in value)
    return type(value) in JSON_TYPES[schema["type"]] if "type" in schema else True


def _resolve(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    return components[schema["$ref"].removeprefix(REFERENCE)]
