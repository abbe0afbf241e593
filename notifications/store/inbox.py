"""Writes of readers: mark read or unread, archive, mark the feed as seen.

Each is idempotent. Reading is of the notification, whatever its channels: ``marked_read_at`` is
when it was first marked as read, and its in-app delivery is raised to ``read`` and never lowered.
``unread_at`` records that it was marked as unread: then ``is_read`` is false until the next read.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.states import SUCCEEDED, Channel, DeliveryStatus

from .collections import notifications, visits
from .documents import Document
from .pipelines import Pipeline, derived_fields, in_statuses, update

S = DeliveryStatus
ANY_TIME = {"$gt": datetime(1970, 1, 1, tzinfo=UTC)}
"""Matches any time but not a missing one; unlike ``$exists``, the index alone decides it."""
ANY_FLAG = {"$in": [False, True]}
"""Matches any flag. The field is named so that one index serves in its order."""
MATCH_SENT: Mapping[str, Any] = {"delivery.status": {"$in": sorted(s.value for s in SUCCEEDED)}}
"""Matches a notification that was sent on at least one channel: what is unread if it isn't read."""
NOT_ALL_READ: Mapping[str, Any] = {
    "$or": [
        {"is_read": False},
        # Read on another channel: its in-app delivery becomes read as well.
        {
            "delivery": {
                "$elemMatch": {"channel": Channel.IN_APP.value, "status": S.DELIVERED.value}
            }
        },
    ]
}
FEED_INDEX = "ntf_user_feed"


@dataclass(frozen=True, slots=True)
class Inbox:
    """A recipient's inbox at one API client; it holds that client's notifications only."""

    client_id: ObjectId
    user_id: str

    @property
    def key(self) -> str:
        """Key of the inbox that does not reveal the owner."""
        return hashlib.sha256(f"{self.client_id}|{self.user_id}".encode()).hexdigest()

    def match(
        self,
        *,
        since: Mapping[str, Any] = ANY_TIME,
        is_read: Mapping[str, Any] | bool = ANY_FLAG,
        is_archived: Mapping[str, Any] | bool = ANY_FLAG,
    ) -> dict[str, Any]:
        """Return a filter for what is in it and not deleted, in the order of its index."""
        return {
            "user_id": self.user_id,
            "client_id": self.client_id,
            "is_active": True,
            "is_archived": is_archived,
            "is_read": is_read,
            "inbox_at": since,
        }

    def match_sent(self) -> dict[str, Any]:
        """Return a filter for undeleted notifications from the client to the recipient."""
        owner = {"user_id": self.user_id, "client_id": self.client_id, "is_active": True}
        return {**owner, **MATCH_SENT}


@dataclass(frozen=True, slots=True)
class Marked:
    """A notification, and whether the call changed it."""

    document: Document
    changed: bool


def mark_read(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark a notification as read by its recipient; None if it was not sent to them."""
    return _mark(inbox.match_sent(), notification_id, NOT_ALL_READ, _mark_read_pipeline(now))


def mark_unread(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark as unread; deliveries keep their read time. None if it was not sent to the recipient."""
    return _mark(inbox.match_sent(), notification_id, {"is_read": True}, _mark_unread_pipeline(now))


def mark_read_by_client(
    *, client_id: ObjectId, notification_id: ObjectId, now: datetime
) -> Marked | None:
    """Mark a client's notification as read, in any state; None if the client has none such."""
    own = {"client_id": client_id}
    return _mark(own, notification_id, NOT_ALL_READ, _mark_read_pipeline(now))


def mark_unread_by_client(
    *, client_id: ObjectId, notification_id: ObjectId, now: datetime
) -> Marked | None:
    """Mark a client's notification as unread, as :func:`mark_unread`."""
    own = {"client_id": client_id}
    return _mark(own, notification_id, {"is_read": True}, _mark_unread_pipeline(now))


def mark_all_read(*, inbox: Inbox, now: datetime) -> int:
    """Mark all that was sent to a recipient as read; return how many notifications changed."""
    unread = {**inbox.match_sent(), "is_read": False}
    result = notifications().update_many(unread, _mark_read_pipeline(now), hint=FEED_INDEX)
    return result.modified_count


def archive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Archive a notification, read or not; None if it is not in the inbox."""
    archived = {"is_archived": True, "archived_at": now, "updated_at": now}
    return _mark(inbox.match(), notification_id, {"is_archived": False}, [{"$set": archived}])


def unarchive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Move a notification back from the archive; None if it is not in the inbox."""
    unarchived = {"is_archived": False, "archived_at": "$$REMOVE", "updated_at": now}
    return _mark(inbox.match(), notification_id, {"is_archived": True}, [{"$set": unarchived}])


def mark_seen(*, inbox: Inbox, until: datetime) -> None:
    """Record that the owner has seen everything delivered until ``until``; it never goes back."""
    visits().update_one({"_id": inbox.key}, {"$max": {"seen_until": until}}, upsert=True)


def _mark_read_pipeline(now: datetime) -> Pipeline:
    marks = {"unread_at": "$$REMOVE", "marked_read_at": {"$ifNull": ["$marked_read_at", now]}}
    return update(
        condition=in_statuses(Channel.IN_APP, [S.DELIVERED]),
        changes={"status": S.READ.value, "read_at": now},
        now=now,
        extra_fields=marks,
    )


def _mark_unread_pipeline(now: datetime) -> Pipeline:
    return [{"$set": {"unread_at": now, "updated_at": now}}, {"$set": derived_fields(now)}]


def _mark(
    owner: Mapping[str, Any],
    notification_id: ObjectId,
    unless_done: Mapping[str, Any],
    changes: Pipeline,
) -> Marked | None:
    """Change a notification that is not yet in the wanted state; return it in either case."""
    wanted = {**owner, "_id": notification_id}
    changed = notifications().find_one_and_update(
        {"$and": [wanted, unless_done]}, changes, return_document=ReturnDocument.AFTER
    )
    if changed is not None:
        return Marked(changed, changed=True)
    document = notifications().find_one(wanted)
    return Marked(document, changed=False) if document is not None else None
