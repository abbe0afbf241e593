"""The figures of an API client's notifications."""

from typing import Any, ClassVar

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import Scope
from monitoring import statistics
from monitoring.statistics import GroupBy, StatisticsFilter

from ..validation import ProblemCollector
from . import lists
from .parameters import check_names, check_texts
from .problems import invalid
from .schema import describe
from .statistics_answers import StatisticsView, statistics_view

READ = Scope.NOTIFICATIONS_READ
PARAMETERS = ("by", "user_id", *lists.MOMENTS)


class Stats(APIView):
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
                for name in lists.MOMENTS
            ),
        ),
    )
    def get(self, request: Any) -> Response:
        """Count notifications, those sent and those failed, with their average attempts.

        Of more than 100,000 the newest are counted, and complete is false: narrow the time.
        """
        by, span = _asked(request.query_params, request.user.id)
        return Response(statistics_view(statistics.count_notifications(span, by=by), by=by))


def _asked(query: QueryDict, client_id: Any) -> tuple[GroupBy, StatisticsFilter]:
    """Return what is asked for; raises Problem 400 or 422."""
    check_names(query, allowed=PARAMETERS)
    problems = ProblemCollector()
    check_texts(query, problems)
    if (by := query.get("by", GroupBy.STATUS.value)) not in {one.value for one in GroupBy}:
        problems.add("/by", "unknown_value", f"Expected one of {', '.join(GroupBy)}.")
    moments = {name: lists.moment(name, query, problems) for name in lists.MOMENTS if name in query}
    if problems.problems:
        raise invalid(problems.problems)
    return GroupBy(by), StatisticsFilter(
        client_id=client_id, user_id=query.get("user_id"), **moments
    )
