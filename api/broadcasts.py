"""Broadcasts: create, list, pause, resume, cancel."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from bson import ObjectId
from msgspec import Meta
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.states import AudienceKind, BroadcastStatus, NotificationStatus, Priority
from domain.time import utc_now
from notifications.broadcasts import control, creation, repository
from notifications.broadcasts.documents import Document, request_of
from notifications.broadcasts.repository import NEWEST_FIRST
from notifications.broadcasts.requests import BroadcastRequest
from notifications.intake.requests import Caller, ContentRequest
from notifications.validation import ProblemCollector

from .http import idempotency, paging
from .http.body import MAX_BYTES_BULK, check_values, convert, decode, read_body
from .http.paths import path_parameter
from .http.problems import not_found
from .openapi.operations import describe


class BroadcastAudienceView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Whom it is for: one of these."""

    topic: str | None = None
    user_ids: Annotated[bool, Meta(description="People named one by one; not repeated here.")] = (
        False
    )
    all: bool = False


class SkipReasonView(msgspec.Struct, kw_only=True, frozen=True):
    """Why some people are told nothing."""

    code: Annotated[str, Meta(examples=["no_address", "opted_out", "suppressed"])]
    count: int
    examples: Annotated[list[str], Meta(description="The first 20 user ids of them.")]


class BroadcastView(msgspec.Struct, kw_only=True, frozen=True):
    """A broadcast and how far it has come."""

    id: str
    status: BroadcastStatus
    type: str
    priority: Priority
    audience: BroadcastAudienceView
    audience_size: Annotated[
        int | None,
        Meta(description="About how many there were when it was asked for; null: not counted."),
    ]
    channels: list[str] | None = None
    content: ContentRequest
    data: dict[str, Any]
    ttl: int | None = None
    accepted: Annotated[int, Meta(description="Notifications that were made.")]
    skipped: Annotated[
        list[SkipReasonView],
        Meta(
            description="People who want nothing of it, or whom nothing reaches: no notification "
            "is made for them."
        ),
    ]
    rejected: Annotated[
        list[SkipReasonView],
        Meta(description="People whose notification could not be made, by the problem's code."),
    ]
    withdrawn: Annotated[int, Meta(description="Notifications that its being cancelled ended.")]
    is_waiting: Annotated[
        bool, Meta(description="It waits by itself: too much is to be sent already.")
    ]
    notifications: Annotated[
        dict[str, int] | None,
        Meta(
            description="Of one broadcast: how many of its notifications are in each status; null "
            "if there are too many to count, and in lists.",
            examples=[{"queued": 120, "sent": 4_800, "failed": 12}],
        ),
    ] = None
    failure_code: Annotated[
        str | None, Meta(description="expired, unknown_type or stuck; see failure_reason.")
    ] = None
    failure_reason: str | None = None
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    updated_at: datetime
    request_id: str | None = None
    is_test: bool = False
    """A key in test mode asked for it: all of it goes to the sandbox, and reaches nobody."""


class BroadcastList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[BroadcastView]
    next: str | None
    previous: str | None


def broadcast_view(
    document: Mapping[str, Any], *, counts: Mapping[NotificationStatus, int] | None = None
) -> BroadcastView:
    """Return a stored broadcast as it is shown to its app."""
    request = request_of(document)
    return BroadcastView(
        id=str(document["_id"]),
        status=BroadcastStatus(document["status"]),
        type=document["type"],
        priority=Priority(document["priority"]),
        audience=_audience(document),
        audience_size=document.get("audience_size"),
        channels=request.channels,
        content=request.content,
        data=request.data,
        ttl=request.ttl,
        accepted=document["accepted"],
        skipped=_reason_views(document["skipped"]),
        rejected=_reason_views(document["rejected"]),
        withdrawn=document["withdrawn"],
        is_waiting=document["is_waiting"],
        notifications=None if counts is None else {s.value: n for s, n in counts.items()},
        failure_code=document.get("failure_code"),
        failure_reason=document.get("failure_reason"),
        scheduled_at=document.get("scheduled_at"),
        expires_at=document.get("expires_at"),
        created_at=document["created_at"],
        started_at=document.get("started_at"),
        finished_at=document.get("finished_at"),
        updated_at=document["updated_at"],
        request_id=document.get("request_id"),
        is_test=document.get("is_test", False),
    )


def _audience(document: Mapping[str, Any]) -> BroadcastAudienceView:
    kind = document["audience"]
    return BroadcastAudienceView(
        topic=document.get("topic"),
        user_ids=kind == AudienceKind.USER_IDS,
        all=kind == AudienceKind.ALL,
    )


def _reason_views(stored: Mapping[str, Mapping[str, Any]]) -> list[SkipReasonView]:
    """Return the reasons, what holds for most people first."""
    by_count = sorted(stored.items(), key=lambda one: (-one[1]["count"], one[0]))
    return [
        SkipReasonView(code=code, count=one["count"], examples=one["examples"])
        for code, one in by_count
    ]


READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE
LIST = "broadcasts"
ID = path_parameter("broadcast_id", "24 hex digits", pattern="[0-9a-fA-F]{24}")


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
            idempotency_key=idempotency.optional_key(request),
            is_test=request.user.is_test,
        )
        created = creation.create(body, caller=caller, now=utc_now())
        response = Response(broadcast_view(created.document), status=202)
        response["Location"] = f"{request.path.rstrip('/')}/{created.document['_id']}"
        if created.is_replayed:
            response[idempotency.REPLAYED_HEADER] = "true"
        return response

    @describe(
        operation="listBroadcasts",
        scope=READ,
        response=BroadcastList,
        problems=(400, 422),
        parameters=paging.PARAMETERS,
    )
    def get(self, request: Any) -> Response:
        """List broadcasts, newest first."""
        problems = ProblemCollector()
        page_request = paging.parse_page_request(
            request.query_params, list_name=LIST, problems=problems
        )
        problems.raise_if_any()
        page = repository.page(
            client_id=request.user.id, limit=page_request.limit, cursor=page_request.cursor
        )
        results = [broadcast_view(document) for document in page.documents]
        cursors = paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)
        return Response(BroadcastList(results=results, **cursors))


class BroadcastDetail(APIView):
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
        document = _broadcast_or_404(request, broadcast_id)
        return Response(
            broadcast_view(document, counts=repository.count_by_status(document["_id"]))
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
        return _apply(request, broadcast_id, control.pause)


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
        return _apply(request, broadcast_id, control.resume)


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
        return _apply(request, broadcast_id, control.cancel, status=202)


def _broadcast_or_404(request: Any, broadcast_id: str) -> Document:
    """Return a broadcast of the caller's; another's is not there, as far as it can tell."""
    if not ObjectId.is_valid(broadcast_id):
        raise not_found()
    document = repository.get(ObjectId(broadcast_id), client_id=request.user.id)
    if document is None:
        raise not_found()
    return document


def _apply(
    request: Any, broadcast_id: str, change: Callable[..., Document], *, status: int = 200
) -> Response:
    changed = change(_broadcast_or_404(request, broadcast_id)["_id"], now=utc_now())
    return Response(broadcast_view(changed), status=status)
