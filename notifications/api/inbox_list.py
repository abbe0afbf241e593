"""The parameters of an inbox's list, each checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from django.core import signing
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from ..feed import Part, Place
from ..intake.problems import Collector
from ..queries import MAX_PAGE
from .lists import DEFAULT_PAGE
from .problems import malformed

CURSOR_SALT = "inbox-cursor"
FLAGS = ("unread", "archived")
PARAMETERS = (*FLAGS, "limit", "cursor")
DESCRIBED = (
    OpenApiParameter("unread", bool, description="true: only what is unread."),
    OpenApiParameter(
        "archived", bool, description="true: what is archived; otherwise what is not."
    ),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE},
    ),
    OpenApiParameter("cursor", str, description="next or previous of another page."),
)
_PAGE_SIZES = frozenset(str(size) for size in range(1, MAX_PAGE + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of an inbox is asked for."""

    unread: bool
    archived: bool
    limit: int
    after: Place | None = None
    before: Place | None = None

    @property
    def is_beginning(self) -> bool:
        """Whether this is what somebody sees who opens their inbox."""
        return not self.archived and self.after is None and self.before is None


def parse(query: QueryDict) -> ListRequest:
    """Return a checked list request.

    Raises Problem 400 for a cursor that is not ours; InvalidRequest for a value that cannot be.
    """
    problems = Collector()
    flags = {name: query.get(name, "false") for name in FLAGS}
    for name, value in flags.items():
        if value not in ("true", "false"):
            problems.add(f"/{name}", "wrong_type", "Expected true or false.")
    limit = query.get("limit", str(DEFAULT_PAGE))
    if limit not in _PAGE_SIZES:
        problems.add("/limit", "out_of_range", f"Expected a number from 1 to {MAX_PAGE}.")
    problems.raise_if_any()
    after, before = _places(query.get("cursor"))
    return ListRequest(
        unread=flags["unread"] == "true",
        archived=flags["archived"] == "true",
        limit=int(limit),
        after=after,
        before=before,
    )


def cursors(part: Part) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    if not part.documents:
        return {"next": None, "previous": None}
    first, last = part.documents[0], part.documents[-1]
    return {
        "next": _cursor("after", last) if part.has_next else None,
        "previous": _cursor("before", first) if part.has_previous else None,
    }


def _cursor(direction: str, document: Mapping[str, Any]) -> str:
    place = Place.of(document)
    milliseconds = round(place.inbox_at.timestamp() * 1000)
    return signing.dumps([direction, milliseconds, str(place.id)], salt=CURSOR_SALT)


def _places(cursor: str | None) -> tuple[Place | None, Place | None]:
    if cursor is None:
        return None, None
    try:
        direction, milliseconds, notification_id = signing.loads(cursor, salt=CURSOR_SALT)
    except signing.BadSignature:
        raise malformed("invalid_cursor", "This cursor is not one of ours.") from None
    place = Place(datetime.fromtimestamp(milliseconds / 1000, UTC), ObjectId(notification_id))
    return (place, None) if direction == "after" else (None, place)
