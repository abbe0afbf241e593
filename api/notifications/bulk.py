"""Bulk create: the handler and its result per item."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from bson import ObjectId
from django.http import HttpRequest
from msgspec import Meta

from access.clients.authentication import SafeWrite
from access.models import Scope
from notifications.intake import bulk
from notifications.intake.bulk import ItemOutcome
from notifications.intake.requests import Caller, OverloadedError
from notifyproject.platform import tracing
from notifyproject.platform.audit import Unaudited

from ..http import idempotency_header
from ..http.body import MAX_BYTES_BULK, read_body
from ..http.fields import EXAMPLE_ID
from ..http.problems import OVERLOADED, ProblemView, to_api_error
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from .bulk_body import BulkRequest, read_items


class BulkResultView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The result of one item: its notification's ID, or the error."""

    index: Annotated[int, Meta(description="Position in the request, from 0.", examples=[0])]
    id: Annotated[str | None, Meta(examples=[EXAMPLE_ID])] = None
    error: ProblemView | None = None
    """The problem that POST /notifications would return; pointers are relative to the item."""


class BulkView(msgspec.Struct, kw_only=True, frozen=True):
    """The results of all items."""

    accepted: Annotated[int, Meta(examples=[1])]
    rejected: Annotated[int, Meta(examples=[0])]
    results: list[BulkResultView]


def bulk_view(outcomes: Sequence[ItemOutcome], request: HttpRequest) -> BulkView:
    """Return the results of the items, in their order."""
    results = [
        BulkResultView(index=index, id=str(outcome))
        if isinstance(outcome, ObjectId)
        else BulkResultView(index=index, error=to_api_error(outcome).body(request))
        for index, outcome in enumerate(outcomes)
    ]
    accepted = sum(result.error is None for result in results)
    return BulkView(accepted=accepted, rejected=len(results) - accepted, results=results)


@operation(
    scope=Scope.NOTIFICATIONS_WRITE,
    request=BulkRequest,
    response=BulkView,
    max_bytes=MAX_BYTES_BULK,
    problems=(OVERLOADED,),
    parameters=(idempotency_header.parameter(required=True),),
    test_mode=SafeWrite.MARKED,
    unaudited=Unaudited.CREATES,
)
def create_notifications(request: ClientRequest) -> Response:
    """Create up to 1,000 notifications.

    An invalid item doesn't affect the others. Of identical items, the first is accepted and the
    others get 409. While the backlog is full, only critical items are accepted and the others
    get 503; a request without a critical item gets 503 as a whole. Send rejected items again in
    another request, with another key.
    """
    key = idempotency_header.required_key(request)
    items = read_items(read_body(request._request, limit=MAX_BYTES_BULK))
    caller = Caller(
        client_id=request.client.id,
        request_id=request.request_id,
        traceparent=tracing.traceparent(),
        idempotency_key=key,
        is_test=request.client.is_test,
        may_ignore_limits=request.client.has_scope(Scope.LIMITS_IGNORE),
        may_send_critical=request.client.has_scope(Scope.NOTIFICATIONS_CRITICAL),
    )
    acceptance = bulk.accept_bulk(
        items.requests, contents=items.canonical, caller=caller, now=request.now()
    )
    response = Response(bulk_view(acceptance.outcomes, request._request))
    if acceptance.is_replayed:
        response[idempotency_header.REPLAYED_HEADER] = "true"
    for outcome in acceptance.outcomes:
        if isinstance(outcome, OverloadedError):
            response["Retry-After"] = to_api_error(outcome).headers["Retry-After"]
            break
    return response
