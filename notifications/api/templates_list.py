"""The list of a template's versions: its parameters, its pages and their cursors."""

from dataclasses import dataclass

from django.http import QueryDict

from notifyproject.db.paging import Cursor

from ..content import templates
from ..content.templates import SHIPPED, Version
from ..validation import ProblemCollector
from . import paging
from .parameters import check_names

LIST = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What part of the list is asked for."""

    limit: int
    below: int | None = None
    above: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of the list, with the cursors to its neighbours."""

    versions: list[Version]
    next: str | None
    previous: str | None


def parse(query: QueryDict) -> Asked:
    """Return the checked parameters.

    Raises Problem 400 for a parameter nobody knows, one given twice, or a cursor that is not ours;
    InvalidRequest for a page size that cannot be.
    """
    check_names(query, allowed=paging.PARAMETERS)
    problems = ProblemCollector()
    limit = paging.limit_of(query, problems)
    problems.raise_if_any()
    below, above = paging.sides_of(query, of=LIST, kind=int)
    return Asked(limit=limit, below=below, above=above)


def page(type_slug: str, asked: Asked) -> Page:
    """Return a page of a type's versions; the release's own stands behind the stored ones."""
    found = templates.list_versions(
        type_slug=type_slug, limit=asked.limit + 1, below=asked.below, above=asked.above
    )
    shipped = None
    if asked.above is None and asked.below != SHIPPED:
        shipped = templates.get_version(type_slug=type_slug, number=SHIPPED)
    rows = [*found, shipped] if shipped and len(found) <= asked.limit else found
    is_more = len(rows) > asked.limit
    if asked.above is not None:
        # Read upwards: what is too much is the newest.
        rows = rows[-asked.limit :]
        return _page(rows, has_next=bool(rows), has_previous=is_more)
    return _page(rows[: asked.limit], has_next=is_more, has_previous=asked.below is not None)


def _page(rows: list[Version], *, has_next: bool, has_previous: bool) -> Page:
    return Page(
        versions=rows,
        next=_cursor(rows[-1]) if rows and has_next else None,
        previous=_cursor(rows[0], backwards=True) if rows and has_previous else None,
    )


def _cursor(version: Version, *, backwards: bool = False) -> str:
    return paging.cursor_to(Cursor((version.number,), backwards), of=LIST)
