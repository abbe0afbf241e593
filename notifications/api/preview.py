"""Seeing what would be sent, before it is."""

from typing import Any, ClassVar

from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now

from ..intake import preview
from ..intake.requests import Caller, NotificationRequest
from .parsing import check_values, convert, decode, read_body
from .preview_answers import PreviewView, preview_view
from .schema import describe

WRITE = Scope.NOTIFICATIONS_WRITE


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
