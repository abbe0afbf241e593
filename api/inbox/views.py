"""The inbox API: list, counts, read, archive."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from bson import ObjectId
from django.conf import settings
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import InboxAuthentication, OwnsInbox, SafeWrite
from access.clients.inbox_tokens import InboxUser
from domain.time import utc_now
from notifications.inbox import actions, feed
from notifications.inbox.feed import NEWEST_FIRST, FeedPosition
from notifications.store import Document, Inbox
from notifications.validation import ProblemCollector
from notifyproject.db.paging import Page

from ..http import paging
from ..http.fields import UpdatedView
from ..http.paths import path_parameter
from ..http.problems import ApiError, not_found
from ..http.query import reject_unknown
from ..openapi.operations import describe, describe_stream
from .schemas import InboxCounts, InboxItem, InboxList, inbox_item

LIST = "inbox"
FLAGS = ("unread", "archived")
PARAMETER_NAMES = (*FLAGS, *paging.PARAMETER_NAMES)
PARAMETERS = (
    OpenApiParameter("unread", bool, description="true: only what is unread."),
    OpenApiParameter(
        "archived", bool, description="true: what is archived; otherwise what is not."
    ),
    *paging.PARAMETERS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of an inbox is asked for."""

    unread: bool
    archived: bool
    limit: int
    after: FeedPosition | None = None
    before: FeedPosition | None = None

    @property
    def is_first_page(self) -> bool:
        """Whether this is what somebody sees who opens their inbox."""
        return not self.archived and self.after is None and self.before is None


def parse_list_request(query: QueryDict) -> ListRequest:
    """Return a checked list request.

    Raises ApiError 400 for a cursor that is not ours; InvalidRequestError for a value that cannot be.
    """
    problems = ProblemCollector()
    flags = {name: query.get(name, "false") for name in FLAGS}
    for name, value in flags.items():
        if value not in ("true", "false"):
            problems.add(f"/{name}", "wrong_type", "Expected true or false.")
    limit = paging.parse_limit(query, problems)
    problems.raise_if_any()
    after, before = paging.parse_cursors(query, list_name=LIST, position_type=FeedPosition)
    return ListRequest(
        unread=flags["unread"] == "true",
        archived=flags["archived"] == "true",
        limit=limit,
        after=after,
        before=before,
    )


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    return paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)


NOTIFICATION_ID = path_parameter("notification_id", "24 hex digits", pattern="[0-9a-fA-F]{24}")
STREAM_PATH = "/api/v1/inbox/stream"


class InboxView(APIView):
    """What all these views have in common: an inbox token, in a header, and nothing is cached."""

    authentication_classes: Any = (InboxAuthentication,)
    permission_classes: Any = (OwnsInbox,)
    allowed_parameters: ClassVar[Collection[str]] = ()

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Check who asks, and that nothing is in the address that does not belong there."""
        super().initial(request, *args, **kwargs)
        reject_unknown(request.query_params, allowed=self.allowed_parameters)

    def finalize_response(
        self, request: Any, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Keep the answer out of caches."""
        response["Cache-Control"] = "no-store"
        return super().finalize_response(request, response, *args, **kwargs)


class InboxItems(InboxView):
    """What is in it."""

    allowed_parameters = PARAMETER_NAMES

    @describe(
        operation="listInbox",
        scope=None,
        response=InboxList,
        problems=(400, 422),
        parameters=PARAMETERS,
    )
    def get(self, request: Any) -> Response:
        """List the inbox, newest first.

        Whoever asks for its beginning, without archived and without a cursor, has seen it: what was
        delivered by then is not unseen any more.
        """
        list_request = parse_list_request(request.query_params)
        inbox = inbox_of(request.user)
        if list_request.is_first_page:
            page = actions.open_feed(
                inbox=inbox, limit=list_request.limit, unread=list_request.unread
            )
        else:
            page = feed.page(
                inbox,
                limit=list_request.limit,
                unread=list_request.unread,
                archived=list_request.archived,
                after=list_request.after,
                before=list_request.before,
            )
        now = utc_now()
        results = [inbox_item(document, now=now) for document in page.documents]
        return Response(InboxList(results=results, **cursors(page)))


class Counts(InboxView):
    """How much waits."""

    @describe(operation="countInbox", scope=None, response=InboxCounts, problems=(400,))
    def get(self, request: Any) -> Response:
        """Count what is unread and what is unseen."""
        counts = feed.counts(inbox_of(request.user))
        return Response(InboxCounts(unread=counts.unread, unseen=counts.unseen))


class ReadAll(InboxView):
    """Reading everything."""

    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(operation="readAllInbox", scope=None, response=UpdatedView, problems=(400,))
    def post(self, request: Any) -> Response:
        """Mark everything as read, what is archived too; again changes nothing."""
        count = actions.mark_all_read(inbox=inbox_of(request.user), now=utc_now())
        return Response(UpdatedView(updated=count))


def _describe_action(operation: str) -> Any:
    return describe(
        operation=operation,
        scope=None,
        response=InboxItem,
        problems=(400, 404),
        parameters=(NOTIFICATION_ID,),
    )


class Read(InboxView):
    """Reading one."""

    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @_describe_action("readInboxItem")
    def post(self, request: Any, notification_id: str) -> Response:
        """Mark a notification as read; again changes nothing."""
        return _mark(actions.mark_read, request, notification_id)


class Unread(InboxView):
    """Keeping one for later."""

    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @_describe_action("unreadInboxItem")
    def post(self, request: Any, notification_id: str) -> Response:
        """Mark a notification as unread; again changes nothing."""
        return _mark(actions.mark_unread, request, notification_id)


class Archive(InboxView):
    """Putting one away."""

    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @_describe_action("archiveInboxItem")
    def post(self, request: Any, notification_id: str) -> Response:
        """Archive a notification, read or not; again changes nothing."""
        return _mark(actions.archive, request, notification_id)


class Unarchive(InboxView):
    """Putting one back."""

    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @_describe_action("unarchiveInboxItem")
    def post(self, request: Any, notification_id: str) -> Response:
        """Put an archived notification back; again changes nothing."""
        return _mark(actions.unarchive, request, notification_id)


class Stream(InboxView):
    """What happens in it, as it happens. Here stands what it is; another process answers it."""

    @describe_stream(operation="streamInbox")
    def get(self, request: Any) -> Response:
        """Follow the inbox by server-sent events.

        ``notification`` is a new one, with its id as the event's; ``counts`` comes first and
        whenever they change; ``reload`` says that more was missed than is sent again; ``end`` says
        why the stream ends. A comment comes every 15 seconds. With ``Last-Event-ID`` what came
        since is sent first; one may come twice, and its id says so. Browsers follow it by fetch,
        which sends the header with the token, unlike EventSource.
        """
        raise ApiError(
            status=421,
            code="not_here",
            detail=f"Streams have a process of their own: {settings.INBOX_STREAM_URL}{STREAM_PATH}",
        )


def inbox_of(user: InboxUser) -> Inbox:
    """Return the inbox a token is for."""
    return Inbox(user.client_id, user.user_id)


def _mark(action: actions.MarkAction, request: Any, notification_id: str) -> Response:
    if not ObjectId.is_valid(notification_id):
        raise not_found()
    now = utc_now()
    try:
        document: Document = action(
            inbox=inbox_of(request.user), notification_id=ObjectId(notification_id), now=now
        )
    except actions.NotInInboxError:
        raise not_found() from None
    return Response(inbox_item(document, now=now))
