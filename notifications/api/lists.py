"""The parameters of a list: filters, page size and cursor, each checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bson import ObjectId
from django.http import QueryDict

from domain import time
from domain.states import Category, Channel, DeliveryStatus, NotificationStatus
from notifyproject.db.paging import Page

from ..queries import NEWEST_FIRST, Filter, Position
from ..validation import ProblemCollector
from . import paging
from .parameters import check_names, check_texts
from .problems import invalid

LIST = "list"
VOCABULARIES: Mapping[str, type[StrEnum]] = {
    "category": Category,
    "channel": Channel,
    "status": NotificationStatus,
    "delivery_status": DeliveryStatus,
}
TEXTS = ("user_id", "type", "entity_id", "external_id")
MOMENTS = ("created_after", "created_before")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of which list is asked for."""

    filters: Filter
    limit: int
    after: Position | None = None
    before: Position | None = None


def parse(
    query: QueryDict, *, client_id: ObjectId, fixed: Mapping[str, Any] | None = None
) -> ListRequest:
    """Return a checked list request; ``fixed`` are filters the address itself sets.

    Raises Problem: 400 for a parameter nobody knows, one given twice, or a cursor that is not ours;
    422 for a value that cannot be.
    """
    fixed = fixed or {}
    allowed = {*TEXTS, *VOCABULARIES, *MOMENTS, *paging.PARAMETERS, "unread"} - fixed.keys()
    check_names(query, allowed=allowed)
    problems = ProblemCollector()
    values: dict[str, Any] = {name: query[name] for name in TEXTS if name in query}
    check_texts(query, problems)
    values |= {name: _word(name, query, problems) for name in VOCABULARIES if name in query}
    values |= {name: moment(name, query, problems) for name in MOMENTS if name in query}
    values["unread"] = _flag("unread", query, problems)
    _check_unread(values, problems)
    limit = paging.limit_of(query, problems)
    if problems.problems:
        raise invalid(problems.problems)
    after, before = paging.sides_of(query, of=LIST, kind=Position)
    filters = Filter(client_id=client_id, **{**values, **fixed})
    return ListRequest(filters=filters, limit=limit, after=after, before=before)


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    return paging.cursors(page, of=LIST, order=NEWEST_FIRST)


def _word(name: str, query: QueryDict, problems: ProblemCollector) -> str | None:
    vocabulary = VOCABULARIES[name]
    if query[name] not in {member.value for member in vocabulary}:
        problems.add(f"/{name}", "unknown_value", f"Expected one of {', '.join(vocabulary)}.")
        return None
    return query[name]


def moment(name: str, query: QueryDict, problems: ProblemCollector) -> datetime | None:
    """Return the instant a parameter names; notes what is wrong with it."""
    try:
        # A plus sign that was not escaped arrives as a blank.
        return time.parse_timestamp(query[name].replace(" ", "+"))
    except time.InvalidTimeError as problem:
        problems.add(f"/{name}", problem.code, str(problem))
        return None


def _flag(name: str, query: QueryDict, problems: ProblemCollector) -> bool:
    if query.get(name, "false") not in ("true", "false"):
        problems.add(f"/{name}", "wrong_type", "Expected true or false.")
    return query.get(name) == "true"


def _check_unread(values: Mapping[str, Any], problems: ProblemCollector) -> None:
    """Note filters that cannot hold together with ``unread``: delivered in-app, and not read."""
    together = {"channel": Channel.IN_APP.value, "delivery_status": DeliveryStatus.DELIVERED.value}
    if values["unread"] and any(values.get(name) not in (None, v) for name, v in together.items()):
        problems.add(
            "/unread", "conflict", "Unread is what was delivered in-app: ask for nothing else."
        )
