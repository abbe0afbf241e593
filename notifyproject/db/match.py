"""Raw MongoDB filters in querysets: the ORM's own ``$expr`` uses no index."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import NotSupportedError
from django.db.models import QuerySet
from django.db.models.lookups import Lookup


class Match(Lookup):
    """A raw MongoDB filter, and its index: ``queryset.filter(Match({"delivery": {…}}))``."""

    contains_aggregate = False
    contains_over_clause = False

    def __init__(self, match: Mapping[str, Any], *, index: str | None = None) -> None:
        # Django's lookups compare two sides. A Match has none.
        self.match, self.index = dict(match), index
        self.lhs = self.rhs = None
        self.bilateral_transforms: list[Any] = []

    def resolve_expression(self, *_args: Any, **_options: Any) -> "Match":
        """Return itself: there is no field name to resolve."""
        return self

    def relabeled_clone(self, _relabels: Any) -> "Match":
        """Return itself: there is no table name."""
        return self

    def get_source_expressions(self) -> list[Any]:
        """Return no expressions."""
        return []

    def set_source_expressions(self, _expressions: Iterable[Any]) -> None:
        """Do nothing; see :meth:`get_source_expressions`."""

    def as_mql(self, _compiler: Any, _connection: Any, as_expr: bool = False) -> dict[str, Any]:
        """Return the filter for ``$match``."""
        if as_expr:
            raise NotSupportedError("Use Match in filter() or exclude() only.")
        return self.match

    @property
    def identity(self) -> tuple[Any, ...]:
        """Key for equality."""
        return (type(self), repr(self.match), self.index)


def index_of(where: Any) -> str | None:
    """Return the index hint of a query's conditions, or None."""
    if isinstance(where, Match):
        return where.index
    found = (index_of(child) for child in getattr(where, "children", ()))
    return next((index for index in found if index is not None), None)


def match_of(queryset: QuerySet) -> dict[str, Any]:
    """Return the MongoDB filter of a queryset. Raises EmptyResultSet if it can have no rows."""
    compiler = queryset.order_by().query.get_compiler(queryset.db)
    compiler.pre_sql_setup()
    match: dict[str, Any] = compiler.build_query().match_mql
    return match
