"""Compares stored documents with the types by which the code reads them."""

import builtins
import importlib
import types
import typing
from collections import abc
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from django.apps import apps

from notifyproject.db.collections import Documents, collection
from tests.support.source import SERVICE


@cache
def handles() -> Mapping[str, Documents[Any]]:
    """Return the handle of each collection by its name."""
    modules = {
        model.__module__.replace(".models", ".documents")
        for model in apps.get_models()
        if model.__module__.partition(".")[0] in SERVICE
    }
    return {
        value.name: value
        for module in modules
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, Documents)
    }


def mismatches(names: abc.Iterable[str]) -> set[str]:
    """Return where the documents of these collections differ from their types."""
    return {
        mismatch
        for name in handles().keys() & set(names)
        for document in collection(name).find()
        for mismatch in _mismatches(document, handles()[name].document, name)
    }


def _mismatches(value: Any, kind: Any, place: str) -> Iterator[str]:
    arguments = get_args(kind)
    match get_origin(kind) or kind, value:
        case typing.Any, _:
            return
        case ((types.UnionType | typing.Union), _):
            tried = [list(_mismatches(value, option, place)) for option in arguments]
            yield from min(tried, key=len)
        case builtins.list, list():
            for inner in value:
                yield from _mismatches(inner, arguments[0], f"{place}[]")
        case ((builtins.dict | abc.Mapping), dict()):
            for inner in value.values():
                yield from _mismatches(inner, arguments[1], f"{place}.*")
        case _ if is_typeddict(kind) and isinstance(value, dict):
            yield from _mismatched_fields(value, kind, place)
        case _ if not _is_a(value, kind):
            yield f"{place} is a {type(value).__name__}, not a {kind}"


def _mismatched_fields(document: Mapping[str, Any], kind: Any, place: str) -> Iterator[str]:
    hints = get_type_hints(kind)
    yield from (f"{place}.{name} is missing" for name in kind.__required_keys__ - document.keys())
    yield from (f"{place}.{name} is unknown" for name in document.keys() - hints.keys())
    for name in document.keys() & hints.keys():
        yield from _mismatches(document[name], hints[name], f"{place}.{name}")


def _is_a(value: Any, kind: Any) -> bool:
    if is_typeddict(kind) or isinstance(value, bool):
        return kind is bool
    return isinstance(value, float | int if kind is float else kind)
