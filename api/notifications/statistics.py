"""Counts by status, type, channel, provider, or platform."""

from typing import Annotated

import msgspec
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from access.models import Scope
from monitoring import statistics
from monitoring.statistics import GroupBy, StatisticsFilter
from notifications.validation import ProblemCollector

from ..http.fields import TypeSlug
from ..http.query import parse_choice, parse_time, reject_invalid_text
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from . import filters


class StatisticsGroupView(msgspec.Struct, kw_only=True, frozen=True):
    """The counts of one status, type, channel, provider, or platform.

    By channel and provider, the counts are of deliveries. By platform, they are of the devices that
    a push was sent to.
    """

    value: TypeSlug
    total: Annotated[int, Meta(examples=[1000])]
    sent: Annotated[
        int,
        Meta(
            description="Accepted by a provider or in the inbox, on at least one channel.",
            examples=[990],
        ),
    ]
    failed: Annotated[int, Meta(examples=[10])]
    average_attempts: Annotated[
        float, Meta(description="Attempts per notification, over all channels.", examples=[1.02])
    ]


class StatisticsView(msgspec.Struct, kw_only=True, frozen=True):
    """Counts of a client's notifications, the largest group first."""

    by: Annotated[GroupBy, Meta(examples=["type"])]
    results: list[StatisticsGroupView]
    counted: Annotated[int, Meta(description="Notifications counted.", examples=[1000])]
    complete: Annotated[
        bool, Meta(description="False: older notifications weren't counted.", examples=[True])
    ]


@operation(
    scope=Scope.NOTIFICATIONS_READ,
    response=StatisticsView,
    parameters=(
        OpenApiParameter(
            "by", str, enum=[by.value for by in GroupBy], default=GroupBy.STATUS.value
        ),
        OpenApiParameter("user_id", str),
        *filters.time_parameters(filters.CREATED_FILTERS),
    ),
)
def get_notification_stats(request: ClientRequest) -> Response:
    """Count notifications: total, sent, failed, and average attempts.

    At most the newest 100,000 (by platform: 10,000) are counted. If complete is false, narrow the
    time range.
    """
    query, problems = request.query_params, ProblemCollector()
    reject_invalid_text(query, problems)
    by = GroupBy(parse_choice("by", list(GroupBy), query, problems) or GroupBy.STATUS)
    times = {
        name: parse_time(name, query, problems) for name in filters.CREATED_FILTERS if name in query
    }
    problems.raise_if_any()
    selection = StatisticsFilter(client_id=request.client.id, user_id=query.get("user_id"), **times)
    found = statistics.count_notifications(selection, by=by)
    groups = [
        msgspec.convert(group, StatisticsGroupView, from_attributes=True) for group in found.groups
    ]
    return Response(
        StatisticsView(by=by, results=groups, counted=found.counted, complete=found.is_complete)
    )
