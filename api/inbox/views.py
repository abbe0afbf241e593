"""The inbox API: list, counts, read, archive."""

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter

from access.clients.authentication import SafeWrite
from domain import time
from domain.states import Category
from notifications.inbox import actions, feed
from notifications.inbox.feed import NEWEST_FIRST, NEXT_FIRST
from notifications.validation import FieldProblem, ProblemCollector
from notifyproject.platform.audit import Unaudited

from ..http import paging
from ..http.body import read_request
from ..http.fields import UpdatedView
from ..http.paths import NOTIFICATION_ID, object_id_or_404, path_parameter
from ..http.problems import UNKNOWN_PARAMETER, WRONG_ENDPOINT, validation_failed
from ..http.query import parse_bool, parse_choice, reject_invalid_text
from ..http.rendering import Response
from ..http.requests import InboxRequest
from ..openapi.operations import event_stream, operation
from .schemas import (
    InboxCounts,
    InboxItem,
    InboxList,
    SnoozeRequest,
    inbox_counts,
    inbox_item,
)

LIST = "inbox"
SNOOZED_LIST = "inbox-snoozed"
FLAGS = ("unread", "archived", "snoozed")
TEXT_FILTERS = ("type", "category")
PARAMETERS = (
    OpenApiParameter("unread", bool, description="true: only unread notifications."),
    OpenApiParameter("archived", bool, description="true: only archived; otherwise the others."),
    OpenApiParameter(
        "snoozed", bool, description="true: only snoozed, the next to come back first."
    ),
    OpenApiParameter("type", str),
    OpenApiParameter("category", str, enum=[category.value for category in Category]),
    *paging.PARAMETERS,
)


ACTION = path_parameter("action", "An action of the type", example="approve", max_length=32)
STREAM_PATH = "/api/v1/inbox/stream"


@operation(scope=None, response=InboxList, parameters=PARAMETERS)
def list_inbox(request: InboxRequest) -> Response:
    """List the notifications in the inbox, newest first.

    Reading the first page also marks all delivered notifications as seen: `unseen` in GET
    /inbox/counts becomes 0. Later pages, read with `cursor`, and pages with `archived`, `snoozed`,
    `type`, or `category` mark nothing.

    A page with `type` or `category` is searched among 2,000 notifications: it may have fewer than
    `limit` items, even none, while `next` leads on.
    """
    query, problems = request.query_params, ProblemCollector()
    unread, archived, snoozed = (parse_bool(name, query, problems) for name in FLAGS)
    if snoozed and (unread or archived):
        problems.add("/snoozed", "conflict", "Not with `unread` or `archived`.")
    reject_invalid_text(query, problems)
    parse_choice("category", list(Category), query, problems)
    limit = paging.parse_limit(query, problems)
    problems.raise_if_any()
    wanted = {name: query[name] for name in TEXT_FILTERS if name in query}
    name, order = (SNOOZED_LIST, NEXT_FIRST) if snoozed else (LIST, NEWEST_FIRST)
    cursor = paging.parse_cursor(query, list_name=name)
    inbox = request.inbox
    if snoozed:
        page = feed.snoozed_page(inbox, limit=limit, wanted=wanted, cursor=cursor)
    elif archived or wanted or cursor is not None:
        page = feed.page(
            inbox, limit=limit, unread=unread, archived=archived, wanted=wanted, cursor=cursor
        )
    else:
        page = actions.open_feed(inbox=inbox, limit=limit, unread=unread)
    now = request.now()
    results = [inbox_item(document, now=now) for document in page.documents]
    cursors = paging.page_links(page, list_name=name, order=order)
    return Response(InboxList(results=results, **cursors))


@operation(scope=None, response=InboxCounts, problems=(UNKNOWN_PARAMETER,))
def count_inbox(request: InboxRequest) -> Response:
    """Count unread and unseen notifications."""
    return Response(inbox_counts(feed.counts(request.inbox)))


