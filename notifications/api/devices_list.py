"""The parameters of the list of a user's devices, each checked."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core import signing
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from devices.queries import MAX_PAGE, Page, Position

from ..intake.problems import Collector
from ..models.notification import USER_ID_LENGTH
from .lists import DEFAULT_PAGE, check_names
from .problems import malformed

CURSOR_SALT = "device-cursor"
PARAMETERS = ("user_id", "limit", "cursor")
DESCRIBED = (
    OpenApiParameter("user_id", str, required=True, description="Whose devices."),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE},
    ),
    OpenApiParameter("cursor", str, description="next or previous of another page."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of whose list is asked for."""

    user_id: str
    limit: int
    after: Position | None = None
    before: Position | None = None


def parse(query: QueryDict) -> ListRequest:
    """Return a checked list request.

    Raises Problem 400 for a parameter nobody knows, one given twice, or a cursor that is not ours;
    InvalidRequest for a value that cannot be.
    """
    check_names(query, allowed=PARAMETERS)
    problems = Collector()
    user_id = query.get("user_id", "")
    if not user_id:
        problems.add("/user_id", "required", "Whose devices? Give a user_id.")
    elif "\x00" in user_id or len(user_id) > USER_ID_LENGTH:
        problems.add("/user_id", "invalid", "Not a value of this parameter.")
    limit = query.get("limit", str(DEFAULT_PAGE))
    if limit not in _PAGE_SIZES:
        problems.add("/limit", "out_of_range", f"Expected a number from 1 to {MAX_PAGE}.")
    problems.raise_if_any()
    after, before = _positions(query.get("cursor"))
    return ListRequest(user_id=user_id, limit=int(limit), after=after, before=before)


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    if not page.documents:
        return {"next": None, "previous": None}
    first, last = page.documents[0], page.documents[-1]
    return {
        "next": _cursor("after", last) if page.has_next else None,
        "previous": _cursor("before", first) if page.has_previous else None,
    }


_PAGE_SIZES = frozenset(str(size) for size in range(1, MAX_PAGE + 1))


def _cursor(direction: str, document: Any) -> str:
    milliseconds = round(document["created_at"].timestamp() * 1000)
    return signing.dumps([direction, milliseconds, document["_id"]], salt=CURSOR_SALT)


def _positions(cursor: str | None) -> tuple[Position | None, Position | None]:
    if cursor is None:
        return None, None
    try:
        direction, milliseconds, device_id = signing.loads(cursor, salt=CURSOR_SALT)
    except signing.BadSignature:
        raise malformed("invalid_cursor", "This cursor is not one of ours.") from None
    position = Position(datetime.fromtimestamp(milliseconds / 1000, UTC), device_id)
    return (position, None) if direction == "after" else (None, position)
