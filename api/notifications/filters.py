"""Filters of the notification lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bson import ObjectId
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from domain.states import Category, Channel, DeliveryStatus, NotificationStatus
from notifications.queries import NEWEST_FIRST, Filter, Position
from notifications.validation import ProblemCollector
from notifyproject.db.paging import Page

from ..http import paging
from ..http.problems import validation_failed
from ..http.query import parse_bool, parse_choice, parse_time, reject_invalid_text, reject_unknown

LIST = "list"
CHOICES: Mapping[str, type[StrEnum]] = {
    "category": Category,
    "channel": Channel,
    "status": NotificationStatus,
    "delivery_status": DeliveryStatus,
}
TEXT_FILTERS = ("user_id", "type", "entity_id", "external_id", "source")
TIME_FILTERS = ("created_after", "created_before")
TIME_PARAMETERS = [
    OpenApiParameter(name, {"type": "string", "format": "date-time"}) for name in TIME_FILTERS
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """The requested page and filters."""

    filters: Filter
    limit: int
    after: Position | None = None
    before: Position | None = None


def parse_list_request(
    query: QueryDict, *, client_id: ObjectId, fixed: Mapping[str, Any]
) -> ListRequest:
    """Return the checked list request with the ``fixed`` filters of the path; ApiError 400, 422."""
    known = {*TEXT_FILTERS, *CHOICES, *TIME_FILTERS, *paging.PARAMETER_NAMES, "unread", "is_active"}
    reject_unknown(query, allowed=known - fixed.keys())
    problems = ProblemCollector()
    values: dict[str, Any] = {name: query[name] for name in TEXT_FILTERS if name in query}
    reject_invalid_text(query, problems)
    values |= {
        name: parse_choice(name, list(choices), query, problems)
        for name, choices in CHOICES.items()
        if name in query
    }
    values |= {name: parse_time(name, query, problems) for name in TIME_FILTERS if name in query}
    values["unread"] = parse_bool("unread", query, problems)
    values["is_active"] = "is_active" not in query or parse_bool("is_active", query, problems)
    limit = paging.parse_limit(query, problems)
    if problems.problems:
        raise validation_failed(problems.problems)
    after, before = paging.parse_cursors(query, list_name=LIST, position_type=Position)
    filters = Filter(client_id=client_id, **{**values, **fixed})
    return ListRequest(filters=filters, limit=limit, after=after, before=before)


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors ``next`` and ``previous`` of a page."""
    return paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)


def list_parameters(*, without: Sequence[str] = ()) -> list[OpenApiParameter]:
    """Return the query parameters of a notification list."""
    parameters = [
        *(OpenApiParameter(name, str) for name in TEXT_FILTERS),
        *(
            OpenApiParameter(name, str, enum=[member.value for member in choices])
            for name, choices in CHOICES.items()
        ),
        *TIME_PARAMETERS,
        OpenApiParameter(
            "unread",
            bool,
            description="true: only those sent on at least one channel and not read.",
        ),
        OpenApiParameter(
            "is_active",
            bool,
            description="false: only deleted ones; otherwise only the others.",
        ),
        *paging.PARAMETERS,
    ]
    return [p for p in parameters if p.name not in without]
