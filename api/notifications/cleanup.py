"""Deletes a client's old notifications."""

from datetime import timedelta
from typing import Annotated

import msgspec
from django.contrib.admin.models import DELETION
from msgspec import Meta

from access.clients.authentication import SafeWrite
from access.models import APIClient, Scope
from notifyproject.platform import audit
from privacy import purge
from privacy.purge import MAX_DAYS, MIN_DAYS

from ..http.body import read_request
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation


class CleanupRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The minimum age of the notifications to delete."""

    older_than_days: Annotated[
        int,
        Meta(ge=MIN_DAYS, le=MAX_DAYS, description="Days since the last change.", examples=[30]),
    ]
    dry_run: Annotated[bool, Meta(description="Only count.", examples=[True])] = False


class CleanupView(msgspec.Struct, kw_only=True, frozen=True):
    """The numbers of deleted items or, in a dry run, of items to delete."""

    notifications: Annotated[int, Meta(examples=[12])]
    attempts: Annotated[int | None, Meta(description="Not counted in a dry run.", examples=[14])]
    dry_run: bool
    complete: Annotated[bool, Meta(description="False: more to delete.", examples=[True])]


MAX_PER_CALL = 10_000  # Notifications per request, which takes some seconds


@operation(scope=Scope.ADMIN, request=CleanupRequest, response=CleanupView, test_mode=SafeWrite.OWN)
def clean_up_notifications(request: ClientRequest) -> Response:
    """Delete the client's old notifications that have ended, and their attempts.

    With dry_run, they are only counted. One request deletes up to 10,000; repeat it while
    complete is false.
    """
    body = read_request(request, CleanupRequest)
    operation = purge.count_purgeable if body.dry_run else purge.purge_notifications
    report = operation(
        client_id=request.client.id,
        older_than=timedelta(days=body.older_than_days),
        at_most=MAX_PER_CALL,
        now=request.now(),
    )
    if not body.dry_run:
        audit.record_client_action(
            request.client,
            model=APIClient,
            object_id=str(request.client.id),
            message=f"Deleted {report.notifications} of its notifications that were unchanged for "
            f"{body.older_than_days} days.",
            flag=DELETION,
        )
    return Response(
        CleanupView(
            notifications=report.notifications,
            attempts=None if body.dry_run else report.attempts,
            dry_run=body.dry_run,
            complete=report.is_complete,
        )
    )
