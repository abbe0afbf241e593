"""Query compilers whose pipelines let MongoDB sort by an index.

The pipeline is a private interface: the backend is pinned to 5.2.x, and a test asserts the plans.
"""

from typing import Any

from django_mongodb_backend import compiler
from django_mongodb_backend.query import MongoQuery, wrap_database_errors

from .match import index_of

Stage = dict[str, Any]


class IndexedQuery(MongoQuery):
    """A query with ``$sort`` at a position where an index serves it, and an optional index hint."""

    extra_fields: dict[str, Any] | None

    @wrap_database_errors
    def get_cursor(self) -> Any:
        """Run the query with the index hint of its conditions."""
        index = index_of(self.query.where)
        session = self.compiler.connection.session
        return self.compiler.collection.aggregate(
            self.get_pipeline(), session=session, **({"hint": index} if index else {})
        )

    def get_pipeline(self) -> list[Stage]:
        """Return the pipeline, ``$sort`` before ``$project`` and without no-op ``$addFields``."""
        if self.extra_fields:
            # order_by copies each plain column onto itself. For MongoDB the copy is a new field,
            # which no index covers.
            self.extra_fields = {
                name: value for name, value in self.extra_fields.items() if value != f"${name}"
            }
        return _sort_before_project(super().get_pipeline())


def _sort_before_project(pipeline: list[Stage]) -> list[Stage]:
    """Swap each ``$project`` of plain columns with the ``$sort`` after it: they commute."""
    for i in range(1, len(pipeline)):
        project, sort = pipeline[i - 1].get("$project"), pipeline[i].get("$sort")
        if project and sort and all(project.get(key, key == "_id") == 1 for key in sort):
            pipeline[i - 1], pipeline[i] = pipeline[i], pipeline[i - 1]
    return pipeline


class _Indexed:
    query_class = IndexedQuery


class SQLCompiler(_Indexed, compiler.SQLCompiler):
    """See :class:`IndexedQuery`."""


class SQLInsertCompiler(_Indexed, compiler.SQLInsertCompiler):
    """See :class:`IndexedQuery`."""


class SQLDeleteCompiler(_Indexed, compiler.SQLDeleteCompiler):
    """See :class:`IndexedQuery`."""


class SQLUpdateCompiler(_Indexed, compiler.SQLUpdateCompiler):
    """See :class:`IndexedQuery`."""


class SQLAggregateCompiler(_Indexed, compiler.SQLAggregateCompiler):
    """See :class:`IndexedQuery`."""
