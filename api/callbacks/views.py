"""An app's callback and what it was told. Each method reads, calls one service, and answers."""

from typing import Any, ClassVar

from django.conf import settings
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from callbacks import audit, outbox, subscriptions
from callbacks.events import CallbackState
from callbacks.outbox import DISABLED_REASON, NEWEST_FIRST, REMOVED_REASON, StillPendingError
from callbacks.subscriptions import NoCallbackError, TooManySecretsError
from domain.time import utc_now

from ..http import paging
from ..http.body import BODY_ERRORS, check_values, convert, decode, read_body
from ..http.paths import path_parameter
from ..http.problems import ApiError, not_found
from ..openapi.operations import describe
from . import schemas
from .schemas import (
    CallbackDeliveryList,
    CallbackDeliveryView,
    CallbackRequest,
    CallbackSecretView,
    CallbackView,
    callback_view,
    delivery_view,
    secret_view,
)

WRITE = Scope.CALLBACKS_WRITE
DELIVERY_ID = path_parameter("delivery_id", "The id of a delivery of a callback", max_length=120)
NO_STORE = {"Cache-Control": "no-store"}


class CallbackEndpoint(APIView):
    """The one of the app."""

    scopes: ClassVar = {"GET": WRITE, "PUT": WRITE, "DELETE": WRITE}
    test_mode: ClassVar = {"PUT": SafeWrite.OWN, "DELETE": SafeWrite.OWN}

    @describe(operation="getCallback", scope=WRITE, response=CallbackView, problems=(404,))
    def get(self, request: Any) -> Response:
        """Return where the app is called back, and how its receiver has been doing."""
        return Response(callback_view(_callback_or_404(request)))

    @describe(
        operation="putCallback",
        scope=WRITE,
        request=CallbackRequest,
        response=CallbackView,
        problems=BODY_ERRORS,
    )
    def put(self, request: Any) -> Response:
        """Have the app called back at a URL; the first time, the answer holds the secret.

        One that was switched off because its receiver failed is switched on again.
        """
        raw = decode(read_body(request._request))
        check_values(raw)
        body = convert(raw, CallbackRequest)
        before = subscriptions.get_many([request.user.id]).get(request.user.id)
        saved = subscriptions.put(
            client_id=request.user.id,
            url=body.url,
            events=schemas.validated_events(body),
            allow_loopback=settings.CALLBACK_LOOPBACK,
            now=utc_now(),
        )
        if before is None or _has_changed(before, saved.document):
            _record_change(request, f"Called back at {saved.document['host']}.")
        return Response(callback_view(saved.document, secret=saved.secret), headers=NO_STORE)

    @describe(operation="deleteCallback", scope=WRITE, response=None, status=204, problems=(404,))
    def delete(self, request: Any) -> Response:
        """Call the app back no more. What waits to be told is not told."""
        try:
            subscriptions.remove(request.user.id)
        except NoCallbackError:
            raise not_found() from None
        outbox.fail_pending(client_id=request.user.id, reason=REMOVED_REASON)
        _record_change(request, "Called back no more.")
        return Response(status=204)


class CallbackSecret(APIView):
    """What its messages are signed with."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="rotateCallbackSecret",
        scope=WRITE,
        response=CallbackSecretView,
        problems=(404, 409),
    )
    def post(self, request: Any) -> Response:
        """Replace the secret. For a day, messages are signed with the old one, too."""
        now = utc_now()
        try:
            secret = subscriptions.rotate(request.user.id, now=now)
        except NoCallbackError:
            raise not_found() from None
        except TooManySecretsError:
            detail = "It was replaced too often within a day: the ones before it still sign."
            raise ApiError(status=409, code="too_many_secrets", detail=detail) from None
        _record_change(request, "Secret replaced.")
        return Response(secret_view(secret, now=now), headers=NO_STORE)


class Deliveries(APIView):
    """What the app was told."""

    scopes: ClassVar = {"GET": WRITE}

    @describe(
        operation="listCallbackDeliveries",
        scope=WRITE,
        response=CallbackDeliveryList,
        problems=(400, 422),
        parameters=schemas.PARAMETERS,
    )
    def get(self, request: Any) -> Response:
        """List what the app was told in the last 30 days, newest first."""
        list_request = schemas.parse_list_request(request.query_params)
        page = outbox.page(
            client_id=request.user.id,
            status=list_request.status,
            limit=list_request.page.limit,
            cursor=list_request.page.cursor,
        )
        results = [delivery_view(document) for document in page.documents]
        cursors = paging.page_links(page, list_name=schemas.LIST, order=NEWEST_FIRST)
        return Response(CallbackDeliveryList(results=results, **cursors))


class Replay(APIView):
    """Once more."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="replayCallbackDelivery",
        scope=WRITE,
        response=CallbackDeliveryView,
        status=202,
        problems=(404, 409),
        parameters=(DELIVERY_ID,),
    )
    def post(self, request: Any, delivery_id: str) -> Response:
        """Tell the app of an event again, with the same webhook-id."""
        try:
            _check_enabled(_callback_or_404(request))
            document = outbox.replay(
                message_id=delivery_id, client_id=request.user.id, now=utc_now()
            )
        except LookupError:
            raise not_found() from None
        except StillPendingError:
            detail = "It has not been told yet, and is tried again by itself."
            raise ApiError(status=409, code="still_pending", detail=detail) from None
        return Response(delivery_view(document), status=202)


class Test(APIView):
    """Nothing, to see whether it comes through."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="testCallback",
        scope=WRITE,
        response=CallbackDeliveryView,
        status=202,
        problems=(404, 409),
    )
    def post(self, request: Any) -> Response:
        """Send the app an event of the type `test`, whatever its callback is for."""
        _check_enabled(_callback_or_404(request))
        try:
            document = outbox.send_test(request.user.id, now=utc_now())
        except NoCallbackError:
            raise not_found() from None
        return Response(delivery_view(document), status=202)


def _callback_or_404(request: Any) -> subscriptions.Document:
    try:
        return subscriptions.get(request.user.id)
    except NoCallbackError:
        raise not_found() from None


def _has_changed(before: subscriptions.Document, after: subscriptions.Document) -> bool:
    """Return whether another receiver is called, or one that was not."""
    return any(before[name] != after[name] for name in ("url", "state"))


def _record_change(request: Any, message: str) -> None:
    audit.record_by_app(request.user.id, request.user.name, message)


def _check_enabled(callback: subscriptions.Document) -> None:
    if callback["state"] != CallbackState.ACTIVE:
        raise ApiError(status=409, code="callback_disabled", detail=DISABLED_REASON)
