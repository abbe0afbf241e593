"""Finds every invalid field of a body that a structure rejects."""

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from notifications.validation import (
    MAX_PROBLEMS,
    FieldProblem,
    ProblemCollector,
    pointer_token,
)

from .field_hints import HintBudget, field_hint

UNKNOWN = "unknown_field"
ONE_OF = "ONE_OF"
"""The class variable with the fields of a structure of which one is required, in groups."""
_PATH = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)


def find_errors(
    value: Any, structure: Any, *, pointer: str = "", budget: HintBudget | None = None
) -> list[FieldProblem]:
    """Return all problems of a value that msgspec can't convert, with pointers below ``pointer``.

    This is slow. Call it only after msgspec, which stops at the first problem, has failed. The
    parts of one request share the ``budget`` of hints.
    """
    search = _Search(structure, budget or HintBudget())
    search.check(value, structure, pointer)
    return search.problems.problems


def missing_one(names: Sequence[str], pointer: str = "") -> tuple[str, str, str]:
    """Return the problem of a body that has none of these fields: pointer, code, and text."""
    listed = " or ".join(f"`{name}`" for name in names)
    return f"{pointer}/{names[0]}", "required", f"{listed} is required."


class _Search:
    """Collects the problems of one value."""

    def __init__(self, structure: Any, budget: HintBudget) -> None:
        self.problems = ProblemCollector()
        self._budget = budget
        is_object = isinstance(structure, type(msgspec.Struct))
        self._structure = structure
        self._outer = tuple(_fields(structure)[0]) if is_object else ()

    def check(self, value: Any, expected: Any, pointer: str) -> None:
        """Add the problems of a value and of its parts."""
        count = len(self.problems.problems)
        if count >= MAX_PROBLEMS:
            return
        try:
            msgspec.convert(value, expected, strict=True)
        except msgspec.ValidationError as error:
            for option in _options(expected):
                self._check_parts(value, option, pointer)
            if len(self.problems.problems) == count:
                self.problems.add(*_describe(str(error), pointer, expected=expected))

    def _check_parts(self, value: Any, expected: Any, pointer: str) -> None:
        """Check the fields of an object or the items of a list. Ignore other values."""
        if isinstance(value, list) and get_origin(expected) is list:
            for index, item in enumerate(value):
                self.check(item, get_args(expected)[0], f"{pointer}/{index}")
        elif isinstance(value, dict) and get_origin(expected) is dict:
            for key, item in value.items():
                self.check(item, get_args(expected)[1], f"{pointer}/{pointer_token(key)}")
        elif isinstance(value, dict) and isinstance(expected, type(msgspec.Struct)):
            self._check_structure(value, expected, pointer)

    def _check_structure(self, value: Mapping[str, Any], structure: Any, pointer: str) -> None:
        hints, required = _fields(structure)
        for name, item in value.items():
            if len(self.problems.problems) >= MAX_PROBLEMS:
                return
            place = f"{pointer}/{pointer_token(name)}"
            if name in hints:
                self.check(item, hints[name], place)
            else:
                self.problems.add(place, UNKNOWN, f"Unknown field.{self._hint(name, structure)}")
        for name in required:
            if name not in value:
                self.problems.add(f"{pointer}/{name}", "required", "The field is required.")
        for names in getattr(structure, ONE_OF, ()):
            if not value.keys() & set(names):
                self.problems.add(*missing_one(names, pointer))

    def _hint(self, name: str, structure: Any) -> str:
        if not self._budget.take():
            return ""
        hints, _ = _fields(structure)
        outer = () if structure is self._structure else self._outer
        return field_hint(name, known=tuple(hints), inner=_inner_names(structure), outer=outer)


@lru_cache
def _fields(structure: Any) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the types of a structure's fields by name, and the names of the required ones."""
    hints = get_type_hints(structure, include_extras=True)
    fields = msgspec.structs.fields(structure)
    names = {field.encode_name: hints[field.name] for field in fields}
    return names, tuple(field.encode_name for field in fields if field.required)


@lru_cache
def _inner_names(structure: Any) -> tuple[str, ...]:
    """Return the fields of inner structures, such as ``recipient.email``."""
    return tuple(
        f"{name}.{inner}"
        for name, hint in _fields(structure)[0].items()
        for option in _options(hint)
        if isinstance(option, type(msgspec.Struct))
        for inner in _fields(option)[0]
    )


def _kind(option: Any) -> str:
    """Return what a type takes, in the words of JSON."""
    origin = get_origin(option) or option
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in get_args(option))
    if origin is list:
        return "a list in brackets"
    if origin is dict or isinstance(option, type(msgspec.Struct)):
        return "an object"
    return {str: "a text", bool: "true or false"}.get(origin, "a number")


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


def _describe(message: str, pointer: str, *, expected: Any) -> tuple[str, str, str]:
    match = _PATH.fullmatch(message)
    text, path = (match[1], match[2] or "") if match else (message, "")
    inner = re.sub(r"\[(\d+)\]", r"/\1", path.replace(".", "/"))
    if text.startswith("Invalid enum value"):  # msgspec's text repeats the value.
        options = [option for option in _options(expected) if option is not type(None)]
        names = list(dict.fromkeys(_kind(option) for option in options))
        return pointer + inner, "wrong_type", f"Expected {' or '.join(names)}."
    code = "out_of_range" if "length" in text or "int` " in text else "wrong_type"
    return pointer + inner, code, f"{text}."
