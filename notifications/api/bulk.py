"""Many notifications in one call."""

from typing import Any, ClassVar

from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now
from notifyproject.platform import tracing

from ..intake import bulk
from ..intake.requests import Caller, OverloadedError
from . import idempotency
from .bulk_answers import BulkView, bulk_view
from .bulk_requests import BulkRequest, read_items
from .parsing import MAX_BYTES_BULK, read_body
from .problems import problem_of
from .schema import describe

WRITE = Scope.NOTIFICATIONS_WRITE


class Bulk(APIView):
    """The collection, many at a time."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.MARKED}

    @describe(
        operation="createNotifications",
        scope=WRITE,
        request=BulkRequest,
        response=BulkView,
        problems=(400, 413, 415, 422),
        parameters=(idempotency.parameter(required=True),),
    )
    def post(self, request: Any) -> Response:
        """Accept up to 1,000 notifications.

        A bad item does not stop the others. Of equal items the first is accepted, and the others
        are answered with 409. With too much waiting to be sent already, only critical ones are
        accepted: the others are answered with 503, and so is a call without any. What was
        rejected is to be sent again in another call, under another key.
        """
        key = idempotency.required_key_of(request)
        items = read_items(read_body(request._request, limit=MAX_BYTES_BULK))
        caller = Caller(
            client_id=request.user.id,
            request_id=request.request_id,
            traceparent=tracing.traceparent(),
            idempotency_key=key,
            is_test=request.user.is_test,
        )
        acceptance = bulk.accept_bulk(
            items.requests, contents=items.contents, caller=caller, now=utc_now()
        )
        response = Response(bulk_view(acceptance.outcomes, request._request))
        if acceptance.replayed:
            response[idempotency.REPLAYED] = "true"
        for outcome in acceptance.outcomes:
            if isinstance(outcome, OverloadedError):
                response["Retry-After"] = problem_of(outcome).headers["Retry-After"]
                break
        return response
