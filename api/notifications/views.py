"""Notifications: create, list, read, preview, attempts, cancel, retry, resend, reschedule."""

from typing import Any, ClassVar

from bson import ObjectId
from django.http import HttpRequest
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain import time
from domain.states import Channel
from domain.time import utc_now
from notifications import queries
from notifications.intake import acceptance as intake_acceptance
from notifications.intake import preview
from notifications.intake.requests import Caller, NotificationRequest
from notifications.resend import actions
from notifications.store import Document
from notifications.validation import ALL, FieldProblem, ProblemCollector, parse_channels
from notifyproject.platform import tracing

from ..http import idempotency
from ..http.body import BODY_ERRORS, check_values, convert, decode, read_body
from ..http.paths import path_parameter
from ..http.problems import not_found, validation_failed
from ..http.query import reject_unknown
from ..openapi.operations import describe
from . import filters
from .filters import list_parameters
from .schemas import (
    AttemptList,
    ChannelsRequest,
    NotificationList,
    NotificationView,
    PreviewView,
    RescheduleRequest,
    attempt_view,
    notification_view,
    preview_view,
)

NOTIFICATION_ID = path_parameter("notification_id", "24 hex digits", pattern="[0-9a-fA-F]{24}")


def notification_or_404(request: Any, notification_id: str) -> Document:
    """Return a notification of the caller's; another's is not there, as far as it can tell."""
    if not ObjectId.is_valid(notification_id):
        raise not_found()
    document = queries.get(notification_id=ObjectId(notification_id), client_id=request.user.id)
    if document is None:
        raise not_found()
    return document


READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE


