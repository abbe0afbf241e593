"""Where a body differs from the structure that the API describes, with the API's codes. Pure."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from .document import Document, Schema
from .rules.validation import FieldProblem, pointer_token

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_NAMES = {
    "object": "an object",
    "array": "a list in brackets",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
}


def find_problems(
    value: Any, schema: Schema, document: Document, *, pointer: str = ""
) -> Iterator[FieldProblem]:
    """Yield where a value differs from a schema of the API.

    Lists of values that the API also takes by other names, such as channels, aren't compared: each
    has a check of its own, as in the API.
    """
    schema = document.resolved(schema)
    if "anyOf" in schema:
        yield from _find_in_union(value, schema["anyOf"], document, pointer)
    elif "type" not in schema:
        if "enum" in schema and value not in schema["enum"]:
            yield FieldProblem(pointer, "wrong_type", f"Expected {_kinds([schema])}.")
    elif not _is_of(value, schema["type"]):
        yield FieldProblem(pointer, "wrong_type", f"Expected {_kinds([schema])}.")
    elif isinstance(value, dict):
        inner = list(_find_in_object(value, schema, document, pointer))
        yield from inner or _check_size(len(value), schema, "Properties", pointer)
    elif isinstance(value, list):
        inner = [
            problem
            for index, item in enumerate(value)
            for problem in find_problems(
                item, schema.get("items", {}), document, pointer=f"{pointer}/{index}"
            )
        ]
        yield from inner or _check_size(len(value), schema, "Items", pointer)
    elif isinstance(value, str):
        yield from _check_size(len(value), schema, "Length", pointer)
        if (pattern := schema.get("pattern")) and not _pattern(pattern).search(value):
            yield FieldProblem(pointer, "wrong_type", f"Expected a text that matches {pattern}.")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _check_range(value, schema, pointer)


def _find_in_union(
    value: Any, options: list[Schema], document: Document, pointer: str
) -> Iterator[FieldProblem]:
    found = [list(find_problems(value, one, document, pointer=pointer)) for one in options]
    if not all(found):
        return
    # The problems within the option that is meant say more than that none fits.
    inner = [
        problem
        for problems in found
        for problem in problems
        if problem.pointer != pointer or problem.code != "wrong_type"
    ]
    if inner:
        yield from inner
        return
    wanted = [document.resolved(one) for one in options if one.get("type") != "null"]
    yield FieldProblem(pointer, "wrong_type", f"Expected {_kinds(wanted)}.")


def _find_in_object(
    value: Mapping[str, Any], schema: Schema, document: Document, pointer: str
) -> Iterator[FieldProblem]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        place = f"{pointer}/{pointer_token(name)}"
        if name in properties:
            yield from find_problems(item, properties[name], document, pointer=place)
        elif others is False:
            yield FieldProblem(place, "unknown_field", "Unknown field.")
        elif isinstance(others, Mapping):
            yield from find_problems(item, others, document, pointer=place)
    for name in schema.get("required", ()):
        if name not in value:
            yield FieldProblem(f"{pointer}/{name}", "required", "The field is required.")


def _check_size(size: int, schema: Schema, of: str, pointer: str) -> Iterator[FieldProblem]:
    least, most = schema.get(f"min{of}", 0), schema.get(f"max{of}")
    if size < least:
        yield FieldProblem(pointer, "out_of_range", f"Expected a length of at least {least}.")
    if most is not None and size > most:
        yield FieldProblem(pointer, "out_of_range", f"Expected a length of at most {most}.")


def _check_range(value: float, schema: Schema, pointer: str) -> Iterator[FieldProblem]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and value < least:
        yield FieldProblem(pointer, "out_of_range", f"Expected at least {least}.")
    if most is not None and value > most:
        yield FieldProblem(pointer, "out_of_range", f"Expected at most {most}.")


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS[kind])


def _kinds(schemas: list[Schema]) -> str:
    names = [
        " or ".join(f"`{one}`" for one in schema["enum"])
        if "enum" in schema and "type" not in schema
        else _NAMES.get(schema.get("type", ""), "a number")
        for schema in schemas
    ]
    return " or ".join(dict.fromkeys(names))


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII)
