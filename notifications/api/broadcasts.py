"""Telling many people one thing. Each method reads, calls one service, and answers."""

from collections.abc import Callable
from typing import Any, ClassVar

from bson import ObjectId
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now

from ..broadcasts import control, creation, repository
from ..broadcasts.documents import Document
from ..broadcasts.repository import NEWEST_FIRST
from ..broadcasts.requests import BroadcastRequest
from ..intake.requests import Caller
from ..validation import ProblemCollector
from . import idempotency, paging
from .broadcasts_answers import BroadcastList, BroadcastView, broadcast_view
from .parsing import MAX_BYTES_BULK, check_values, convert, decode, read_body
from .problems import not_found
from .schema import describe, identifier

READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE
LIST = "broadcasts"
ID = identifier("broadcast_id", "24 hex digits", pattern="[0-9a-fA-F]{24}")


class Broadcasts(APIView):
    """All of an app's."""

    scopes: ClassVar = {"GET": READ, "POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.MARKED}

    @describe(
        operation="createBroadcast",
        scope=WRITE,
        request=BroadcastRequest,
        response=BroadcastView,
        status=202,
        problems=(400, 413, 415, 422),
        parameters=(idempotency.parameter(required=False),),
    )
    def post(self, request: Any) -> Response:
        """Tell everybody, the members of a topic, or up to 10,000 named people one thing.

        The audience is read in the background, a thousand people at a time; GET says how far it is.
        Each person gets a notification of their own, whose broadcast_id says where it comes from,
        and nobody gets two. With too much waiting to be sent, it waits by itself. A type that is
        critical, or has secret variables, is for one person and refused here.
        """
        raw = decode(read_body(request._request, limit=MAX_BYTES_BULK))
        check_values(raw)
        body = convert(raw, BroadcastRequest)
        caller = Caller(
            client_id=request.user.id,
            request_id=request.request_id,
            idempotency_key=idempotency.key_of(request),
            is_test=request.user.is_test,
        )
        begun = creation.create(body, caller=caller, now=utc_now())
        response = Response(broadcast_view(begun.document), status=202)
        response["Location"] = f"{request.path.rstrip('/')}/{begun.document['_id']}"
        if begun.replayed:
            response[idempotency.REPLAYED] = "true"
        return response

    @describe(
        operation="listBroadcasts",
        scope=READ,
        response=BroadcastList,
        problems=(400, 422),
        parameters=paging.DESCRIBED,
    )
    def get(self, request: Any) -> Response:
        """List broadcasts, newest first."""
        problems = ProblemCollector()
        asked = paging.parse(request.query_params, of=LIST, problems=problems)
        problems.raise_if_any()
        page = repository.page(client_id=request.user.id, limit=asked.limit, place=asked.place)
        results = [broadcast_view(document) for document in page.documents]
        cursors = paging.cursors(page, of=LIST, order=NEWEST_FIRST)
        return Response(BroadcastList(results=results, **cursors))


class OneBroadcast(APIView):
    """One of them."""

    scopes: ClassVar = {"GET": READ}

    @describe(
        operation="getBroadcast",
        scope=READ,
        response=BroadcastView,
        problems=(404,),
        parameters=(ID,),
    )
    def get(self, request: Any, broadcast_id: str) -> Response:
        """Return a broadcast, how far it has come, and what became of its notifications."""
        document = _own(request, broadcast_id)
        return Response(
            broadcast_view(document, figures=repository.count_by_status(document["_id"]))
        )


class Pause(APIView):
    """Holding one up."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="pauseBroadcast",
        scope=WRITE,
        response=BroadcastView,
        problems=(404, 409),
        parameters=(ID,),
    )
    def post(self, request: Any, broadcast_id: str) -> Response:
        """Make no more notifications of a broadcast until it is resumed.

        Those that are accepted are sent. A page that is under way ends: up to a thousand more.
        """
        return _changed(request, broadcast_id, control.pause)


class Resume(APIView):
    """Going on with one."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="resumeBroadcast",
        scope=WRITE,
        response=BroadcastView,
        problems=(404, 409),
        parameters=(ID,),
    )
    def post(self, request: Any, broadcast_id: str) -> Response:
        """Go on with a paused broadcast behind the last person who was looked at."""
        return _changed(request, broadcast_id, control.resume)


class CancelBroadcast(APIView):
    """Calling one off."""

    scopes: ClassVar = {"POST": WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="cancelBroadcast",
        scope=WRITE,
        response=BroadcastView,
        status=202,
        problems=(404, 409),
        parameters=(ID,),
    )
    def post(self, request: Any, broadcast_id: str) -> Response:
        """Make no more notifications of a broadcast, and withdraw those that have not been sent.

        Also of a completed one. It is cancelling until the last of them is withdrawn, or has ended
        because it was being sent already; then it is cancelled.
        """
        return _changed(request, broadcast_id, control.cancel, status=202)


def _own(request: Any, broadcast_id: str) -> Document:
    """Return a broadcast of the caller's; another's is not there, as far as it can tell."""
    if not ObjectId.is_valid(broadcast_id):
        raise not_found()
    document = repository.one(ObjectId(broadcast_id), client_id=request.user.id)
    if document is None:
        raise not_found()
    return document


def _changed(
    request: Any, broadcast_id: str, change: Callable[..., Document], *, status: int = 200
) -> Response:
    changed = change(_own(request, broadcast_id)["_id"], now=utc_now())
    return Response(broadcast_view(changed), status=status)
