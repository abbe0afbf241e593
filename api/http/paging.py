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
PARAMETERS = (
    LIMIT,
    OpenApiParameter("cursor", str, description="next or previous of another page."),
)
PARAMETER_NAMES = ("limit", "cursor")
_PAGE_SIZES = frozenset(str(size) for size in range(1, MAX_PAGE + 1))
_TIME, _ID = "t", "o"
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What part of a list is asked for."""

    limit: int
    cursor: Cursor | None


def parse_page_request(
    query: QueryDict,
    *,
    list_name: str,
    problems: ProblemCollector,
    extra_parameters: Collection[str] = (),
) -> PageRequest:
    """Return the part of the list ``of`` that is asked for; a bad limit is noted.

    Raises ApiError 400 for a parameter that is neither one of these nor of the ``extra_parameters``, for one
    given twice, and for a cursor that is not this list's.
    """
    reject_unknown(query, allowed={*PARAMETER_NAMES, *extra_parameters})
    return PageRequest(parse_limit(query, problems), parse_cursor(query, list_name=list_name))


def parse_limit(query: QueryDict, problems: ProblemCollector) -> int:
    """Return how much is asked for; a limit that cannot be is noted."""
    limit = query.get("limit", str(DEFAULT_PAGE))
    if limit not in _PAGE_SIZES:
        problems.add("/limit", "out_of_range", f"Expected a number from 1 to {MAX_PAGE}.")
        return DEFAULT_PAGE
    return int(limit)


def parse_cursor(query: QueryDict, *, list_name: str) -> Cursor | None:
    """Return the place in the list ``of`` that the cursor names; raises ApiError 400."""
    text = query.get("cursor")
    if text is None:
        return None
    try:
        backwards, *values = signing.loads(text, salt=_salt(list_name))
    except signing.BadSignature:
        raise bad_request("invalid_cursor", "This cursor is not one of ours.") from None
    return Cursor(tuple(_decode_value(value) for value in values), backwards=bool(backwards))


def parse_cursors(
    query: QueryDict, *, list_name: str, position_type: Callable[..., P]
) -> tuple[P | None, P | None]:
    """Return behind which position a page is asked for, and before which one, of a ``kind``.

    Raises ApiError 400.
    """
    cursor = parse_cursor(query, list_name=list_name)
    if cursor is None:
        return None, None
    position = position_type(*cursor.values)
    return (None, position) if cursor.backwards else (position, None)


def page_links(page: Page, *, list_name: str, order: Order) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages of the list ``of``."""
    if not page.documents:
        return {"next": None, "previous": None}
    first, last = page.documents[0], page.documents[-1]
    return {
        "next": document_cursor(last, list_name=list_name, order=order) if page.has_next else None,
        "previous": document_cursor(first, list_name=list_name, order=order, backwards=True)
        if page.has_previous
        else None,
    }


def document_cursor(
    document: Mapping[str, Any], *, list_name: str, order: Order, backwards: bool = False
) -> str:
    """Return the cursor to what follows a document in the list ``of``, or to what precedes it."""
    return encode_cursor(
        Cursor(tuple(document[name] for name, _ in order), backwards), list_name=list_name
    )


def encode_cursor(cursor: Cursor, *, list_name: str) -> str:
    """Return the cursor that names a place in the list ``of``."""
    values = [_encode_value(value) for value in cursor.values]
    return signing.dumps([int(cursor.backwards), *values], salt=_salt(list_name))


def _salt(list_name: str) -> str:
    """Return what tells the cursors of the list ``of`` from those of any other."""
    return f"{list_name}-cursor"


def _encode_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return [_TIME, round(value.timestamp() * 1000)]
    return [_ID, str(value)] if isinstance(value, ObjectId) else value


def _decode_value(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, inner = value
    return datetime.fromtimestamp(inner / 1000, UTC) if kind == _TIME else ObjectId(inner)
