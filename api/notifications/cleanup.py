"""Deletes a client's old notifications."""

from datetime import timedelta
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now
from privacy import purge
from privacy.purge import MAX_DAYS, MIN_DAYS

from ..http.body import check_values, convert, decode, read_body
from ..openapi.operations import describe


class CleanupRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How old is old."""

    older_than_days: Annotated[
        int,
        Meta(ge=MIN_DAYS, le=MAX_DAYS, description="Nothing has happened to them for so long."),
    ]
    dry_run: Annotated[bool, Meta(description="Count, and delete nothing.")] = False


class CleanupView(msgspec.Struct, kw_only=True, frozen=True):
    """What was deleted, or would be."""

    notifications: int
    attempts: Annotated[int | None, Meta(description="Not counted in a dry run.")]
    dry_run: bool
    complete: Annotated[bool, Meta(description="False: there is more to delete.")]


MAX_PER_CALL = 10_000
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
        body = convert(raw, CleanupRequest)
        operation = purge.count_purgeable if body.dry_run else purge.purge_notifications
        report = operation(
            client_id=request.user.id,
            older_than=timedelta(days=body.older_than_days),
            at_most=MAX_PER_CALL,
            now=utc_now(),
        )
        return Response(
            CleanupView(
                notifications=report.notifications,
                attempts=None if body.dry_run else report.attempts,
                dry_run=body.dry_run,
                complete=report.is_complete,
            )
        )
