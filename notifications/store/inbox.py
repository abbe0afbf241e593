"""Changes by readers: mark read or unread, archive, snooze, mark the feed as seen. Idempotent.

A notification is read as a whole, not per channel. ``marked_read_at`` is when it was first marked
as read. Its in-app delivery then becomes ``read`` and stays so. ``unread_at`` is when it was marked
as unread, and ``is_read`` is then false until the next read.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.cursor import Cursor

from domain.channels import INBOX
from domain.states import SUCCEEDED, DeliveryStatus
from notifications.documents.notification import NotificationDocument

from .collections import notifications, visits
from .pipelines import (
    MILLISECOND,
    Expression,
    Pipeline,
    derived_fields,
    in_statuses,
    inbox_at,
    update,
)

S = DeliveryStatus
ANY_TIME = {"$gt": datetime(1970, 1, 1, tzinfo=UTC)}
"""Matches any time that exists. Unlike ``$exists``, the index alone can answer this."""
ANY_FLAG = {"$in": [False, True]}
"""Matches any flag, so that queries name the field and use the index in its order."""
MATCH_SENT: Mapping[str, Any] = {"delivery.status": {"$in": sorted(s.value for s in SUCCEEDED)}}
"""Matches a notification that was sent on at least one channel. Only such ones can be unread."""
NOT_ALL_READ: Mapping[str, Any] = {
    "$or": [
        {"is_read": False},
        # Read on another channel: marking also makes the in-app delivery ``read``.
        {"delivery": {"$elemMatch": {"channel": INBOX.value, "status": S.DELIVERED.value}}},
    ]
}
FEED_INDEX = "ntf_user_feed"
MAX_UNREAD_SCANNED = 20_000
"""Unread notifications among which one request searches for those that were sent."""
READ_POSITION_KEPT = timedelta(minutes=10)
"""How long marking everything as read continues where it ended. Later, it begins again."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """A recipient's inbox at one API client, with that client's notifications only."""

    client_id: ObjectId
    user_id: str

    @property
    def key(self) -> str:
        """Hashed key of the inbox, which doesn't reveal the owner."""
        return hashlib.sha256(f"{self.client_id}|{self.user_id}".encode()).hexdigest()

    def match(
        self,
        *,
        since: Mapping[str, Any] = ANY_TIME,
        is_read: Mapping[str, Any] | bool = ANY_FLAG,
        is_archived: Mapping[str, Any] | bool = ANY_FLAG,
    ) -> dict[str, Any]:
        """Return a query for undeleted notifications in the inbox, in the order of its index."""
        return {
            "user_id": self.user_id,
            "client_id": self.client_id,
            "is_active": True,
            "is_archived": is_archived,
            "is_read": is_read,
            "inbox_at": since,
        }

    def match_snoozed(self) -> dict[str, Any]:
        """Return a query for snoozed notifications, in the order of their index."""
        return {
            "user_id": self.user_id,
            "client_id": self.client_id,
            "snoozed_until": ANY_TIME,
            "is_active": True,
        }

    def match_kept(self) -> dict[str, Any]:
        """Return a query for undeleted notifications in the inbox, snoozed ones included."""
        owner = {"user_id": self.user_id, "client_id": self.client_id, "is_active": True}
        return {**owner, "$or": [{"inbox_at": ANY_TIME}, {"snoozed_until": ANY_TIME}]}

    def match_sent(self) -> dict[str, Any]:
        """Return a query for undeleted notifications that the client sent to the recipient."""
        owner = {"user_id": self.user_id, "client_id": self.client_id, "is_active": True}
        return {**owner, **MATCH_SENT}


@dataclass(frozen=True, slots=True)
class Marked:
    """A notification, and whether the call changed it."""

    document: NotificationDocument
    changed: bool


