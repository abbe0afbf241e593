"""Actions of readers, which change notifications and wake open streams of the inbox."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from bson import ObjectId

from domain import time
from notifications.documents.notification import NotificationDocument
from notifications.store import inbox as store_inbox
from notifications.store import steps
from notifications.store.inbox import Inbox, Marked
from notifyproject.db.paging import Page

from .. import callback_events
from ..catalog import types
from . import feed
from . import wakeups as inbox_wakeups


class UnknownNotificationError(LookupError):
    """The recipient's inbox, or the client, has no such notification."""


def _mark(
    write: Callable[..., Marked | None],
    *,
    notification_id: ObjectId,
    now: datetime,
    **owner: Inbox | ObjectId,
) -> NotificationDocument:
    result = write(notification_id=notification_id, now=now, **owner)
    if result is None:
        raise UnknownNotificationError
    if result.changed:
        inbox_wakeups.send_inbox_wakeups([result.document])
        callback_events.enqueue_publisher(now=now)
    return result.document


READ_BATCH = 250
"""Notifications that one write marks as read."""
MAX_READ = 1_000
"""Notifications that one request marks as read, which takes about a second of MongoDB's time."""
MAX_RESURFACED = 500
"""Snoozed notifications that one write puts back."""
MarkAction = partial[NotificationDocument]
mark_read = partial(_mark, store_inbox.mark_read)
mark_unread = partial(_mark, store_inbox.mark_unread)
mark_read_by_client = partial(_mark, store_inbox.mark_read_by_client)
mark_unread_by_client = partial(_mark, store_inbox.mark_unread_by_client)
mark_acted = partial(_mark, steps.mark_acted)
archive = partial(_mark, store_inbox.archive)
unarchive = partial(_mark, store_inbox.unarchive)
unsnooze = partial(_mark, store_inbox.unsnooze)


def act(
    *, inbox: Inbox, notification_id: ObjectId, action: str, now: datetime
) -> NotificationDocument:
    """Choose one of the actions of a notification's type; the first choice stays.

    Raises UnknownNotificationError, also for an action that the type doesn't have.
    """
    document = feed.get_sent(inbox, notification_id)
    kind = types.find_type(document["type"]) if document is not None else None
    if kind is None or all(known.id != action for known in kind.actions):
        raise UnknownNotificationError
    write = partial(store_inbox.act, action=action)
    return _mark(write, inbox=inbox, notification_id=notification_id, now=now)


def snooze(
    *, inbox: Inbox, notification_id: ObjectId, until: datetime, now: datetime
) -> NotificationDocument:
    """Snooze a notification. Raises InvalidTimeError and UnknownNotificationError."""
    until = time.resolve_snooze(until=until, now=now)
    write = partial(store_inbox.snooze, until=until)
    return _mark(write, inbox=inbox, notification_id=notification_id, now=now)


def resurface_due(*, now: datetime) -> int:
    """Put snoozed notifications back whose time has come. Return how many."""
    count = 0
    while due := store_inbox.due_snoozes(now=now, limit=MAX_RESURFACED):
        changed = resurface(due, now=now)
        count += changed
        if not changed:
            # A concurrent sweeper did it.
            break
    return count


def resurface(due: Sequence[NotificationDocument], *, now: datetime) -> int:
    """Put those of these notifications back whose snooze is over. Return how many."""
    changed = store_inbox.resurface(ids=[document["_id"] for document in due], now=now)
    inbox_wakeups.send_owner_wakeups(due)
    return changed


@dataclass(frozen=True, slots=True)
class AllRead:
    """How many notifications were marked as read, and whether that is all."""

    count: int
    is_complete: bool


def mark_all_read(*, inbox: Inbox, now: datetime) -> AllRead:
    """Mark all notifications sent to a recipient as read, at most MAX_READ at once.

    A call reads the newest part of what is unread, and continues where the last call ended. So
    repeated calls reach everything, however much lies before it that wasn't sent.
    """
    count, before, is_complete = 0, None, False
    for _ in range(MAX_READ // READ_BATCH):
        part = store_inbox.mark_part_read(inbox=inbox, limit=READ_BATCH, before=before, now=now)
        count += part.count
        if part.has_more:
            continue
        if before is None and part.end is not None:
            before = min(part.end, store_inbox.read_position(inbox=inbox, now=now) or part.end)
            continue
        is_complete = part.end is None
        if before is not None:
            store_inbox.save_read_position(inbox=inbox, before=part.end, now=now)
        if is_complete:
            break
        before = part.end
    if count:
        inbox_wakeups.send_inbox_wakeup(inbox)
        callback_events.enqueue_publisher(now=now)
    return AllRead(count, is_complete=is_complete)


def open_feed(*, inbox: Inbox, limit: int, unread: bool) -> Page[NotificationDocument]:
    """Return the first page of an inbox and mark the inbox as seen."""
    # Seen is everything delivered up to the newest of the page, so that later arrivals stay unseen.
    page = feed.page(inbox, limit=limit, unread=unread)
    newest = page.documents[0]["inbox_at"] if page.documents else None
    until = feed.seen_until(inbox) if newest else None
    if newest is not None and (until is None or until < newest):
        store_inbox.mark_seen(inbox=inbox, until=newest)
        inbox_wakeups.send_inbox_wakeup(inbox)
    return page
