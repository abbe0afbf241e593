"""MongoDB indexes, declared in ``Meta.indexes`` and created by migrations."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Index
from pymongo import ASCENDING, DESCENDING, HASHED, TEXT
from pymongo.operations import IndexModel

DIRECTIONS: dict[str, int | str] = {"-": DESCENDING, "#": HASHED, "~": TEXT}
MONGODB_NAMES = {
    "partial": "partialFilterExpression",
    "expire_after_seconds": "expireAfterSeconds",
}


class MongoIndex(Index):
    """An index on any path of a document.

    ``keys`` are column names or dotted paths, with ``-`` for descending, ``#`` for hashed, and
    ``~`` for the words of a text in any language; ``expire_after_seconds`` makes a TTL index.
    ``unique`` adds no filter, unlike Django's: documents without the field collide, because a
    missing field counts as null.
    """

    def __init__(
        self,
        *keys: str,
        name: str,
        unique: bool = False,
        sparse: bool = False,
        partial: Mapping[str, Any] | None = None,
        expire_after_seconds: int | None = None,
    ) -> None:
        # Django accepts only names of the model's fields, not dotted paths.
        super().__init__(fields=["unused"], name=name)
        self.fields: list[str] = []
        self.fields_orders: list[tuple[str, str]] = []
        self.keys = keys
        options = {"unique": unique, "sparse": sparse, "partial": dict(partial or {})}
        self.options: dict[str, Any] = {word: value for word, value in options.items() if value}
        if expire_after_seconds is not None:
            self.options["expire_after_seconds"] = expire_after_seconds

    def deconstruct(self) -> tuple[str, tuple[str, ...], dict[str, Any]]:
        """Return path, arguments, and keyword arguments for a migration."""
        return (
            f"{self.__class__.__module__}.{self.__class__.__qualname__}",
            self.keys,
            {"name": self.name, **self.options},
        )

    def clone(self) -> "MongoIndex":
        """Return an equal index."""
        return self.__class__(*self.keys, name=self.name, **self.options)

    def get_pymongo_index_model(
        self,
        model: Any,
        schema_editor: Any,
        field: Any = None,
        unique: bool = False,
        column_prefix: str = "",
    ) -> IndexModel:
        """Return pymongo's index; ``column_prefix`` is the path of an embedded model."""
        options = {MONGODB_NAMES.get(name, name): value for name, value in self.options.items()}
        keys: list[tuple[str, int | str]] = [
            (column_prefix + key.lstrip("-#~"), DIRECTIONS.get(key[0], ASCENDING))
            for key in self.keys
        ]
        if TEXT in dict(keys).values():
            # A language has words that its index leaves out.
            options["default_language"] = "none"
        return IndexModel(keys, name=self.name, **options)

    def __repr__(self) -> str:
        return f"<MongoIndex {self.name}: {', '.join(self.keys)} {self.options or ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MongoIndex) and self.deconstruct() == other.deconstruct()

    def __hash__(self) -> int:
        return hash((self.name, self.keys))


EXTERNAL_INDEXES: Mapping[str, tuple[MongoIndex, ...]] = {
    "django_admin_log": (
        MongoIndex("object_id", "-_id", name="log_object"),
        MongoIndex("object_repr", "-_id", name="log_name"),
        MongoIndex("part_of", "-_id", name="log_direct"),
        MongoIndex("user_id", "-_id", name="log_actor"),
    ),
}
"""Indexes on collections whose models are Django's, by collection. Our migrations create them."""
