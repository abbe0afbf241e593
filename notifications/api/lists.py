"""The parameters of a list: filters, page size and cursor, each checked."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from bson import ObjectId
from django.core import signing
from django.http import QueryDict

from .. import timing
from ..intake.problems import Collector
from ..queries import MAX_PAGE, Filter, Page, Position
from ..states import Category, Channel, DeliveryStatus, Status
from .problems import invalid, malformed

DEFAULT_PAGE = 20
CURSOR_SALT = "list-cursor"
VOCABULARIES: Mapping[str, type[StrEnum]] = {
    "category": Category,
    "channel": Channel,
    "status": Status,
    "delivery_status": DeliveryStatus,
}
TEXTS = ("user_id", "type", "entity_id", "external_id")
MOMENTS = ("created_after", "created_before")
PAGING = ("limit", "cursor")
MAX_VALUE_LENGTH = 512
_PAGE_SIZE = re.compile(r"[1-9]\d{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of which list is asked for."""

    filters: Filter
    limit: int
    after: Position | None = None
    before: Position | None = None


def check_names(query: QueryDict, *, allowed: Collection[str]) -> None:
    """Raise Problem 400 for a parameter that is not ``allowed``, or one given twice."""
    for name in query:
        if name not in allowed:
            raise malformed("unknown_parameter", "There is no such filter or parameter.")
        if len(query.getlist(name)) > 1:
            raise malformed("repeated_parameter", "A parameter is given more than once.")


def check_texts(query: QueryDict, problems: Collector) -> None:
    """Note values that no parameter can have."""
    for name, text in query.items():
        if "\x00" in text or len(text) > MAX_VALUE_LENGTH:
            problems.add(f"/{name}", "invalid", "Not a value of this parameter.")


def parse(
    query: QueryDict, *, client_id: ObjectId, fixed: Mapping[str, Any] | None = None
) -> ListRequest:
    """Return a checked list request; ``fixed`` are filters the address itself sets.

    Raises Problem: 400 for a parameter nobody knows, one given twice, or a cursor that is not ours;
    422 for a value that cannot be.
    """
    fixed = fixed or {}
    allowed = {*TEXTS, *VOCABULARIES, *MOMENTS, *PAGING, "unread"} - fixed.keys()
    check_names(query, allowed=allowed)
    problems = Collector()
    values: dict[str, Any] = {name: query[name] for name in TEXTS if name in query}
    check_texts(query, problems)
    values |= {name: _word(name, query, problems) for name in VOCABULARIES if name in query}
    values |= {name: moment(name, query, problems) for name in MOMENTS if name in query}
    values["unread"] = _flag("unread", query, problems)
    _check_unread(values, problems)
    limit = _limit(query, problems)
    if problems.problems:
        raise invalid(problems.problems)
    after, before = _positions(query.get("cursor"))
    filters = Filter(client_id=client_id, **{**values, **fixed})
    return ListRequest(filters=filters, limit=limit, after=after, before=before)


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    if not page.documents:
        return {"next": None, "previous": None}
    first, last = page.documents[0], page.documents[-1]
    return {
        "next": _cursor("after", last) if page.has_next else None,
        "previous": _cursor("before", first) if page.has_previous else None,
    }


def _cursor(direction: str, document: Mapping[str, Any]) -> str:
    milliseconds = round(document["created_at"].timestamp() * 1000)
    return signing.dumps([direction, milliseconds, str(document["_id"])], salt=CURSOR_SALT)


def _positions(cursor: str | None) -> tuple[Position | None, Position | None]:
    if cursor is None:
        return None, None
    try:
        direction, milliseconds, notification_id = signing.loads(cursor, salt=CURSOR_SALT)
    except signing.BadSignature:
        raise malformed("invalid_cursor", "This cursor is not one of ours.") from None
    position = Position(datetime.fromtimestamp(milliseconds / 1000, UTC), ObjectId(notification_id))
    return (position, None) if direction == "after" else (None, position)


def _word(name: str, query: QueryDict, problems: Collector) -> str | None:
    vocabulary = VOCABULARIES[name]
    if query[name] not in {member.value for member in vocabulary}:
        problems.add(f"/{name}", "unknown_value", f"Expected one of {', '.join(vocabulary)}.")
        return None
    return query[name]


def moment(name: str, query: QueryDict, problems: Collector) -> datetime | None:
    """Return the instant a parameter names; notes what is wrong with it."""
    try:
        # A plus sign that was not escaped arrives as a blank.
        return timing.parse_timestamp(query[name].replace(" ", "+"))
    except timing.TimeProblem as problem:
        problems.add(f"/{name}", problem.code, str(problem))
        return None


def _flag(name: str, query: QueryDict, problems: Collector) -> bool:
    if query.get(name, "false") not in ("true", "false"):
        problems.add(f"/{name}", "wrong_type", "Expected true or false.")
    return query.get(name) == "true"


def _check_unread(values: Mapping[str, Any], problems: Collector) -> None:
    """Note filters that cannot hold together with ``unread``: delivered in-app, and not read."""
    together = {"channel": Channel.IN_APP.value, "delivery_status": DeliveryStatus.DELIVERED.value}
    if values["unread"] and any(values.get(name) not in (None, v) for name, v in together.items()):
        problems.add(
            "/unread", "conflict", "Unread is what was delivered in-app: ask for nothing else."
        )


def _limit(query: QueryDict, problems: Collector) -> int:
    text = query.get("limit", str(DEFAULT_PAGE))
    if not (_PAGE_SIZE.fullmatch(text) and int(text) <= MAX_PAGE):
        problems.add("/limit", "out_of_range", f"Expected a number from 1 to {MAX_PAGE}.")
        return DEFAULT_PAGE
    return int(text)
