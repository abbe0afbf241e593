"""The test outbox: what a test key sent."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.channels import Channel
from notifications import queries
from notifications.documents.records import SentTestMessageDocument
from notifications.queries import OUTBOX_NEWEST
from notifications.store import sent_tests
from notifications.validation import ProblemCollector
from notifyproject.platform.audit import Unaudited

from ..http import paging
from ..http.fields import EXAMPLE_ID, TypeSlug, UserId, view_of
from ..http.problems import LIVE_KEY
from ..http.query import parse_choice, reject_invalid_text
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation

LIST = "test-outbox"
TEXT_FILTERS = ("user_id", "type")
CHANNELS = [channel.value for channel in Channel]


class OutboxMessageView(msgspec.Struct, kw_only=True, frozen=True):
    """A message that a test key sent, as it was rendered for its channel."""

    id: Annotated[str, Meta(examples=["6745e3f09b1d4c2a7f3e8c01"])]
    notification_id: Annotated[str, Meta(examples=[EXAMPLE_ID])]
    type: TypeSlug
    channel: Annotated[Channel, Meta(examples=["email"])]
    user_id: Annotated[UserId | None, Meta(examples=["ada"])] = None
    address: Annotated[str | None, Meta(examples=["ada@example.com"])] = None
    """An email address or a phone number; of a push the ID of the device, of a room its ID, and of
    the inbox its user. An address needs the scope recipients:read."""
    sent_at: datetime
    subject: Annotated[str | None, Meta(examples=["Payment received"])] = None
    text: Annotated[str, Meta(examples=["We received 49.90 for Sunrise."])]
    """Sensitive values are masked, in the other fields, too."""
    html: str | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: dict[str, Any] | None = None
    reply_to: str | None = None
    unsubscribe_url: str | None = None
    attachments: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    """What the message shows as buttons."""
    template: dict[str, Any] | None = None
    """Of WhatsApp: what is sent outside of the 24 hours after the recipient's last message."""
    units: int | None = None
    """The parts of an SMS that are paid for."""


class OutboxList(paging.PageView[OutboxMessageView], kw_only=True, frozen=True):
    """A page of the outbox. ``next`` and ``previous`` are values for the parameter ``cursor``."""


@operation(
    scope=Scope.NOTIFICATIONS_READ,
    response=OutboxList,
    problems=(LIVE_KEY,),
    parameters=(
        *(OpenApiParameter(name, str) for name in TEXT_FILTERS),
        OpenApiParameter("channel", str, enum=CHANNELS),
        *paging.PARAMETERS,
    ),
)
def list_test_outbox(request: ClientRequest) -> Response:
    """List what the test key's client has sent, newest first.

    A message is here once its provider has accepted it, for 7 days. Only for test keys.
    """
    require_test_key(request)
    query, problems = request.query_params, ProblemCollector()
    page_request = paging.parse_page_request(query, list_name=LIST, problems=problems)
    match: dict[str, Any] = {"client_id": request.client.id}
    match |= {name: query[name] for name in TEXT_FILTERS if name in query}
    reject_invalid_text(query, problems)
    if channel := parse_choice("channel", CHANNELS, query, problems, code="unknown_channel"):
        match["channel"] = channel
    problems.raise_if_any()
    page = queries.outbox_page(match, limit=page_request.limit, cursor=page_request.cursor)
    sees_addresses = request.client.has_scope(Scope.RECIPIENTS_READ)
    results = [_view(document, sees_addresses=sees_addresses) for document in page.documents]
    cursors = paging.page_links(page, list_name=LIST, order=OUTBOX_NEWEST)
    return Response(OutboxList(results=results, **cursors))


@operation(
    scope=Scope.NOTIFICATIONS_WRITE,
    response=None,
    status=204,
    problems=(LIVE_KEY,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def clear_test_outbox(request: ClientRequest) -> Response:
    """Empty the test outbox. The notifications stay. Only for test keys."""
    require_test_key(request)
    sent_tests.clear(client_id=request.client.id)
    return Response(status=204)


def require_test_key(request: ClientRequest) -> None:
    """Raise ApiError 403 ``live_key`` for a live key."""
    if not request.client.is_test:
        raise LIVE_KEY.error()


def _view(document: SentTestMessageDocument, *, sees_addresses: bool) -> OutboxMessageView:
    content = dict(document["content"])
    return view_of(
        OutboxMessageView,
        {**document, **content},
        id=str(document["_id"]),
        notification_id=str(document["notification_id"]),
        address=_address(document, sees_addresses=sees_addresses),
        template=content.pop("whatsapp_template", None),
    )


def _address(document: SentTestMessageDocument, *, sees_addresses: bool) -> str | None:
    # The address of a registered recipient is live data.
    channel = Channel(document["channel"])
    is_live = channel.is_personal and channel.spec.address is not None
    return None if is_live and not sees_addresses else document["address"]
