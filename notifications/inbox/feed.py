"""Reads an inbox in the order of its index ``ntf_inbox``, the newest in-app delivery first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from bson import ObjectId, Timestamp

from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifications.documents.records import INBOX_VISITS
from notifications.store.inbox import Inbox
from notifyproject.db import paging
from notifyproject.db.collections import Snapshot, read_snapshot
from notifyproject.db.paging import Cursor, Page

from ..queries import COUNT_CAP

NEWEST_FIRST = (("inbox_at", -1), ("_id", -1))
NEXT_FIRST = (("snoozed_until", 1), ("_id", 1))
"""Order of snoozed notifications: the next to come back first."""
INDEX = "ntf_inbox"
MAX_SCANNED = 2_000
"""Notifications that are read for a page of one type or category: some 20 ms of work."""
NO_FILTER: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class FeedCounts:
    """Counts of an inbox, each at most 10,000."""

    unread: int
    unseen: int  # Unread notifications delivered after the owner's last visit to the feed
    as_of: Timestamp = field(compare=False)
    """The cluster time at which they were counted, which orders counts of any processes."""


def page(
    inbox: Inbox,
    *,
    limit: int,
    unread: bool = False,
    archived: bool = False,
    wanted: Mapping[str, str] = NO_FILTER,
    cursor: Cursor | None = None,
) -> Page[NotificationDocument]:
    """Return up to ``limit`` notifications, archived or not, from a cursor on.

    ``wanted`` are values of fields, such as the type, that the notifications have. They are not in
    the index: at most MAX_SCANNED notifications are read for a page.
    """
    filters: dict[str, Any] = {"is_archived": archived} | ({"is_read": False} if unread else {})
    return _page(
        inbox.match(**filters), wanted, order=NEWEST_FIRST, limit=limit, cursor=cursor, index=INDEX
    )


def snoozed_page(
    inbox: Inbox,
    *,
    limit: int,
    wanted: Mapping[str, str] = NO_FILTER,
    cursor: Cursor | None = None,
) -> Page[NotificationDocument]:
    """Return up to ``limit`` snoozed notifications from a cursor on, the next due first."""
    return _page(
        inbox.match_snoozed(),
        wanted,
        order=NEXT_FIRST,
        limit=limit,
        cursor=cursor,
        index="ntf_snoozed",
    )


def _page(
    match: Mapping[str, Any], wanted: Mapping[str, str], *, index: str, **options: Any
) -> Page[NotificationDocument]:
    if not wanted:
        return paging.page(NOTIFICATIONS, match, index=index, **options)
    return paging.scanned_page(
        NOTIFICATIONS, match, wanted, index=index, scan=MAX_SCANNED, **options
    )


def since(inbox: Inbox, *, moment: datetime, limit: int) -> list[NotificationDocument]:
    """Return up to ``limit`` notifications delivered at ``moment`` or later, newest first."""
    query = inbox.match(is_archived=False, since={"$gte": moment})
    return list(NOTIFICATIONS().find(query).sort(NEWEST_FIRST).hint(INDEX).limit(limit))


def get(inbox: Inbox, notification_id: ObjectId) -> NotificationDocument | None:
    """Return a notification, or None if it isn't in the inbox."""
    return NOTIFICATIONS().find_one({**inbox.match(), "_id": notification_id})


def get_sent(inbox: Inbox, notification_id: ObjectId) -> NotificationDocument | None:
    """Return a notification, or None if it wasn't sent to the inbox's owner."""
    return NOTIFICATIONS().find_one({**inbox.match_sent(), "_id": notification_id})


def counts(inbox: Inbox) -> FeedCounts:
    """Count the unread and the unseen notifications that aren't archived, at one time."""
    return read_snapshot(partial(_counts, inbox))


def _counts(inbox: Inbox, snapshot: Snapshot) -> FeedCounts:
    visits = snapshot.aggregate("inbox_visits", [{"$match": {"_id": inbox.key}}])
    if not visits:
        unread = _count(snapshot, inbox.match(is_read=False, is_archived=False))
        return FeedCounts(unread=unread, unseen=unread, as_of=snapshot.time)
    seen_at = visits[0]["seen_until"]
    # Adjacent ranges of the index: nothing is counted twice.
    seen, unseen = (
        _count(snapshot, inbox.match(is_read=False, is_archived=False, since={operator: seen_at}))
        for operator in ("$lte", "$gt")
    )
    unread = min(seen + unseen, COUNT_CAP)
    return FeedCounts(unread=unread, unseen=unseen, as_of=snapshot.time)


def seen_until(inbox: Inbox) -> datetime | None:
    """Return up to when the owner has seen the inbox, or None if they never opened it."""
    visit = INBOX_VISITS().find_one({"_id": inbox.key})
    return visit["seen_until"] if visit else None


def _count(snapshot: Snapshot, query: dict[str, Any]) -> int:
    pipeline: list[dict[str, Any]] = [{"$match": query}, {"$limit": COUNT_CAP}, {"$count": "n"}]
    found = snapshot.aggregate("notifications", pipeline, hint=INDEX)
    return found[0]["n"] if found else 0