@operation(
    scope=None,
    response=UpdatedView,
    problems=(UNKNOWN_PARAMETER,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def read_all_inbox(request: InboxRequest) -> Response:
    """Mark all notifications as read, even archived ones and other channels'; idempotent.

    At most 1,000 at once, the newest first, among up to 80,000 unread ones, sent or not. If
    `is_complete` is false, the same request continues, even if `updated` is 0.
    """
    done = actions.mark_all_read(inbox=request.inbox, now=request.now())
    return Response(UpdatedView(updated=done.count, is_complete=done.is_complete))


_item_operation = operation(
    scope=None,
    response=InboxItem,
    problems=(UNKNOWN_PARAMETER,),
    parameters=(NOTIFICATION_ID,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)


@_item_operation
def read_inbox_item(request: InboxRequest, notification_id: str) -> Response:
    """Mark a notification as read, whatever channel it was sent on; idempotent."""
    return _mark(actions.mark_read, request, notification_id)


@_item_operation
def unread_inbox_item(request: InboxRequest, notification_id: str) -> Response:
    """Mark a notification as unread, whatever channel it was sent on; idempotent."""
    return _mark(actions.mark_unread, request, notification_id)


@_item_operation
def archive_inbox_item(request: InboxRequest, notification_id: str) -> Response:
    """Archive a notification, read or not; idempotent."""
    return _mark(actions.archive, request, notification_id)


@_item_operation
def unarchive_inbox_item(request: InboxRequest, notification_id: str) -> Response:
    """Unarchive a notification; idempotent."""
    return _mark(actions.unarchive, request, notification_id)


@_item_operation
def unsnooze_inbox_item(request: InboxRequest, notification_id: str) -> Response:
    """Put a snoozed notification back into the inbox as it was; idempotent."""
    return _mark(actions.unsnooze, request, notification_id)


@operation(
    scope=None,
    response=InboxItem,
    problems=(UNKNOWN_PARAMETER,),
    parameters=(NOTIFICATION_ID, ACTION),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def act_on_inbox_item(request: InboxRequest, notification_id: str, action: str) -> Response:
    """Choose an action of a notification, which marks it as read.

    The first choice stays: the response has it. The client gets the callback event
    notification.acted, and no later step of its plan is sent.
    """
    inbox, now = request.inbox, request.now()
    document = actions.act(
        inbox=inbox,
        notification_id=object_id_or_404(notification_id),
        action=action,
        now=now,
    )
    return Response(inbox_item(document, now=now))


@operation(
    scope=None,
    request=SnoozeRequest,
    response=InboxItem,
    problems=(UNKNOWN_PARAMETER,),
    parameters=(NOTIFICATION_ID,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def snooze_inbox_item(request: InboxRequest, notification_id: str) -> Response:
    """Hide a notification for a minute to 90 days; idempotent.

    It isn't counted, and comes back as new and unread, with an event in the stream. If it has
    expired by then, it comes back as it was.
    """
    body, now = read_request(request, SnoozeRequest), request.now()
    try:
        until = time.parse_timestamp(body.until)
        document = actions.snooze(
            inbox=request.inbox,
            notification_id=object_id_or_404(notification_id),
            until=until,
            now=now,
        )
    except time.InvalidTimeError as error:
        raise validation_failed([FieldProblem("/until", error.code, str(error))]) from None
    return Response(inbox_item(document, now=now))


@event_stream
def stream_inbox(_request: InboxRequest) -> Response:
    """Stream the inbox as server-sent events.

    ``notification`` is a new notification, with its ID as the event ID; ``counts`` comes first
    and after every change; ``reload`` means that missed notifications aren't all sent; ``end``
    gives the reason why the stream ends. The first ``counts`` has an event ID too, if no
    notification came before it. A comment is sent every 15 s. With ``Last-Event-ID``, the
    notifications since then are sent first; a notification can be repeated, with the same ID. In
    a browser, use fetch: EventSource can't send the header with the token.
    """
    raise WRONG_ENDPOINT.error(url=f"{settings.INBOX_STREAM_URL}{STREAM_PATH}")


def _mark(action: actions.MarkAction, request: InboxRequest, notification_id: str) -> Response:
    inbox, now = request.inbox, request.now()
    document = action(inbox=inbox, notification_id=object_id_or_404(notification_id), now=now)
    return Response(inbox_item(document, now=now))