def mark_read(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark a notification as read by its recipient. None if it was not sent to them."""
    return _mark(inbox.match_sent(), notification_id, NOT_ALL_READ, _mark_read_pipeline(now))


def mark_unread(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark as unread, but keep read times of deliveries. None if not sent to the recipient."""
    return _mark(inbox.match_sent(), notification_id, {"is_read": True}, _mark_unread_pipeline(now))


def mark_read_by_client(
    *, client_id: ObjectId, notification_id: ObjectId, now: datetime
) -> Marked | None:
    """Mark a client's notification as read, in any state. None if the client has no such one."""
    own = {"client_id": client_id}
    return _mark(own, notification_id, NOT_ALL_READ, _mark_read_pipeline(now))


def mark_unread_by_client(
    *, client_id: ObjectId, notification_id: ObjectId, now: datetime
) -> Marked | None:
    """Mark a client's notification as unread, in any state. None if the client has no such one."""
    own = {"client_id": client_id}
    return _mark(own, notification_id, {"is_read": True}, _mark_unread_pipeline(now))


def act(*, inbox: Inbox, notification_id: ObjectId, action: str, now: datetime) -> Marked | None:
    """Record the recipient's action and mark the notification as read. The first action stays.

    Return None if the notification was not sent to the recipient.
    """
    chosen = {
        "action": {"$literal": action},
        "acted_at": {"$ifNull": ["$acted_at", now]},
    }
    pipeline = [{"$set": chosen}, *_mark_read_pipeline(now)]
    return _mark(inbox.match_sent(), notification_id, {"action": {"$exists": False}}, pipeline)


@dataclass(frozen=True, slots=True)
class MarkedPart:
    """What was marked as read in a part of a recipient's unread notifications.

    ``has_more`` is whether more of the part may be marked. ``end`` is when the part's oldest
    notification was created, or None if the part reaches the recipient's first one.
    """

    count: int
    has_more: bool
    end: datetime | None


def mark_part_read(
    *, inbox: Inbox, limit: int, now: datetime, before: datetime | None = None
) -> MarkedPart:
    """Mark unread notifications sent to a recipient as read, the newest first, up to ``limit``.

    The part is the MAX_UNREAD_SCANNED newest unread ones, or those created before a time.
    """
    owner = {"user_id": inbox.user_id, "client_id": inbox.client_id, "is_active": True}
    unread: dict[str, Any] = {**owner, "is_read": False}
    created = {"$lt": before} if before is not None else {}
    if created:
        unread["created_at"] = created
    # What wasn't sent stays unread and is read each time: a limit for those with many, whose
    # position comes from the index alone.
    last = _newest_first(unread, {"_id": 0, "created_at": 1}).skip(MAX_UNREAD_SCANNED).limit(1)
    end = next((position["created_at"] for position in last), None)
    if end is not None:
        unread["created_at"] = {**created, "$gte": end}
    found = _newest_first({**unread, **MATCH_SENT}, {"_id": 1}).limit(limit)
    ids = [document["_id"] for document in found]
    if not ids:
        return MarkedPart(0, has_more=False, end=end)
    still_unread = {"_id": {"$in": ids}, "is_read": False, **MATCH_SENT}
    result = notifications().update_many(still_unread, _mark_read_pipeline(now))
    return MarkedPart(result.modified_count, has_more=len(ids) == limit, end=end)


def read_position(*, inbox: Inbox, now: datetime) -> datetime | None:
    """Return where marking everything as read ended lately without being complete, or None."""
    visit = visits().find_one({"_id": inbox.key}, {"read_before": 1, "read_at": 1})
    is_recent = visit is not None and visit.get("read_at", now) > now - READ_POSITION_KEPT
    return visit.get("read_before") if visit is not None and is_recent else None


def save_read_position(*, inbox: Inbox, before: datetime | None, now: datetime) -> None:
    """Record that what was created before a time is still to be marked as read. None: nothing."""
    if before is None:
        done = {"$unset": {"read_before": "", "read_at": ""}}
        visits().update_one({"_id": inbox.key}, done)
        return
    # A visit ends by its ``seen_until``. What is older than the position is marked in a moment.
    position = {"read_before": before, "read_at": now}
    change = {"$set": position, "$setOnInsert": {"seen_until": before}}
    visits().update_one({"_id": inbox.key}, change, upsert=True)


def _newest_first(
    query: Mapping[str, Any], fields: Mapping[str, int]
) -> Cursor[NotificationDocument]:
    found = notifications().find(query, fields)
    return found.sort([("created_at", -1), ("_id", -1)]).hint(FEED_INDEX)


def archive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Archive a notification, which ends its snooze. None if it is not in the inbox."""
    archived = {"is_archived": True, "archived_at": now, "snoozed_until": "$$REMOVE"}
    return _place(inbox, notification_id, {"is_archived": False}, archived, now)


def unarchive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Move a notification back from the archive. None if it is not in the inbox."""
    unarchived = {"is_archived": False, "archived_at": "$$REMOVE"}
    return _place(inbox, notification_id, {"is_archived": True}, unarchived, now)


def snooze(
    *, inbox: Inbox, notification_id: ObjectId, until: datetime, now: datetime
) -> Marked | None:
    """Take a notification out of the inbox until a time. None if it is not in the inbox."""
    snoozed = {"snoozed_until": until, "is_archived": False, "archived_at": "$$REMOVE"}
    return _place(inbox, notification_id, {"snoozed_until": {"$ne": until}}, snoozed, now)


def unsnooze(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Put a snoozed notification back as it was. None if it is not in the inbox."""
    back = {"snoozed_until": "$$REMOVE"}
    return _place(inbox, notification_id, {"snoozed_until": ANY_TIME}, back, now)


def due_snoozes(*, now: datetime, limit: int) -> list[NotificationDocument]:
    """Return snoozed notifications whose time has come."""
    found = notifications().find({"snoozed_until": {"$lte": now}}, {"client_id": 1, "user_id": 1})
    return list(found.limit(limit))


def resurface(*, ids: Sequence[ObjectId], now: datetime) -> int:
    """Put snoozed notifications back as new and unread. Return how many changed.

    One that has expired comes back as it was.
    """
    is_expired = {"$lte": [{"$ifNull": ["$expires_at", now + MILLISECOND]}, now]}

    def unless_expired(name: str) -> Expression:
        return {"$cond": [is_expired, {"$ifNull": [f"${name}", "$$REMOVE"]}, now]}

    back = {
        "snoozed_until": "$$REMOVE",
        "resurfaced_at": unless_expired("resurfaced_at"),
        "unread_at": unless_expired("unread_at"),
        "updated_at": now,
    }
    due = {"_id": {"$in": list(ids)}, "snoozed_until": {"$lte": now}}
    changed = notifications().update_many(due, [{"$set": back}, {"$set": derived_fields(now)}])
    return changed.modified_count


def mark_seen(*, inbox: Inbox, until: datetime) -> None:
    """Record that the owner has seen everything up to ``until``. An earlier time has no effect."""
    visits().update_one({"_id": inbox.key}, {"$max": {"seen_until": until}}, upsert=True)


def _mark_read_pipeline(now: datetime) -> Pipeline:
    marks = {"unread_at": "$$REMOVE", "marked_read_at": {"$ifNull": ["$marked_read_at", now]}}
    return update(
        condition=in_statuses(INBOX, [S.DELIVERED]),
        changes={"status": S.READ.value, "read_at": now},
        now=now,
        extra_fields=marks,
    )


def _mark_unread_pipeline(now: datetime) -> Pipeline:
    return [{"$set": {"unread_at": now, "updated_at": now}}, {"$set": derived_fields(now)}]


def _place(
    inbox: Inbox,
    notification_id: ObjectId,
    unless_done: Mapping[str, Any],
    changes: Mapping[str, Expression],
    now: datetime,
) -> Marked | None:
    """Change where in the inbox a notification is."""
    pipeline = [{"$set": {**changes, "updated_at": now}}, {"$set": {"inbox_at": inbox_at()}}]
    return _mark(inbox.match_kept(), notification_id, unless_done, pipeline)


def _mark(
    owner: Mapping[str, Any],
    notification_id: ObjectId,
    unless_done: Mapping[str, Any],
    changes: Pipeline,
) -> Marked | None:
    """Change a notification unless that is done already. Return it in both cases, else None."""
    wanted = {**owner, "_id": notification_id}
    changed = notifications().find_one_and_update(
        {"$and": [wanted, unless_done]}, changes, return_document=ReturnDocument.AFTER
    )
    if changed is not None:
        return Marked(changed, changed=True)
    document = notifications().find_one(wanted)
    return Marked(document, changed=False) if document is not None else None
