"""Makes values of what is stored, which a newer version of the service may have written.

Both versions work on one database during an upgrade: docs/guides/upgrade.md. A field that this
version doesn't know is left out.
"""

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


def known_fields(kind: type, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return those stored fields that a dataclass has."""
    return {name: value for name, value in stored.items() if name in _names(kind)}


def known_member(stored: str, *, otherwise: E) -> E:
    """Return the member of a stored value, or another for one that this version doesn't know."""
    try:
        return type(otherwise)(stored)
    except ValueError:
        return otherwise


@cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def struct_from_stored(kind: type[T], stored: Any) -> T:
    """Return a structure of stored fields. Raises msgspec.ValidationError."""
    try:
        return msgspec.convert(stored, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_known(stored, inspect.type_info(kind)), kind)


def _known(stored: Any, kind: inspect.Type) -> Any:
    """Return a stored value without the fields that no structure at its place has."""
    if isinstance(kind, inspect.Metadata):
        return _known(stored, kind.type)
    if isinstance(kind, inspect.UnionType):
        # A union has at most one type for objects, and one for arrays.
        shape = inspect.StructType if isinstance(stored, dict) else inspect.CollectionType
        return next(
            (_known(stored, possible) for possible in _types(kind) if isinstance(possible, shape)),
            stored,
        )
    if isinstance(kind, inspect.StructType) and isinstance(stored, dict):
        known = {field.encode_name: field.type for field in kind.fields}
        return {name: _known(stored[name], known[name]) for name in stored.keys() & known.keys()}
    if isinstance(kind, inspect.CollectionType) and isinstance(stored, list):
        return [_known(item, kind.item_type) for item in stored]
    return stored


def _types(kind: inspect.UnionType) -> list[inspect.Type]:
    return [
        possible.type if isinstance(possible, inspect.Metadata) else possible
        for possible in kind.types
    ]
