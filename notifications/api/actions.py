"""What an API client does with a notification of its own. Each method calls one service.

What is not possible is told as the 409 that :func:`problem_of` makes of it.
"""

from typing import Any, ClassVar

from django.http import HttpRequest
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain import time
from domain.states import Channel
from domain.time import utc_now

from ..resend import actions
from ..validation import ALL, FieldProblem, ProblemCollector, parse_channels
from .own import NOTIFICATION_ID, own_notification
from .parsing import check_values, convert, decode, read_body
from .problems import invalid
from .representations import NotificationView, notification_view
from .schema import ChannelsRequest, RescheduleRequest, describe

WRITE, RESEND = Scope.NOTIFICATIONS_WRITE, Scope.NOTIFICATIONS_RESEND
BAD_BODY = (400, 413, 415, 422)


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
        problems=(*BAD_BODY, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Cancel what of a notification has not been sent."""
        document = own_notification(request, notification_id)
        cancelled = actions.cancel(
            notification_id=document["_id"],
            channels=_channels(request),
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
        problems=(*BAD_BODY, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Re-open the failed channels of a notification.

        409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
        409 `content_removed`: it is so old that what it said is not kept any more.
        """
        document = own_notification(request, notification_id)
        reopened = actions.retry(
            notification_id=document["_id"], channels=_channels(request), now=utc_now()
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
        problems=(*BAD_BODY, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Send a notification again as a new one.

        409 `secret_gone`: it had a code or the like, which is destroyed once all is over.
        409 `content_removed`: it is so old that what it said is not kept any more.
        """
        document = own_notification(request, notification_id)
        resent = actions.resend(
            notification_id=document["_id"], channels=_channels(request), now=utc_now()
        )
        return Response(notification_view(resent.document), status=202)


class Reschedule(APIView):
    """Sending one at another time."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="rescheduleNotification",
        scope=WRITE,
        request=RescheduleRequest,
        response=NotificationView,
        problems=(*BAD_BODY, 404, 409),
        parameters=(NOTIFICATION_ID,),
    )
    def post(self, request: Any, notification_id: str) -> Response:
        """Send a notification at another time, as long as nothing of it has been sent.

        A ttl counts from the new time. An expires_at stays: the new time must lie before it.
        """
        document = own_notification(request, notification_id)
        asked = convert(_body(request), RescheduleRequest)
        try:
            rescheduled = actions.reschedule(
                notification_id=document["_id"],
                asked=time.parse_timestamp(asked.scheduled_at),
                now=utc_now(),
            )
        except time.InvalidTimeError as error:
            raise invalid([FieldProblem("/scheduled_at", error.code, str(error))]) from None
        return Response(notification_view(rescheduled))


def _body(request: Any) -> dict[str, Any]:
    raw = decode(read_body(request._request))
    check_values(raw)
    return raw


def _channels(request: Any) -> list[Channel] | None:
    """Return the channels an action's optional body names; None for all there are."""
    if not _has_body(request._request):
        return None
    names = convert(_body(request), ChannelsRequest).channels
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
