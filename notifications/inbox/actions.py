"""Actions of an inbox's owner: writes through the store and wakes open streams."""

from datetime import datetime
from typing import Protocol

from bson import ObjectId

from notifyproject.db.paging import Page

from .. import callback_events, store
from ..store import Document, Inbox, Marked
from . import feed
from . import wakeups as inbox_wakeups


class NotInInboxError(LookupError):
    """The inbox has no such notification."""


def mark_read(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Document:
    """Mark a notification as read and return it; raises NotInInboxError."""
    return _apply_mark(store.mark_read, inbox, notification_id, now)


def mark_unread(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Document:
    """Mark a notification as unread and return it; raises NotInInboxError."""
    return _apply_mark(store.mark_unread, inbox, notification_id, now)


def archive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Document:
    """Archive a notification and return it; raises NotInInboxError."""
    return _apply_mark(store.archive, inbox, notification_id, now)


def unarchive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Document:
    """Restore an archived notification and return it; raises NotInInboxError."""
    return _apply_mark(store.unarchive, inbox, notification_id, now)


def mark_all_read(*, inbox: Inbox, now: datetime) -> int:
    """Mark every notification of an inbox as read; return how many were unread."""
    count = store.mark_all_read(inbox=inbox, now=now)
    if count:
        inbox_wakeups.wake_inbox(inbox)
        callback_events.enqueue_publisher(now=now)
    return count


def open_feed(*, inbox: Inbox, limit: int, unread: bool) -> Page:
    """Return the first page of a feed and mark it as seen.

    Seen is everything delivered up to the newest of the page, so that later arrivals stay unseen.
    """
    page = feed.page(inbox, limit=limit, unread=unread)
    newest = page.documents[0]["inbox_at"] if page.documents else None
    until = feed.seen_until(inbox) if newest else None
    if newest is not None and (until is None or until < newest):
        store.mark_seen(inbox=inbox, until=newest)
        inbox_wakeups.wake_inbox(inbox)
    return page


class MarkAction(Protocol):
    """An action on one notification of an inbox."""

    def __call__(self, *, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Document:
        """Apply the action and return the notification; raises NotInInboxError."""
        ...


class _StoreWrite(Protocol):
    def __call__(
        self, *, inbox: Inbox, notification_id: ObjectId, now: datetime
    ) -> Marked | None: ...


def _apply_mark(
    write: _StoreWrite, inbox: Inbox, notification_id: ObjectId, now: datetime
) -> Document:
    result = write(inbox=inbox, notification_id=notification_id, now=now)
    if result is None:
        raise NotInInboxError
    if result.changed:
        inbox_wakeups.wake_inbox(inbox)
        callback_events.enqueue_publisher(now=now)
    return result.document
