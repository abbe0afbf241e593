"""Digests: list, get, send now, cancel."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import msgspec
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.channels import Channel
from domain.digests import DigestOutcome, DigestStatus
from notifications import queries
from notifications.actions import digests
from notifications.documents.policies import DigestDocument
from notifications.models import Digest
from notifications.queries import DIGESTS_NEWEST
from notifications.validation import ProblemCollector
from notifyproject.platform import audit

from .http import paging
from .http.fields import TypeSlug, UserId, view_of
from .http.paths import found_or_404, object_id_or_404, object_id_parameter
from .http.problems import INVALID_STATE
from .http.query import parse_choice, reject_invalid_text
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation

EXAMPLE_DIGEST_ID = "6745e3f09b1d4c2a7f3e8b90"
READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE
LIST = "digests"
TEXT_FILTERS = ("user_id", "type")
STATUSES = [status.value for status in DigestStatus]
ID = object_id_parameter("digest_id", example=EXAMPLE_DIGEST_ID)


class DigestView(msgspec.Struct, kw_only=True, frozen=True):
    """Messages of one type to one recipient that are sent as one."""

    id: Annotated[str, Meta(examples=[EXAMPLE_DIGEST_ID])]
    status: Annotated[DigestStatus, Meta(examples=["open"])]
    """`closing`: no message joins any more; `sealed`: its messages and its outcome are fixed."""
    outcome: DigestOutcome | None = None
    """`separate`: its messages were sent one by one. Null before `sealed`."""
    type: TypeSlug
    channel: Annotated[Channel, Meta(examples=["email"])]
    user_id: Annotated[UserId | None, Meta(examples=["ada"])] = None
    """Null for a recipient without one, and once the recipient is erased."""
    key: str | None = None
    """The value of the type's key variable; null without one."""
    opened_at: datetime
    closes_at: datetime
    closed_at: datetime | None = None
    waiting: Annotated[int | None, Meta(examples=[3])] = None
    """Messages that wait for it; only in `GET /digests/{id}`, and while it is open."""
    count: int | None = None
    """Messages that its outcome applies to. Null before `sealed`."""
    dropped: int | None = None
    """Messages that were read, muted, expired, or otherwise not needed at its end."""
    carrier_id: str | None = None
    """The notification that was sent in place of its messages."""
    is_cancelled: bool = False
    """A client or staff cancelled it."""
    is_test: bool = False  # Its messages were created with a test key


class DigestList(paging.PageView[DigestView], kw_only=True, frozen=True):
    """A page of digests. ``next`` and ``previous`` are values for the parameter ``cursor``."""


_end_operation = partial(
    operation,
    scope=WRITE,
    response=DigestView,
    status=202,
    problems=(INVALID_STATE,),
    parameters=(ID,),
    test_mode=SafeWrite.OWN,
)


@operation(
    scope=READ,
    response=DigestList,
    parameters=(
        *(OpenApiParameter(name, str) for name in TEXT_FILTERS),
        OpenApiParameter("status", str, enum=STATUSES),
        *paging.PARAMETERS,
    ),
)
def list_digests(request: ClientRequest) -> Response:
    """List digests, newest first."""
    query, problems = request.query_params, ProblemCollector()
    page_request = paging.parse_page_request(query, list_name=LIST, problems=problems)
    match: dict[str, Any] = {"client_id": request.client.id}
    match |= {name: query[name] for name in TEXT_FILTERS if name in query}
    reject_invalid_text(query, problems)
    if status := parse_choice("status", STATUSES, query, problems, code="unknown_status"):
        match["status"] = status
    problems.raise_if_any()
    page = queries.digest_page(match, limit=page_request.limit, cursor=page_request.cursor)
    results = [_view(document) for document in page.documents]
    cursors = paging.page_links(page, list_name=LIST, order=DIGESTS_NEWEST)
    return Response(DigestList(results=results, **cursors))


@operation(scope=READ, response=DigestView, parameters=(ID,))
def get_digest(request: ClientRequest, digest_id: str) -> Response:
    """Get a digest. Includes how many messages wait for it while it is open."""
    document = _digest_or_404(request, digest_id)
    if document["status"] != DigestStatus.OPEN:
        return Response(_view(document))
    counts = queries.count_waiting_members([document["_id"]])
    return Response(_view(document, waiting=counts.get(document["_id"], 0)))


@_end_operation()
def close_digest(request: ClientRequest, digest_id: str) -> Response:
    """Send a digest now, before its window ends.

    Messages that follow open a new one.
    """
    return _end(request, digest_id, digests.close, done="Closed")


@_end_operation()
def cancel_digest(request: ClientRequest, digest_id: str) -> Response:
    """Cancel the messages that wait for a digest.

    Messages that follow open a new one.
    """
    return _end(request, digest_id, digests.cancel, done="Cancelled")


def _digest_or_404(request: ClientRequest, digest_id: str) -> DigestDocument:
    found = queries.digest(object_id_or_404(digest_id), client_id=request.client.id)
    return found_or_404(found)


def _end(
    request: ClientRequest, digest_id: str, change: Callable[..., DigestDocument], *, done: str
) -> Response:
    ended = change(_digest_or_404(request, digest_id)["_id"], now=request.now())
    audit.record_client_action(
        request.client, model=Digest, object_id=digest_id, message=f"{done}."
    )
    return Response(_view(ended), status=202)


def _view(document: DigestDocument, *, waiting: int | None = None) -> DigestView:
    carrier_id = document.get("carrier_id")
    return view_of(
        DigestView,
        document,
        id=str(document["_id"]),
        carrier_id=str(carrier_id) if carrier_id is not None else None,
        waiting=waiting,
    )
