"""Reads an inbox in the order of its index ``ntf_inbox``, the newest in-app delivery first."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from bson import ObjectId

from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page

from ..queries import COUNT_CAP
from ..store import Document, Inbox

NEWEST_FIRST = (("inbox_at", -1), ("_id", -1))
INDEX = "ntf_inbox"
_notifications = partial(collection, "notifications")


@dataclass(frozen=True, slots=True)
class FeedCounts:
    """Counts of an inbox, each at most 10,000."""

    unread: int
    unseen: int  # Unread notifications delivered after the owner's last look at the feed


def page(
    inbox: Inbox,
    *,
    limit: int,
    unread: bool = False,
    archived: bool = False,
    cursor: Cursor | None = None,
) -> Page:
    """Return up to ``limit`` notifications, archived or not, from a cursor on."""
    filters: dict[str, Any] = {"is_archived": archived} | ({"is_read": False} if unread else {})
    return paging.page(
        "notifications",
        inbox.match(**filters),
        order=NEWEST_FIRST,
        limit=limit,
        cursor=cursor,
        index=INDEX,
    )


def since(inbox: Inbox, *, moment: datetime, limit: int) -> list[Document]:
    """Return up to ``limit`` notifications delivered at ``moment`` or later, newest first."""
    query = inbox.match(is_archived=False, since={"$gte": moment})
    return list(_notifications().find(query).sort(NEWEST_FIRST).hint(INDEX).limit(limit))


def get(inbox: Inbox, notification_id: ObjectId) -> Document | None:
    """Return a notification, or None if it isn't in the inbox."""
    return _notifications().find_one({**inbox.match(), "_id": notification_id})


def counts(inbox: Inbox) -> FeedCounts:
    """Count the unread and the unseen notifications that aren't archived."""
    seen_at = seen_until(inbox)
    if seen_at is None:
        unread = _count(inbox.match(is_read=False, is_archived=False))
        return FeedCounts(unread=unread, unseen=unread)
    # Adjacent ranges of the index: nothing is counted twice.
    seen, unseen = (
        _count(inbox.match(is_read=False, is_archived=False, since={operator: seen_at}))
        for operator in ("$lte", "$gt")
    )
    return FeedCounts(unread=min(seen + unseen, COUNT_CAP), unseen=unseen)


def seen_until(inbox: Inbox) -> datetime | None:
    """Return up to when the owner has seen the inbox, or None if they never opened it."""
    visit = collection("inbox_visits").find_one({"_id": inbox.key})
    return visit["seen_until"] if visit else None


def _count(query: dict[str, Any]) -> int:
    return _notifications().count_documents(query, limit=COUNT_CAP, hint=INDEX)
