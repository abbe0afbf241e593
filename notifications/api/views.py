"""The notifications of an API client. Each method reads, calls one service, and answers."""

import re
from typing import Any, ClassVar

from bson import ObjectId
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import Scope

from .. import intake, queries, redrive, store
from ..intake import Caller, NotificationRequest
from ..intake.channels import ALL, by_name
from ..intake.problems import Collector
from ..states import Channel
from ..store import Document
from ..timing import utc_now
from . import lists
from .parsing import check_values, convert, decode, read_body
from .problems import Problem, malformed, not_found
from .representations import (
    AttemptList,
    NotificationList,
    NotificationView,
    attempt_view,
    notification_view,
)
from .schema import ChannelsRequest, UpdatedView, describe, identifier, list_parameters

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
READ, WRITE, RESEND = (
    Scope.NOTIFICATIONS_READ,
    Scope.NOTIFICATIONS_WRITE,
    Scope.NOTIFICATIONS_RESEND,
)


BAD_BODY = (400, 413, 415, 422)
NOTIFICATION_ID = identifier("notification_id", "24 hex digits")
IDEMPOTENCY_HEADER = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="1 to 255 visible ASCII characters; the same key and body make one notification.",
)
USER_ID = identifier("user_id", "The caller's own id of the person")


class Notifications(APIView):
    """The collection."""

    scopes: ClassVar = {"GET": READ, "POST": WRITE}

    @describe(
        operation="createNotification",
        scope=WRITE,
        request=NotificationRequest,
        response=NotificationView,
        status=202,
        problems=(*BAD_BODY, 409),
        parameters=(IDEMPOTENCY_HEADER,),
    )
    def post(self, request: Any) -> Response:
        """Accept a notification."""
        raw = decode(read_body(request._request))
        check_values(raw)
        body = convert(raw, NotificationRequest)
        caller = Caller(
            client_id=request.user.id,
            request_id=request.request_id,
            idempotency_key=_idempotency_key(request),
        )
        acceptance = intake.accept(body, caller=caller, now=utc_now())
        response = Response(
            notification_view(acceptance.document, adjusted=acceptance.adjusted), status=202
        )
        response["Location"] = f"{request.path.rstrip('/')}/{acceptance.document['_id']}"
        if acceptance.replayed:
            response["Idempotent-Replayed"] = "true"
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
        return _list(request, {})


class RecipientNotifications(APIView):
    """What one person was sent."""

    scopes: ClassVar = {"GET": Scope.RECIPIENTS_WRITE}

    @describe(
        operation="listRecipientNotifications",
        scope=Scope.RECIPIENTS_WRITE,
        response=NotificationList,
        problems=(400, 422),
        parameters=(USER_ID, *list_parameters(without=["user_id"])),
    )
    def get(self, request: Any, user_id: str) -> Response:
        """List a person's notifications, newest first."""
        return _list(request, {"user_id": user_id})


class RecipientReadAll(APIView):
    """A person has seen everything."""

    scopes: ClassVar = {"POST": Scope.RECIPIENTS_WRITE}

    @describe(
        operation="readAllRecipientNotifications",
        scope=Scope.RECIPIENTS_WRITE,
        response=UpdatedView,
        parameters=(USER_ID,),
    )
    def post(self, request: Any, user_id: str) -> Response:
        """Mark every in-app notification of a person as read."""
        count = store.mark_all_read(user_id=user_id, client_id=request.user.id, now=utc_now())
        return Response(UpdatedView(updated=count))


class OneNotification(APIView):
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
        return Response(notification_view(_own(request, notification_id)))


class Attempts(APIView):
    """Every try to deliver one."""

    scopes: ClassVar = {"GET": READ}

    @describe(
        operation="listAttempts",
        scope=READ,
        response=AttemptList,
        problems=(404,),
        parameters=(NOTIFICATION_ID,),
    )
    def get(self, request: Any, notification_id: str) -> Response:
        """List the attempts of a notification, the oldest first."""
        document = _own(request, notification_id)
        attempts = queries.attempts_of(document["_id"])
        return Response(AttemptList(results=[attempt_view(one) for one in attempts]))


class Cancel(APIView):
    """Withdrawing one."""

    scopes: ClassVar = {"POST": WRITE}

    @describe(
        operation="cancelNotification",
        scope=WRITE,
        request=ChannelsRequest,
        response=NotificationView,
        status=200,
        problems=(*BAD_BODY, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Cancel what of a notification has not been sent."""
        document = _own(request, notification_id)
        try:
            cancelled = redrive.cancel(
                notification_id=document["_id"],
                channels=_channels(request),
                reason="Cancelled by the app that sent it.",
                now=utc_now(),
            )
        except redrive.NotPossible as error:
            raise _conflict(error) from None
        return Response(notification_view(cancelled))


class Retry(APIView):
    """Trying failed channels again."""

    scopes: ClassVar = {"POST": WRITE}

    @describe(
        operation="retryNotification",
        scope=WRITE,
        request=ChannelsRequest,
        response=NotificationView,
        status=202,
        problems=(*BAD_BODY, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Re-open the failed channels of a notification."""
        document = _own(request, notification_id)
        try:
            reopened = redrive.retry(
                notification_id=document["_id"], channels=_channels(request), now=utc_now()
            )
        except redrive.NotPossible as error:
            raise _conflict(error) from None
        return Response(notification_view(reopened), status=202)


class Resend(APIView):
    """Sending the same again."""

    scopes: ClassVar = {"POST": RESEND}

    @describe(
        operation="resendNotification",
        scope=RESEND,
        request=ChannelsRequest,
        response=NotificationView,
        status=202,
        problems=(*BAD_BODY, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Send a notification again as a new one."""
        document = _own(request, notification_id)
        try:
            resent = redrive.resend(
                notification_id=document["_id"], channels=_channels(request), now=utc_now()
            )
        except redrive.NotPossible as error:
            raise _conflict(error) from None
        return Response(notification_view(resent.document), status=202)


def _list(request: Any, fixed: dict[str, Any]) -> Response:
    asked = lists.parse(request.query_params, client_id=request.user.id, fixed=fixed)
    page = queries.page(asked.filters, limit=asked.limit, after=asked.after, before=asked.before)
    results = [notification_view(document) for document in page.documents]
    return Response(NotificationList(results=results, **lists.cursors(page)))


def _own(request: Any, notification_id: str) -> Document:
    """Return a notification of the caller's; another's is not there, as far as it can tell."""
    if not ObjectId.is_valid(notification_id):
        raise not_found()
    document = queries.one(notification_id=ObjectId(notification_id), client_id=request.user.id)
    if document is None:
        raise not_found()
    return document


def _channels(request: Any) -> list[Channel] | None:
    """Return the channels an action's optional body names; None for all there are."""
    if not _has_body(request._request):
        return None
    names = convert(decode(read_body(request._request)), ChannelsRequest).channels
    if names is None or names == [ALL]:
        return None
    problems = Collector()
    channels = by_name(names, problems=problems)
    problems.raise_if_any()
    return channels


def _has_body(request: HttpRequest) -> bool:
    return (
        request.META.get("CONTENT_LENGTH") not in (None, "", "0")
        or "HTTP_TRANSFER_ENCODING" in request.META
    )


def _idempotency_key(request: Any) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        raise malformed(
            "invalid_idempotency_key", "Idempotency-Key is 1 to 255 visible ASCII characters."
        )
    return key


def _conflict(error: Exception) -> Problem:
    return Problem(status=409, code="not_possible", detail=str(error))
