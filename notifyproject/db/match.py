"""A raw MongoDB match in a queryset.

The ORM turns conditions on the elements of an embedded array into ``$expr``, which no index serves,
and has no words for ``$elemMatch``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import NotSupportedError
from django.db.models import QuerySet
from django.db.models.lookups import Lookup


class Match(Lookup):
    """A condition in MongoDB's own words: ``queryset.filter(Match({"delivery": {…}}))``.

    The paths are those of the documents. It can be negated, and combined with other conditions.
    With an ``index`` that is the one by which MongoDB reads, whichever it would choose by itself.
    """

    contains_aggregate = False
    contains_over_clause = False

    def __init__(self, match: Mapping[str, Any], *, index: str | None = None) -> None:
        # Django's lookups compare two sides; this one is whole as it is.
        self.match, self.index = dict(match), index
        self.lhs = self.rhs = None
        self.bilateral_transforms: list[Any] = []

    def resolve_expression(self, *_args: Any, **_options: Any) -> "Match":
        """Return itself: there is no name of a field to look up."""
        return self

    def relabeled_clone(self, _relabels: Any) -> "Match":
        """Return itself: it names no table."""
        return self

    def get_source_expressions(self) -> list[Any]:
        """Return nothing: it is made of no other expression."""
        return []

    def set_source_expressions(self, _expressions: Iterable[Any]) -> None:
        """Do nothing; see :meth:`get_source_expressions`."""

    def as_mql(self, _compiler: Any, _connection: Any, as_expr: bool = False) -> dict[str, Any]:
        """Return the condition as it stands in ``$match``."""
        if as_expr:
            raise NotSupportedError("A Match stands in filter() or exclude() only.")
        return self.match

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes two of them equal."""
        return (type(self), repr(self.match), self.index)


def index_of(where: Any) -> str | None:
    """Return the index that one of the conditions of a query names; None if none does."""
    if isinstance(where, Match):
        return where.index
    found = (index_of(child) for child in getattr(where, "children", ()))
    return next((index for index in found if index is not None), None)


def match_of(queryset: QuerySet) -> dict[str, Any]:
    """Return what holds for a queryset's rows, in MongoDB's own words; nothing if all are in it.

    Raises EmptyResultSet if no row can be.
    """
    compiler = queryset.order_by().query.get_compiler(queryset.db)
    compiler.pre_sql_setup()
    match: dict[str, Any] = compiler.build_query().match_mql
    return match
