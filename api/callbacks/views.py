"""Operations on the callback endpoint, its signing secret, and its deliveries."""

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter

from access.clients.authentication import SafeWrite
from access.models import Scope
from callbacks import outbox, subscriptions
from callbacks.events import CallbackState, CallbackStatus
from callbacks.models import Callback
from callbacks.outbox import NEWEST_FIRST, REMOVED_REASON
from callbacks.subscriptions import SECRET_OVERLAP
from domain.time import utc_now
from notifications.validation import ProblemCollector
from notifyproject.platform import audit

from ..http import paging
from ..http.body import read_request
from ..http.paths import path_parameter
from ..http.problems import CALLBACK_DISABLED, CALLBACK_PENDING, NOT_FOUND, TOO_MANY_SECRETS
from ..http.query import parse_choice
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from . import schemas
from .schemas import (
    CallbackDeliveryList,
    CallbackDeliveryView,
    CallbackRequest,
    CallbackSecretView,
    CallbackView,
    callback_view,
    delivery_view,
)

WRITE = Scope.CALLBACKS_WRITE
DELIVERY_ID = path_parameter(
    "delivery_id", "The delivery's id", example=schemas.EXAMPLE_DELIVERY_ID, max_length=120
)
LIST = "callback-deliveries"
STATUSES = sorted(status.value for status in CallbackStatus)
NO_STORE = {"Cache-Control": "no-store"}


@operation(scope=WRITE, response=CallbackView, problems=(NOT_FOUND,))
def get_callback(request: ClientRequest) -> Response:
    """Get the callback endpoint. Includes its state."""
    return Response(callback_view(subscriptions.get(request.client.id)))


@operation(scope=WRITE, request=CallbackRequest, response=CallbackView, test_mode=SafeWrite.OWN)
def put_callback(request: ClientRequest) -> Response:
    """Create or replace the callback endpoint.

    The response to the creation contains the signing secret. A disabled endpoint is enabled again.
    """
    body = read_request(request, CallbackRequest, check=schemas.validated_events)
    saved = subscriptions.put(
        client_id=request.client.id,
        url=body.url,
        events=schemas.validated_events(body),
        allow_loopback=settings.CALLBACK_LOOPBACK,
        now=utc_now(),
    )
    events = ", ".join(saved.document["events"])
    _record_change(request, f"Endpoint set to {saved.document['host']} for {events}.")
    return Response(callback_view(saved.document, secret=saved.secret), headers=NO_STORE)


@operation(scope=WRITE, response=None, status=204, problems=(NOT_FOUND,), test_mode=SafeWrite.OWN)
def delete_callback(request: ClientRequest) -> Response:
    """Delete the callback endpoint. Pending events aren't sent."""
    subscriptions.remove(request.client.id)
    outbox.fail_pending(client_id=request.client.id, reason=REMOVED_REASON)
    _record_change(request, "Endpoint deleted.")
    return Response(status=204)


@operation(
    scope=WRITE,
    response=CallbackSecretView,
    problems=(NOT_FOUND, TOO_MANY_SECRETS),
    test_mode=SafeWrite.OWN,
)
def rotate_callback_secret(request: ClientRequest) -> Response:
    """Rotate the signing secret. For a day, events are signed with the old secret, too."""
    now = utc_now()
    secret = subscriptions.rotate(request.client.id, now=now)
    _record_change(request, "Secret rotated.")
    view = CallbackSecretView(secret=secret, previous_until=now + SECRET_OVERLAP)
    return Response(view, headers=NO_STORE)


@operation(
    scope=WRITE,
    response=CallbackDeliveryList,
    parameters=(OpenApiParameter("status", str, enum=STATUSES), *paging.PARAMETERS),
)
def list_callback_deliveries(request: ClientRequest) -> Response:
    """List the callback deliveries of the last 30 days, newest first."""
    query, problems = request.query_params, ProblemCollector()
    page_request = paging.parse_page_request(query, list_name=LIST, problems=problems)
    status = parse_choice("status", STATUSES, query, problems, code="unknown_status")
    problems.raise_if_any()
    page = outbox.page(
        client_id=request.client.id,
        status=CallbackStatus(status) if status else None,
        limit=page_request.limit,
        cursor=page_request.cursor,
    )
    results = [delivery_view(document) for document in page.documents]
    cursors = paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)
    return Response(CallbackDeliveryList(results=results, **cursors))


@operation(
    scope=WRITE,
    response=CallbackDeliveryView,
    status=202,
    problems=(CALLBACK_DISABLED, CALLBACK_PENDING),
    parameters=(DELIVERY_ID,),
    test_mode=SafeWrite.OWN,
)
def replay_callback_delivery(request: ClientRequest, delivery_id: str) -> Response:
    """Replay a callback delivery. The webhook-id stays the same."""
    _require_enabled(request)
    try:
        document = outbox.replay(message_id=delivery_id, client_id=request.client.id, now=utc_now())
    except LookupError:
        raise NOT_FOUND.error() from None
    _record_change(request, f"Event {delivery_id} sent again.")
    return Response(delivery_view(document), status=202)


@operation(
    scope=WRITE,
    response=CallbackDeliveryView,
    status=202,
    problems=(NOT_FOUND, CALLBACK_DISABLED),
    test_mode=SafeWrite.OWN,
)
def test_callback(request: ClientRequest) -> Response:
    """Send a test event to the callback endpoint. It needs no subscription."""
    _require_enabled(request)
    sent = outbox.send_test(request.client.id, now=utc_now())
    _record_change(request, "Test event sent.")
    return Response(delivery_view(sent), status=202)


def _record_change(request: ClientRequest, message: str) -> None:
    audit.record_client_action(
        request.client, model=Callback, object_id=str(request.client.id), message=message
    )


def _require_enabled(request: ClientRequest) -> None:
    if subscriptions.get(request.client.id)["state"] != CallbackState.ACTIVE:
        raise CALLBACK_DISABLED.error()
