"""The parameters ``limit`` and ``cursor`` of lists about people, and their cursors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from django.core import signing
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from notifyproject.db.paging import MAX_PAGE, Page, Place

from ..intake.problems import Collector
from .lists import DEFAULT_PAGE, check_names
from .problems import malformed

DESCRIBED = (
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE},
    ),
    OpenApiParameter("cursor", str, description="next or previous of another page."),
)
_PAGE_SIZES = frozenset(str(size) for size in range(1, MAX_PAGE + 1))
_MOMENT, _ID = "t", "o"


@dataclass(frozen=True, slots=True)
class Asked:
    """What part of a list is asked for."""

    limit: int
    place: Place | None


def parse(query: QueryDict, *, of: str, problems: Collector, others: Collection[str] = ()) -> Asked:
    """Return the part of the list ``of`` that is asked for; a bad limit is noted.

    Raises Problem 400 for a parameter that is neither one of these nor of the ``others``, for one
    given twice, and for a cursor that is not this list's.
    """
    check_names(query, allowed={"limit", "cursor", *others})
    limit = query.get("limit", str(DEFAULT_PAGE))
    if limit not in _PAGE_SIZES:
        problems.add("/limit", "out_of_range", f"Expected a number from 1 to {MAX_PAGE}.")
        limit = str(DEFAULT_PAGE)
    cursor = query.get("cursor")
    return Asked(int(limit), _place(cursor, of) if cursor is not None else None)


def cursors(page: Page, *, of: str, order: Sequence[tuple[str, int]]) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages of the list ``of``."""
    if not page.documents:
        return {"next": None, "previous": None}
    first, last = page.documents[0], page.documents[-1]
    return {
        "next": cursor(last, of=of, order=order) if page.has_next else None,
        "previous": _cursor(first, of, order, backwards=True) if page.has_previous else None,
    }


def cursor(document: Mapping[str, Any], *, of: str, order: Sequence[tuple[str, int]]) -> str:
    """Return the cursor to what follows a document in the list ``of``."""
    return _cursor(document, of, order, backwards=False)


def _cursor(
    document: Mapping[str, Any], of: str, order: Sequence[tuple[str, int]], *, backwards: bool
) -> str:
    values = [_written(document[name]) for name, _ in order]
    return signing.dumps([int(backwards), *values], salt=_salt(of))


def _place(text: str, of: str) -> Place:
    try:
        backwards, *values = signing.loads(text, salt=_salt(of))
    except signing.BadSignature:
        raise malformed("invalid_cursor", "This cursor is not one of ours.") from None
    return Place(tuple(_read(value) for value in values), backwards=bool(backwards))


def _salt(of: str) -> str:
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
