"""Compares the indexes that models declare with those of the collections."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.apps import apps
from django.db import connection, models
from pymongo import TEXT
from pymongo.operations import IndexModel

from .collections import database
from .indexes import EXTERNAL_INDEXES
from .schema import DatabaseSchemaEditor

OPTIONS = (
    "key",
    "unique",
    "sparse",
    "expireAfterSeconds",
    "partialFilterExpression",
    "default_language",
)
ID_INDEX = "_id_"


class Problem(StrEnum):
    """Difference between an index and its declaration."""

    MISSING = "missing"
    UNDECLARED = "not declared"
    DIFFERENT = "different from its declaration"


@dataclass(frozen=True, slots=True)
class Drift:
    """An index that differs from its declaration."""

    collection: str
    name: str
    problem: Problem


class _RecordingEditor(DatabaseSchemaEditor):
    """A schema editor, also used as its collections, that only records indexes."""

    def __init__(self) -> None:
        super().__init__(connection)
        self.indexes: list[IndexModel] = []

    def get_collection(self, _name: str) -> "_RecordingEditor":
        return self

    def create_indexes(self, indexes: Iterable[IndexModel]) -> None:
        self.indexes += indexes


def declared_indexes(model: type[models.Model]) -> dict[str, IndexModel]:
    """Return a model's indexes by name, also external ones and those of Django for its fields."""
    editor = _RecordingEditor()
    editor._create_model_indexes(model)
    for index in EXTERNAL_INDEXES.get(model._meta.db_table, ()):
        editor.indexes.append(index.get_pymongo_index_model(model, editor))
    return {index.document["name"]: index for index in editor.indexes}


def find_drift() -> list[Drift]:
    """Return all differences, sorted by collection and name."""
    found = (
        Drift(name, index, problem)
        for name, indexes in _by_collection().items()
        for index, problem in _compare(indexes, database()[name].index_information())
    )
    return sorted(found, key=lambda drift: (drift.collection, drift.name))


def create_missing() -> list[Drift]:
    """Create missing indexes and return them. No index is dropped."""
    missing = [drift for drift in find_drift() if drift.problem is Problem.MISSING]
    indexes = _by_collection()
    for drift in missing:
        database()[drift.collection].create_indexes([indexes[drift.collection][drift.name]])
    return missing


def _by_collection() -> dict[str, dict[str, IndexModel]]:
    return {
        model._meta.db_table: declared_indexes(model)
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy
    }


def _compare(
    wanted: Mapping[str, IndexModel], existing: Mapping[str, Mapping[str, Any]]
) -> Iterable[tuple[str, Problem]]:
    for name in wanted.keys() - existing.keys():
        yield name, Problem.MISSING
    for name in existing.keys() - wanted.keys() - {ID_INDEX}:
        if not _is_hashed(existing[name]):
            yield name, Problem.UNDECLARED
    for name in wanted.keys() & existing.keys():
        if _definition(wanted[name].document) != _definition(existing[name]):
            yield name, Problem.DIFFERENT


def _is_hashed(index: Mapping[str, Any]) -> bool:
    """Return whether an index serves a hashed shard key, which no model declares."""
    return any(direction == "hashed" for _, direction in index["key"])


def _definition(index: Mapping[str, Any]) -> dict[str, Any]:
    definition = {name: index[name] for name in OPTIONS if index.get(name)}
    if "expireAfterSeconds" in index:
        definition["expireAfterSeconds"] = index["expireAfterSeconds"]
    keys = index["key"].items() if isinstance(index["key"], Mapping) else index["key"]
    if "weights" in index:
        # MongoDB lists a text index under keys of its own.
        keys = [(name, TEXT) for name in index["weights"]]
    return definition | {"key": [tuple(key) for key in keys]}
