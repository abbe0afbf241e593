"""Finds every invalid field of a body that a structure rejects."""

import re
import types
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from notifications.validation import (
    MAX_PROBLEMS,
    FieldProblem,
    ProblemCollector,
    pointer_token,
    suggest,
)

UNKNOWN = "unknown_field"
MAX_SUGGESTIONS = 10  # Maximum per body. Each takes 0.1 ms
_PATH = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)


def find_errors(value: Any, structure: Any, *, pointer: str = "") -> list[FieldProblem]:
    """Return all problems of a value that msgspec can't convert, with pointers below ``pointer``.

    This is slow. Call it only after msgspec, which stops at the first problem, has failed.
    """
    problems = ProblemCollector()
    _check(value, structure, pointer, problems)
    return problems.problems


def _check(value: Any, expected: Any, pointer: str, problems: ProblemCollector) -> None:
    count = len(problems.problems)
    if count >= MAX_PROBLEMS:
        return
    try:
        msgspec.convert(value, expected, strict=True)
    except msgspec.ValidationError as error:
        for option in _options(expected):
            _check_parts(value, option, pointer, problems)
        if len(problems.problems) == count:
            problems.add(*_describe(str(error), pointer))


def _check_parts(value: Any, expected: Any, pointer: str, problems: ProblemCollector) -> None:
    """Check the fields of an object or the items of a list. Ignore other values."""
    if isinstance(value, list) and get_origin(expected) is list:
        for index, item in enumerate(value):
            _check(item, get_args(expected)[0], f"{pointer}/{index}", problems)
    elif isinstance(value, dict) and get_origin(expected) is dict:
        for key, item in value.items():
            _check(item, get_args(expected)[1], f"{pointer}/{pointer_token(key)}", problems)
    elif isinstance(value, dict) and isinstance(expected, type(msgspec.Struct)):
        _check_structure(value, expected, pointer, problems)


def _check_structure(
    value: Mapping[str, Any], structure: Any, pointer: str, problems: ProblemCollector
) -> None:
    hints, required = _fields(structure)
    for name, item in value.items():
        place = f"{pointer}/{pointer_token(name)}"
        if name in hints:
            _check(item, hints[name], place, problems)
        else:
            unknown = sum(one.code == UNKNOWN for one in problems.problems)
            has_suggestion = unknown < MAX_SUGGESTIONS
            similar = suggest(name, *hints, inner=_inner_names(hints)) if has_suggestion else ""
            problems.add(place, UNKNOWN, f"Unknown field.{similar}")
    for name in required:
        if name not in value:
            problems.add(f"{pointer}/{name}", "required", "The field is required.")


@lru_cache
def _fields(structure: Any) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the types of a structure's fields by name, and the names of the required ones."""
    hints = get_type_hints(structure, include_extras=True)
    fields = msgspec.structs.fields(structure)
    names = {field.encode_name: hints[field.name] for field in fields}
    return names, tuple(field.encode_name for field in fields if field.required)


def _inner_names(hints: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of inner structures, such as ``recipient.email``."""
    for name, hint in hints.items():
        for option in _options(hint):
            if isinstance(option, type(msgspec.Struct)):
                yield from (f"{name}.{inner}" for inner in _fields(option)[0])


def _options(expected: Any) -> Iterator[Any]:
    """Yield the types of a union, or a single type, without annotations."""
    origin = get_origin(expected)
    if origin is Annotated:
        yield from _options(get_args(expected)[0])
    elif origin in (Union, types.UnionType):
        for option in get_args(expected):
            yield from _options(option)
    else:
        yield expected


def _describe(message: str, pointer: str) -> tuple[str, str, str]:
    match = _PATH.fullmatch(message)
    text, path = (match[1], match[2] or "") if match else (message, "")
    inner = re.sub(r"\[(\d+)\]", r"/\1", path.replace(".", "/"))
    if text.startswith("Invalid enum value"):  # msgspec's text repeats the value.
        return pointer + inner, "wrong_type", "Expected another type or value."
    code = "out_of_range" if "length" in text or "int` " in text else "wrong_type"
    return pointer + inner, code, f"{text}."
