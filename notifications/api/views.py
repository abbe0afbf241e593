"""The notifications of an API client. Each method reads, calls one service, and answers."""

from typing import Any, ClassVar

from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now
from notifyproject.platform import tracing

from .. import queries
from ..inbox import actions
from ..intake import acceptance as intake_acceptance
from ..intake.requests import Caller, NotificationRequest
from ..store import Inbox
from . import idempotency, lists
from .own import NOTIFICATION_ID, own_notification
from .parameters import check_names
from .parsing import check_values, convert, decode, read_body
from .representations import (
    AttemptList,
    NotificationList,
    NotificationView,
    attempt_view,
    notification_view,
)
from .schema import UpdatedView, describe, identifier, list_parameters

READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE
BAD_BODY = (400, 413, 415, 422)
USER_ID = identifier("user_id", "The caller's own id of the person", at_most=128)


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
        problems=(*BAD_BODY, 409),
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
            idempotency_key=idempotency.key_of(request),
            is_test=request.user.is_test,
        )
        acceptance = intake_acceptance.accept(body, caller=caller, now=utc_now())
        tracing.annotate({"notify.notification.id": str(acceptance.document["_id"])})
        response = Response(
            notification_view(acceptance.document, adjusted=acceptance.adjusted), status=202
        )
        response["Location"] = f"{request.path.rstrip('/')}/{acceptance.document['_id']}"
        if acceptance.replayed:
            response[idempotency.REPLAYED] = "true"
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
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="readAllRecipientNotifications",
        scope=Scope.RECIPIENTS_WRITE,
        response=UpdatedView,
        parameters=(USER_ID,),
    )
    def post(self, request: Any, user_id: str) -> Response:
        """Mark every in-app notification of a person as read."""
        count = actions.mark_all_read(inbox=Inbox(request.user.id, user_id), now=utc_now())
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
        return Response(notification_view(own_notification(request, notification_id)))


class Attempts(APIView):
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
        check_names(request.query_params, allowed=())
        document = own_notification(request, notification_id)
        attempts = queries.attempts_of(document["_id"])
        return Response(AttemptList(results=[attempt_view(one) for one in attempts]))


def _list(request: Any, fixed: dict[str, Any]) -> Response:
    asked = lists.parse(request.query_params, client_id=request.user.id, fixed=fixed)
    page = queries.page(asked.filters, limit=asked.limit, after=asked.after, before=asked.before)
    results = [notification_view(document) for document in page.documents]
    return Response(NotificationList(results=results, **lists.cursors(page)))
