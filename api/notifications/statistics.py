"""Counts by status, type, or channel."""

from typing import Annotated, Any, ClassVar

import msgspec
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta
from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import Scope
from monitoring import statistics
from monitoring.statistics import GroupBy, Statistics, StatisticsFilter
from notifications.validation import ProblemCollector

from ..http import query as http_query
from ..http.problems import validation_failed
from ..http.query import reject_invalid_text, reject_unknown
from ..openapi.operations import describe
from . import filters


class StatisticsGroupView(msgspec.Struct, kw_only=True, frozen=True):
    """The figures of one status, type or channel. By channel, deliveries are counted."""

    value: str
    total: int
    sent: Annotated[
        int,
        Meta(description="A provider has taken it, or it is in the inbox, on a channel at least."),
    ]
    failed: int
    average_attempts: Annotated[
        float, Meta(description="Tries for each, of all its channels together.")
    ]


class StatisticsView(msgspec.Struct, kw_only=True, frozen=True):
    """The figures of a client's notifications, the largest group first."""

    by: GroupBy
    results: list[StatisticsGroupView]
    counted: Annotated[int, Meta(description="Notifications that were counted.")]
    complete: Annotated[bool, Meta(description="False: there are more, and older.")]


def statistics_view(found: Statistics, *, by: GroupBy) -> StatisticsView:
    """Return figures as they are shown."""
    return StatisticsView(
        by=by,
        results=[
            msgspec.convert(g, StatisticsGroupView, from_attributes=True) for g in found.groups
        ],
        counted=found.counted,
        complete=found.is_complete,
    )


READ = Scope.NOTIFICATIONS_READ
PARAMETER_NAMES = ("by", "user_id", *filters.TIME_FILTERS)


class NotificationStatistics(APIView):
    """How many there were and what became of them."""

    scopes: ClassVar = {"GET": READ}

    @describe(
        operation="getNotificationStats",
        scope=READ,
        response=StatisticsView,
        problems=(400, 422),
        parameters=(
            OpenApiParameter(
                "by", str, enum=[by.value for by in GroupBy], default=GroupBy.STATUS.value
            ),
            OpenApiParameter("user_id", str),
            *(
                OpenApiParameter(name, {"type": "string", "format": "date-time"})
                for name in filters.TIME_FILTERS
            ),
        ),
    )
    def get(self, request: Any) -> Response:
        """Count notifications, those sent and those failed, with their average attempts.

        Of more than 100,000 the newest are counted, and complete is false: narrow the time.
        """
        by, selection = _parse_request(request.query_params, request.user.id)
        return Response(statistics_view(statistics.count_notifications(selection, by=by), by=by))


def _parse_request(query: QueryDict, client_id: Any) -> tuple[GroupBy, StatisticsFilter]:
    """Return what is asked for; raises ApiError 400 or 422."""
    reject_unknown(query, allowed=PARAMETER_NAMES)
    problems = ProblemCollector()
    reject_invalid_text(query, problems)
    if (by := query.get("by", GroupBy.STATUS.value)) not in {one.value for one in GroupBy}:
        problems.add("/by", "unknown_value", f"Expected one of {', '.join(GroupBy)}.")
    times = {
        name: http_query.parse_time(name, query, problems)
        for name in filters.TIME_FILTERS
        if name in query
    }
    if problems.problems:
        raise validation_failed(problems.problems)
    return GroupBy(by), StatisticsFilter(client_id=client_id, user_id=query.get("user_id"), **times)
