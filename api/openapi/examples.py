"""Examples of requests and answers, made of their schemas and a word for each field."""

from collections.abc import Mapping, Sequence
from typing import Any

from .wording import MOMENT, WORDS

Schema = Mapping[str, Any]
REFERENCE = "#/components/schemas/"
KINDS: Mapping[str, tuple[type, ...]] = {
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
    for word in (name, name.rpartition(".")[2]):
        if word in WORDS and _may_be(WORDS[word], schema, components):
            return WORDS[word]
    if "$ref" in schema:
        return example_of(_named(schema, components), components, name=name)
    said: Sequence[Any] = schema.get("examples") or schema.get("enum") or ()
    if said or "default" in schema:
        return said[0] if said else schema["default"]
    if options := schema.get("anyOf"):
        return example_of(options[0], components, name=name)
    return _of_type(schema, components, name=name)


def _of_type(schema: Schema, components: Mapping[str, Schema], *, name: str) -> Any:
    match schema.get("type"):
        case "object" if "properties" in schema:
            return _of_structure(schema, components)
        case "object":
            return {}
        case "array":
            return [example_of(schema["items"], components, name=name.rstrip("s"))]
        case "string":
            return MOMENT if schema.get("format") == "date-time" else name.rpartition(".")[2]
        case "boolean":
            return False
        case kind:
            return None if kind is None else schema.get("minimum", 1)


def _of_structure(schema: Schema, components: Mapping[str, Schema]) -> dict[str, Any]:
    """Return all of an answer; of a request what it needs and what has a word of its own."""
    title, is_request = schema["title"], schema.get("additionalProperties") is False
    required = schema.get("required", ())
    return {
        field: example_of(described, components, name=f"{title}.{field}")
        for field, described in schema["properties"].items()
        if not is_request or field in required or f"{title}.{field}" in WORDS
    }


def _may_be(value: Any, schema: Schema, components: Mapping[str, Schema]) -> bool:
    """Return whether a value is of a schema's kind; a word may be for another field of the name."""
    if "$ref" in schema:
        return _may_be(value, _named(schema, components), components)
    if options := schema.get("anyOf"):
        return any(_may_be(value, option, components) for option in options)
    if "enum" in schema:
        return value in schema["enum"]
    if isinstance(value, list) and "items" in schema:
        return all(_may_be(one, schema["items"], components) for one in value)
    return type(value) in KINDS[schema["type"]] if "type" in schema else True


def _named(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    return components[schema["$ref"].removeprefix(REFERENCE)]
