"""The parameters ``limit`` and ``cursor`` of lists, and the cursors to a page's neighbours."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from bson import ObjectId
from django.core import signing
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from notifications.validation import ProblemCollector
from notifyproject.db.paging import MAX_PAGE, Cursor, Order, Page

from .problems import bad_request
from .query import reject_unknown

DEFAULT_PAGE = 20
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE}
)
DESCRIBED = (
    LIMIT,
    OpenApiParameter("cursor", str, description="next or previous of another page."),
)
PARAMETERS = ("limit", "cursor")
_PAGE_SIZES = frozenset(str(size) for size in range(1, MAX_PAGE + 1))
_MOMENT, _ID = "t", "o"
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What part of a list is asked for."""

    limit: int
    place: Cursor | None


def parse(
    query: QueryDict, *, of: str, problems: ProblemCollector, others: Collection[str] = ()
) -> PageRequest:
    """Return the part of the list ``of`` that is asked for; a bad limit is noted.

    Raises Problem 400 for a parameter that is neither one of these nor of the ``others``, for one
    given twice, and for a cursor that is not this list's.
    """
    reject_unknown(query, allowed={*PARAMETERS, *others})
    return PageRequest(limit_of(query, problems), parse_cursor(query, of=of))


def limit_of(query: QueryDict, problems: ProblemCollector) -> int:
    """Return how much is asked for; a limit that cannot be is noted."""
    limit = query.get("limit", str(DEFAULT_PAGE))
    if limit not in _PAGE_SIZES:
        problems.add("/limit", "out_of_range", f"Expected a number from 1 to {MAX_PAGE}.")
        return DEFAULT_PAGE
    return int(limit)


def parse_cursor(query: QueryDict, *, of: str) -> Cursor | None:
    """Return the place in the list ``of`` that the cursor names; raises Problem 400."""
    text = query.get("cursor")
    if text is None:
        return None
    try:
        backwards, *values = signing.loads(text, salt=salt_of(of))
    except signing.BadSignature:
        raise bad_request("invalid_cursor", "This cursor is not one of ours.") from None
    return Cursor(tuple(_read(value) for value in values), backwards=bool(backwards))


def parse_cursors(
    query: QueryDict, *, of: str, kind: Callable[..., P]
) -> tuple[P | None, P | None]:
    """Return behind which position a page is asked for, and before which one, of a ``kind``.

    Raises Problem 400.
    """
    place = parse_cursor(query, of=of)
    if place is None:
        return None, None
    position = kind(*place.values)
    return (None, position) if place.backwards else (position, None)


def page_links(page: Page, *, of: str, order: Order) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages of the list ``of``."""
    if not page.documents:
        return {"next": None, "previous": None}
    first, last = page.documents[0], page.documents[-1]
    return {
        "next": cursor(last, of=of, order=order) if page.has_next else None,
        "previous": cursor(first, of=of, order=order, backwards=True)
        if page.has_previous
        else None,
    }


def cursor(document: Mapping[str, Any], *, of: str, order: Order, backwards: bool = False) -> str:
    """Return the cursor to what follows a document in the list ``of``, or to what precedes it."""
    return cursor_to(Cursor(tuple(document[name] for name, _ in order), backwards), of=of)


def cursor_to(place: Cursor, *, of: str) -> str:
    """Return the cursor that names a place in the list ``of``."""
    values = [_written(value) for value in place.values]
    return signing.dumps([int(place.backwards), *values], salt=salt_of(of))


def salt_of(of: str) -> str:
    """Return what tells the cursors of the list ``of`` from those of any other."""
    return f"{of}-cursor"


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return [_MOMENT, round(value.timestamp() * 1000)]
    return [_ID, str(value)] if isinstance(value, ObjectId) else value


def _read(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, inner = value
    return datetime.fromtimestamp(inner / 1000, UTC) if kind == _MOMENT else ObjectId(inner)
