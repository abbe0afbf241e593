"""Finds the invalid values of a body whose structure is wrong elsewhere."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from pymongo.errors import PyMongoError

from notifications.validation import (
    FieldProblem,
    InvalidRequestError,
    ProblemCollector,
    pointer_name,
)

from .problems import ApiError

T = TypeVar("T")
_CONSEQUENCES = frozenset({"no_address", "required", "missing_variable"})
_FILLERS: tuple[Any, ...] = ("", [], {}, 0, 1, 3_600, False, None, "x")
"""Values for a missing field: one that its type takes. What a check says of it is left out."""


def further_problems(
    value: Mapping[str, Any],
    errors: Sequence[FieldProblem],
    structure: type[T],
    check: Callable[[T], object],
) -> list[FieldProblem]:
    """Return the problems that ``check`` finds in a body without the fields in ``errors``.

    Those that may follow from a missing field are left out: at or around it.
    """
    # A field of another name may hold what seems to be missing.
    is_renamed = any(error.code in ("unknown_field", "required") for error in errors)
    partial = copy.deepcopy(dict(value))
    places = {error.pointer for error in errors}
    for pointer in sorted(places, reverse=True):
        _remove(partial, pointer)
    body = _converted(partial, structure)
    if body is None:
        return []
    try:
        check(body)
    except PyMongoError:
        return []
    except (InvalidRequestError, ApiError) as refused:
        found = refused.problems if isinstance(refused, InvalidRequestError) else refused.errors
        collected = ProblemCollector()
        for error in found:
            follows = is_renamed and error.code in _CONSEQUENCES
            if not follows and not any(_is_near(error.pointer, place) for place in places):
                collected.add(error.pointer, error.code, error.detail)
        return collected.problems
    return []


def _remove(body: Any, pointer: str) -> None:
    """Remove the field at a pointer, and a list with an invalid item."""
    *path, last = [pointer_name(token) for token in pointer.split("/")[1:]] or [""]
    parents: list[tuple[Any, str]] = []
    holder = body
    for name in path:
        parents.append((holder, name))
        holder = _inside(holder, name)
    if isinstance(holder, dict):
        holder.pop(last, None)
        return
    for owner, name in reversed(parents):
        if isinstance(owner, dict):
            owner.pop(name, None)
            return


def _inside(holder: Any, name: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(name)
    if isinstance(holder, list) and name.isdigit() and int(name) < len(holder):
        return holder[int(name)]
    return None


def _converted(body: Mapping[str, Any], structure: type[T]) -> T | None:
    """Return a body as a structure, with a value for each missing field; None if there is none."""
    for filled in _filled(body, structure):
        try:
            return msgspec.convert(filled, structure, strict=True)
        except msgspec.ValidationError:
            continue
    return None


def _filled(body: Mapping[str, Any], structure: Any) -> Iterator[Mapping[str, Any]]:
    fields = msgspec.structs.fields(structure)
    missing = [field for field in fields if field.required and field.encode_name not in body]
    filled = dict(body)
    for field in missing:
        for filler in _FILLERS:
            try:
                msgspec.convert(filler, field.type, strict=True)
            except msgspec.ValidationError:
                continue
            filled[field.encode_name] = filler
            break
    yield filled


def _is_near(pointer: str, place: str) -> bool:
    """Return whether one of two pointers is at, in, or around the other."""
    return f"{pointer}/".startswith(f"{place}/") or f"{place}/".startswith(f"{pointer}/")
