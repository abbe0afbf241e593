"""Deleting old notifications of an API client."""

from datetime import timedelta
from typing import Any, ClassVar

from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now
from privacy import purge

from .cleanup_requests import CleanupRequest, CleanupView
from .parsing import check_values, convert, decode, read_body
from .schema import describe

AT_MOST = 10_000
"""Of one call: it takes some seconds."""


class Cleanup(APIView):
    """What is over and old."""

    scopes: ClassVar = {"POST": Scope.ADMIN}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="cleanUpNotifications",
        scope=Scope.ADMIN,
        request=CleanupRequest,
        response=CleanupView,
        problems=(400, 413, 415, 422),
    )
    def post(self, request: Any) -> Response:
        """Delete the caller's notifications that ended long ago, and their attempts.

        With dry_run they are counted and nothing is deleted. Up to 10,000 in one call: while
        complete is false, there are more.
        """
        raw = decode(read_body(request._request))
        check_values(raw)
        asked = convert(raw, CleanupRequest)
        work = purge.count_purgeable if asked.dry_run else purge.purge_notifications
        cleaned = work(
            client_id=request.user.id,
            older_than=timedelta(days=asked.older_than_days),
            at_most=AT_MOST,
            now=utc_now(),
        )
        return Response(
            CleanupView(
                notifications=cleaned.notifications,
                attempts=None if asked.dry_run else cleaned.attempts,
                dry_run=asked.dry_run,
                complete=cleaned.is_complete,
            )
        )
