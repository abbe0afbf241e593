"""The list of a template's versions: its parameters, its pages and their cursors."""

from dataclasses import dataclass

from django.core import signing
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from .. import templates
from ..intake.problems import FieldProblem, InvalidRequest
from ..templates import SHIPPED, Version
from .lists import DEFAULT_PAGE, check_names
from .problems import malformed

CURSOR_SALT = "template-cursor"
MAX_PAGE = 100
PARAMETERS = ("limit", "cursor")
DESCRIBED = (
    OpenApiParameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE}
    ),
    OpenApiParameter("cursor", str, description="next or previous of another page."),
)
_SIZES = frozenset(str(size) for size in range(1, MAX_PAGE + 1))


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
    check_names(query, allowed=PARAMETERS)
    limit = query.get("limit", str(DEFAULT_PAGE))
    if limit not in _SIZES:
        detail = f"Expected a number from 1 to {MAX_PAGE}."
        raise InvalidRequest([FieldProblem("/limit", "out_of_range", detail)])
    below, above = _position(query.get("cursor"))
    return Asked(limit=int(limit), below=below, above=above)


def page(type_slug: str, asked: Asked) -> Page:
    """Return a page of a type's versions; the release's own stands behind the stored ones."""
    found = templates.listing(
        type_slug=type_slug, limit=asked.limit + 1, below=asked.below, above=asked.above
    )
    shipped = None
    if asked.above is None and asked.below != SHIPPED:
        shipped = templates.get(type_slug=type_slug, number=SHIPPED)
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
        next=_cursor("below", rows[-1]) if rows and has_next else None,
        previous=_cursor("above", rows[0]) if rows and has_previous else None,
    )


def _cursor(direction: str, version: Version) -> str:
    return signing.dumps([direction, version.number], salt=CURSOR_SALT)


def _position(cursor: str | None) -> tuple[int | None, int | None]:
    if cursor is None:
        return None, None
    try:
        direction, number = signing.loads(cursor, salt=CURSOR_SALT)
    except signing.BadSignature:
        raise malformed("invalid_cursor", "This cursor is not one of ours.") from None
    return (number, None) if direction == "below" else (None, number)
