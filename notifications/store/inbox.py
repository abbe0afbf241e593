"""Changes by the owner of an inbox: mark read or unread, archive, mark the feed as seen.

Each is idempotent. The in-app delivery is raised to ``read`` and never lowered. ``unread_at``
records that the owner marked it as unread: then ``is_read`` is false until the next read.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.states import Channel, DeliveryStatus

from .collections import notifications, visits
from .documents import Document
from .pipelines import Pipeline, derived_fields, in_statuses, update

S = DeliveryStatus
ANY_TIME = {"$gt": datetime(1970, 1, 1, tzinfo=UTC)}
"""Matches any time but not a missing one; unlike ``$exists``, the index alone decides it."""
ANY_FLAG = {"$in": [False, True]}
"""Matches any flag. The field is named so that one index serves in its order."""


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


@dataclass(frozen=True, slots=True)
class Marked:
    """A notification, and whether the call changed it."""

    document: Document
    changed: bool


def mark_read(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark a notification as read by its owner; None if it is not in the inbox."""
    delivered = {"channel": Channel.IN_APP.value, "status": S.DELIVERED.value}
    unread = {"$or": [{"delivery": {"$elemMatch": delivered}}, {"unread_at": {"$exists": True}}]}
    return _mark(inbox, notification_id, unread, _mark_read_pipeline(now))


def mark_unread(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark as unread; the delivery keeps its read time. None if it is not in the inbox."""
    changes = [{"$set": {"unread_at": now, "updated_at": now}}, {"$set": derived_fields(now)}]
    return _mark(inbox, notification_id, {"is_read": True}, changes)


def mark_all_read(*, inbox: Inbox, now: datetime) -> int:
    """Mark an inbox as read; return how many notifications changed."""
    result = notifications().update_many(inbox.match(is_read=False), _mark_read_pipeline(now))
    return result.modified_count


def archive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Archive a notification, read or not; None if it is not in the inbox."""
    archived = {"is_archived": True, "archived_at": now, "updated_at": now}
    return _mark(inbox, notification_id, {"is_archived": False}, [{"$set": archived}])


def unarchive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Move a notification back from the archive; None if it is not in the inbox."""
    unarchived = {"is_archived": False, "archived_at": "$$REMOVE", "updated_at": now}
    return _mark(inbox, notification_id, {"is_archived": True}, [{"$set": unarchived}])


def mark_seen(*, inbox: Inbox, until: datetime) -> None:
    """Record that the owner has seen everything delivered until ``until``; it never goes back."""
    visits().update_one({"_id": inbox.key}, {"$max": {"seen_until": until}}, upsert=True)


def _mark_read_pipeline(now: datetime) -> Pipeline:
    return update(
        condition=in_statuses(Channel.IN_APP, [S.DELIVERED]),
        changes={"status": S.READ.value, "read_at": now},
        now=now,
        extra_fields={"unread_at": "$$REMOVE"},
    )


def _mark(
    inbox: Inbox, notification_id: ObjectId, unless_done: Mapping[str, Any], changes: Pipeline
) -> Marked | None:
    """Change a notification that is not yet in the wanted state; return it in either case."""
    wanted = {**inbox.match(), "_id": notification_id}
    changed = notifications().find_one_and_update(
        {"$and": [wanted, unless_done]}, changes, return_document=ReturnDocument.AFTER
    )
    if changed is not None:
        return Marked(changed, changed=True)
    document = notifications().find_one(wanted)
    return Marked(document, changed=False) if document is not None else None
