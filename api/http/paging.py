"""The parameters ``limit`` and ``cursor`` of lists, and the links to neighboring pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from notifications.validation import FieldProblem, ProblemCollector
from notifyproject.db.paging import (
    MAX_PAGE,
    Cursor,
    InvalidCursorError,
    Order,
    Page,
    cursor_of_document,
    decode_cursor,
    encode_cursor,
)

from .problems import INVALID_CURSOR

DEFAULT_PAGE = 20
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE}
)
CURSOR = OpenApiParameter("cursor", str, description="`next` or `previous` of another page.")
PARAMETERS = (LIMIT, CURSOR)
NextCursor = Annotated[
    str | None, Meta(examples=["WyJhZnRlciIsMTc5NjExNTYwMF0:1vCkEz:c2lnbmF0dXJl"])
]
_PAGE_SIZES = frozenset(str(size) for size in range(1, MAX_PAGE + 1))
V = TypeVar("V")


class PageView(msgspec.Struct, Generic[V], kw_only=True, frozen=True):
    """A page of a list."""

    results: list[V]
    next: NextCursor
    previous: str | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The requested page of a list."""

    limit: int
    cursor: Cursor | None


def parse_page_request(
    query: QueryDict,
    *,
    list_name: str,
    problems: ProblemCollector | None = None,
) -> PageRequest:
    """Return the requested page. Raises ApiError 400 for an invalid cursor.

    An invalid limit is added to ``problems`` or, without them, raises InvalidRequestError.
    """
    collector = problems or ProblemCollector()
    page_request = PageRequest(
        parse_limit(query, collector), parse_cursor(query, list_name=list_name)
    )
    if problems is None:
        collector.raise_if_any()
    return page_request


def parse_limit(query: QueryDict, problems: ProblemCollector) -> int:
    """Return the page size. Adds a problem if it's invalid."""
    limit = query.get("limit", str(DEFAULT_PAGE))
    if limit not in _PAGE_SIZES:
        problems.add("/limit", "out_of_range", f"Expected a number from 1 to {MAX_PAGE}.")
        return DEFAULT_PAGE
    return int(limit)


def parse_cursor(query: QueryDict, *, list_name: str) -> Cursor | None:
    """Return the cursor, or None for the first page. Raises ApiError 400 if it's invalid."""
    text = query.get("cursor")
    if text is None:
        return None
    try:
        return decode_cursor(text, list_name=list_name)
    except InvalidCursorError:
        problem = FieldProblem("/cursor", INVALID_CURSOR.code, INVALID_CURSOR.detail)
        raise INVALID_CURSOR.error(errors=[problem]) from None


def page_links(page: Page[Any], *, list_name: str, order: Order) -> dict[str, str | None]:
    """Return the cursors ``next`` and ``previous`` of a page."""
    edge = page.scanned_to
    first, last = (page.documents[0], page.documents[-1]) if page.documents else (edge, edge)
    if edge is not None and page.is_backwards:
        first = edge
    elif edge is not None:
        last = edge
    if first is None or last is None:
        return {"next": None, "previous": None}
    return {
        "next": document_cursor(last, list_name=list_name, order=order) if page.has_next else None,
        "previous": document_cursor(first, list_name=list_name, order=order, backwards=True)
        if page.has_previous
        else None,
    }


def document_cursor(
    document: Mapping[str, Any], *, list_name: str, order: Order, backwards: bool = False
) -> str:
    """Return the cursor of the page after a document or, if ``backwards``, before it."""
    return encode_cursor(
        cursor_of_document(document, order, backwards=backwards), list_name=list_name
    )
