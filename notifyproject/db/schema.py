"""Schema editor: unique indexes that serve lookups, and fields that leave the documents alone.

The backend makes unique indexes partial on ``{"$type": "string"}``. MongoDB doesn't see that an
equality implies this filter, so lookups scan. ``{"$gte": ""}`` admits the same documents.

The backend writes a new field into every document. An optional field is written when its document
is, so that a migration neither takes minutes nor stores nulls.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from django_mongodb_backend.schema import DatabaseSchemaEditor as MongoSchemaEditor
from pymongo.operations import IndexModel

# The smallest value of each BSON type. A comparison in MongoDB matches values of the operand's type
# only; all numbers are one type.
LEAST_VALUE: dict[str, Any] = {
    "string": "",
    "objectId": ObjectId("0" * 24),
    "int": float("-inf"),
    "long": float("-inf"),
    "double": float("-inf"),
    "decimal": float("-inf"),
    "bool": False,
    "date": datetime.min.replace(tzinfo=UTC),
}


def lookup_friendly(partial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the partial filter with each ``$type`` replaced by an equivalent comparison."""
    comparisons = {
        field: {"$gte": LEAST_VALUE[condition["$type"]]}
        for field, condition in partial.items()
        if isinstance(condition, Mapping) and condition.keys() == {"$type"}
        if condition["$type"] in LEAST_VALUE
    }
    return {**partial, **comparisons}


class _LookupFriendlyIndex:
    """Stands in for a Django index while the backend converts it to a pymongo index."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def get_pymongo_index_model(self, *args: Any, **kwargs: Any) -> IndexModel | None:
        model = self._index.get_pymongo_index_model(*args, **kwargs)
        if isinstance(model, IndexModel) and model.document.get("unique"):
            partial = model.document.get("partialFilterExpression")
            if partial:
                model.document["partialFilterExpression"] = lookup_friendly(partial)
        return model


class DatabaseSchemaEditor(MongoSchemaEditor):
    """The backend's schema editor, with the changes that the module describes."""

    def add_field(self, model: Any, field: Any) -> None:
        """Add a field. One that is optional and has no index leaves the documents as they are."""
        is_optional = field.null and self.effective_default(field) is None
        if not is_optional or field.db_index or field.unique:
            super().add_field(model, field)

    def add_index(self, model: Any, index: Any, **kwargs: Any) -> None:
        """Create ``index`` on the model's collection."""
        super().add_index(model, _LookupFriendlyIndex(index), **kwargs)
