"""Filters of the notification lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from bson import ObjectId
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from domain.channels import Channel
from domain.states import Category, DeliveryStatus, NotificationStatus, Phase
from notifications.catalog import types
from notifications.queries import Filter, Ordering
from notifications.validation import ProblemCollector
from notifyproject.db.paging import Cursor, Page

from ..http import paging
from ..http.problems import validation_failed
from ..http.query import (
    FIELDS,
    one_of,
    parse_bool,
    parse_choice,
    parse_choices,
    parse_fields,
    parse_time,
    reject_invalid_text,
)
from .schemas import NotificationView

LIST = "list"
CHOICES: Mapping[str, type[StrEnum]] = {"category": Category, "channel": Channel}
STATUSES: Mapping[str, tuple[str, type[StrEnum]]] = {
    "status": ("statuses", NotificationStatus),
    "phase": ("phases", Phase),
    "delivery_status": ("delivery_statuses", DeliveryStatus),
}
"""For each repeatable parameter, the field of ``Filter`` and the allowed values."""
TEXT_FILTERS = ("user_id", "type", "entity_id", "external_id", "source")
CREATED_FILTERS = ("created_after", "created_before")
SCHEDULED_FILTERS = ("scheduled_after", "scheduled_before")
TIME_FILTERS = (*CREATED_FILTERS, *SCHEDULED_FILTERS)
FLAGS = ("unread", "is_active")


def time_parameters(names: Sequence[str]) -> list[OpenApiParameter]:
    """Return query parameters that are timestamps."""
    return [OpenApiParameter(name, {"type": "string", "format": "date-time"}) for name in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """The requested page, filters, order, and fields."""

    filters: Filter
    ordering: Ordering = Ordering.NEWEST
    limit: int
    cursor: Cursor | None = None
    fields: frozenset[str] | None = None
    """The fields of each notification. None means all."""

    @property
    def list_name(self) -> str:
        """The name of the list in its cursors. Each order has a name of its own."""
        return LIST if self.ordering is Ordering.NEWEST else f"{LIST}{self.ordering}"


def parse_list_request(
    query: QueryDict, *, client_id: ObjectId, fixed: Mapping[str, Any]
) -> ListRequest:
    """Parse a query, and add the ``fixed`` filters of the path. Raises ApiError 400 or 422."""
    problems = ProblemCollector()
    values: dict[str, Any] = {name: query[name] for name in TEXT_FILTERS if name in query}
    reject_invalid_text(query, problems)
    values |= {
        name: parse_choice(name, list(choices), query, problems)
        for name, choices in CHOICES.items()
        if name in query
    }
    values |= {
        field: parse_choices(name, list(choices), query, problems)
        for name, (field, choices) in STATUSES.items()
    }
    values |= {name: parse_time(name, query, problems) for name in TIME_FILTERS if name in query}
    values["unread"] = parse_bool("unread", query, problems)
    values["is_active"] = "is_active" not in query or parse_bool("is_active", query, problems)
    limit = paging.parse_limit(query, problems)
    ordering = _parse_ordering(query, problems)
    fields = parse_fields(query, NotificationView, problems)
    if problems.problems:
        raise validation_failed(problems.problems)
    if (category := values.get("category")) is not None:
        values["category_types"] = types.slugs_of_category(category)
    filters = Filter(client_id=client_id, **{**values, **fixed})
    request = ListRequest(filters=filters, ordering=ordering, limit=limit, fields=fields)
    return replace(request, cursor=paging.parse_cursor(query, list_name=request.list_name))


def _parse_ordering(query: QueryDict, problems: ProblemCollector) -> Ordering:
    """Return the order of the list. Reports an order that no index serves with the filters."""
    is_by_schedule = any(name in query for name in SCHEDULED_FILTERS)
    default = Ordering.SCHEDULED if is_by_schedule else Ordering.NEWEST
    ordering = Ordering(parse_choice("ordering", list(Ordering), query, problems) or default)
    if is_by_schedule and not ordering.is_by_schedule:
        allowed = one_of([ordering for ordering in Ordering if ordering.is_by_schedule]).rstrip(".")
        detail = f"{allowed} with {' or '.join(SCHEDULED_FILTERS)}."
        problems.add("/ordering", "conflict", detail)
    return ordering


def cursors(page: Page[Any], request: ListRequest) -> dict[str, str | None]:
    """Return the cursors ``next`` and ``previous`` of a page."""
    return paging.page_links(page, list_name=request.list_name, order=request.ordering.order)


def list_parameters(*, without: Sequence[str] = ()) -> list[OpenApiParameter]:
    """Return the query parameters of a notification list."""
    parameters = [
        *(OpenApiParameter(name, str) for name in TEXT_FILTERS),
        *(
            OpenApiParameter(name, str, enum=[member.value for member in choices])
            for name, choices in CHOICES.items()
        ),
        *(
            OpenApiParameter(
                name,
                {
                    "type": "array",
                    "items": {"type": "string", "enum": [member.value for member in choices]},
                },
                explode=True,
                description="Any of these: repeated, or one value with commas.",
            )
            for name, (_, choices) in STATUSES.items()
        ),
        *time_parameters(TIME_FILTERS),
        OpenApiParameter(
            "ordering",
            str,
            enum=[ordering.value for ordering in Ordering],
            default=Ordering.NEWEST.value,
            description="`-` is descending. An order by `scheduled_at` lists scheduled "
            "notifications only, and is the only one with `scheduled_after` or `scheduled_before`, "
            "whose default is `scheduled_at`.",
        ),
        FIELDS,
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