class Notifications(APIView):
    """The collection."""

    scopes: ClassVar = {"GET": READ, "POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.MARKED}

    @describe(
        operation="createNotification",
        scope=WRITE,
        request=NotificationRequest,
        response=NotificationView,
        status=202,
        problems=(*BODY_ERRORS, 409),
        parameters=(idempotency.parameter(required=False),),
    )
    def post(self, request: Any) -> Response:
        """Accept a notification."""
        raw = decode(read_body(request._request))
        check_values(raw)
        body = convert(raw, NotificationRequest)
        caller = Caller(
            client_id=request.user.id,
            request_id=request.request_id,
            traceparent=tracing.traceparent(),
            idempotency_key=idempotency.optional_key(request),
            is_test=request.user.is_test,
        )
        acceptance = intake_acceptance.accept(body, caller=caller, now=utc_now())
        tracing.annotate({"notify.notification.id": str(acceptance.document["_id"])})
        response = Response(
            notification_view(acceptance.document, adjusted=acceptance.is_time_adjusted), status=202
        )
        response["Location"] = f"{request.path.rstrip('/')}/{acceptance.document['_id']}"
        if acceptance.is_replayed:
            response[idempotency.REPLAYED_HEADER] = "true"
        return response

    @describe(
        operation="listNotifications",
        scope=READ,
        response=NotificationList,
        problems=(400, 422),
        parameters=list_parameters(),
    )
    def get(self, request: Any) -> Response:
        """List notifications, newest first."""
        return list_page(request, {})


class NotificationDetail(APIView):
    """One of the collection."""

    scopes: ClassVar = {"GET": READ}

    @describe(
        operation="getNotification",
        scope=READ,
        response=NotificationView,
        problems=(404,),
        parameters=(NOTIFICATION_ID,),
    )
    def get(self, request: Any, notification_id: str) -> Response:
        """Return a notification."""
        return Response(notification_view(notification_or_404(request, notification_id)))


class NotificationAttempts(APIView):
    """Every try to deliver one."""

    scopes: ClassVar = {"GET": READ}

    @describe(
        operation="listAttempts",
        scope=READ,
        response=AttemptList,
        problems=(400, 404),
        parameters=(NOTIFICATION_ID,),
    )
    def get(self, request: Any, notification_id: str) -> Response:
        """List the attempts of a notification, the oldest first."""
        reject_unknown(request.query_params, allowed=())
        document = notification_or_404(request, notification_id)
        attempts = queries.attempts_of(document["_id"])
        return Response(AttemptList(results=[attempt_view(one) for one in attempts]))


def list_page(request: Any, fixed: dict[str, Any]) -> Response:
    """Answer with a page of notifications; ``fixed`` filters are not taken from the query."""
    list_request = filters.parse_list_request(
        request.query_params, client_id=request.user.id, fixed=fixed
    )
    page = queries.page(
        list_request.filters,
        limit=list_request.limit,
        after=list_request.after,
        before=list_request.before,
    )
    results = [notification_view(document) for document in page.documents]
    return Response(NotificationList(results=results, **filters.cursors(page)))


WRITE, RESEND = Scope.NOTIFICATIONS_WRITE, Scope.NOTIFICATIONS_RESEND


class Cancel(APIView):
    """Withdrawing one."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="cancelNotification",
        scope=WRITE,
        request=ChannelsRequest,
        response=NotificationView,
        status=200,
        problems=(*BODY_ERRORS, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Cancel what of a notification has not been sent."""
        document = notification_or_404(request, notification_id)
        cancelled = actions.cancel(
            notification_id=document["_id"],
            channels=_requested_channels(request),
            reason="Cancelled by the app that sent it.",
            now=utc_now(),
        )
        return Response(notification_view(cancelled))


class Retry(APIView):
    """Trying failed channels again."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="retryNotification",
        scope=WRITE,
        request=ChannelsRequest,
        response=NotificationView,
        status=202,
        problems=(*BODY_ERRORS, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Re-open the failed channels of a notification.

        409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
        409 `content_removed`: it is so old that what it said is not kept any more.
        """
        document = notification_or_404(request, notification_id)
        reopened = actions.retry(
            notification_id=document["_id"], channels=_requested_channels(request), now=utc_now()
        )
        return Response(notification_view(reopened), status=202)


class Resend(APIView):
    """Sending the same again."""

    scopes: ClassVar = {"POST": RESEND}
    test_mode: ClassVar = {"POST": SafeWrite.MARKED}

    @describe(
        operation="resendNotification",
        scope=RESEND,
        request=ChannelsRequest,
        response=NotificationView,
        status=202,
        problems=(*BODY_ERRORS, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Send a notification again as a new one.

        409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
        409 `content_removed`: it is so old that what it said is not kept any more.
        """
        document = notification_or_404(request, notification_id)
        resent = actions.resend(
            notification_id=document["_id"], channels=_requested_channels(request), now=utc_now()
        )
        return Response(notification_view(resent), status=202)


class Reschedule(APIView):
    """Sending one at another time."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="rescheduleNotification",
        scope=WRITE,
        request=RescheduleRequest,
        response=NotificationView,
        problems=(*BODY_ERRORS, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Send a notification at another time, as long as nothing of it has been sent.

        A ttl counts from the new time. An expires_at stays: the new time must lie before it.
        """
        document = notification_or_404(request, notification_id)
        body = convert(_read_json(request), RescheduleRequest)
        try:
            rescheduled = actions.reschedule(
                notification_id=document["_id"],
                requested_time=time.parse_timestamp(body.scheduled_at),
                now=utc_now(),
            )
        except time.InvalidTimeError as error:
            raise validation_failed(
                [FieldProblem("/scheduled_at", error.code, str(error))]
            ) from None
        return Response(notification_view(rescheduled))


def _read_json(request: Any) -> dict[str, Any]:
    raw = decode(read_body(request._request))
    check_values(raw)
    return raw


def _requested_channels(request: Any) -> list[Channel] | None:
    """Return the channels an action's optional body names; None for all there are."""
    if not _has_body(request._request):
        return None
    names = convert(_read_json(request), ChannelsRequest).channels
    if names is None or names == [ALL]:
        return None
    problems = ProblemCollector()
    channels = parse_channels(names, problems=problems)
    problems.raise_if_any()
    return channels


def _has_body(request: HttpRequest) -> bool:
    return (
        request.META.get("CONTENT_LENGTH") not in (None, "", "0")
        or "HTTP_TRANSFER_ENCODING" in request.META
    )


class Preview(APIView):
    """A notification that is not sent."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.NOTHING}

    @describe(
        operation="previewNotification",
        scope=WRITE,
        request=NotificationRequest,
        response=PreviewView,
        problems=(400, 413, 415, 422),
    )
    def post(self, request: Any) -> Response:
        """Check a notification and render it for every channel; nothing is sent or stored."""
        raw = decode(read_body(request._request))
        check_values(raw)
        body = convert(raw, NotificationRequest)
        caller = Caller(client_id=request.user.id, request_id=request.request_id)
        return Response(preview_view(preview.preview(body, caller=caller, now=utc_now())))
