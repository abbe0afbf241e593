"""What its owner does to a notification in the inbox: read, unread, archive; and look at the feed.

Each is done once: whoever does it again changes nothing. The in-app delivery is raised to ``read``
and never lowered. ``unread_at`` says that the owner wants it to be unread all the same: then
``is_read`` is false until it is read in the inbox again.
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
"""Holds for any time, and not for a missing one: unlike ``$exists`` the index alone can tell."""
ANY_FLAG = {"$in": [False, True]}
"""Holds for any flag. It is named all the same, so that one index serves in its order."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """One person's inbox, as one API client fills it. No other client's notifications are in it."""

    client_id: ObjectId
    user_id: str

    @property
    def key(self) -> str:
        """What names it where nobody needs to read whose it is."""
        return hashlib.sha256(f"{self.client_id}|{self.user_id}".encode()).hexdigest()

    def match(
        self,
        *,
        since: Mapping[str, Any] = ANY_TIME,
        is_read: Mapping[str, Any] | bool = ANY_FLAG,
        is_archived: Mapping[str, Any] | bool = ANY_FLAG,
    ) -> dict[str, Any]:
        """Return what holds for the notifications in it, in the order of the index ``ntf_inbox``.

        They were delivered in-app and not deleted since.
        """
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
    """A notification as it is now, and whether this made it so."""

    document: Document
    changed: bool


def mark_read(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark a notification as read by its owner; None if it is not in the inbox."""
    unread = {
        "$or": [
            {"delivery": {"$elemMatch": _in_app(S.DELIVERED)}},
            {"unread_at": {"$exists": True}},
        ]
    }
    return _mark(inbox, notification_id, unread, _mark_read_pipeline(now))


def mark_unread(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Mark what was read as unread; None if it is not in the inbox.

    That it was read stays on record in its delivery.
    """
    changes = [{"$set": {"unread_at": now, "updated_at": now}}, {"$set": derived_fields(now)}]
    return _mark(inbox, notification_id, {"is_read": True}, changes)


def mark_all_read(*, inbox: Inbox, now: datetime) -> int:
    """Mark everything in an inbox as read; return how many were not."""
    result = notifications().update_many(inbox.match(is_read=False), _mark_read_pipeline(now))
    return result.modified_count


def archive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Put a notification away, read or not; None if it is not in the inbox."""
    put_away = {"is_archived": True, "archived_at": now, "updated_at": now}
    return _mark(inbox, notification_id, {"is_archived": False}, [{"$set": put_away}])


def unarchive(*, inbox: Inbox, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Put a notification back among the others; None if it is not in the inbox."""
    put_back = {"is_archived": False, "archived_at": "$$REMOVE", "updated_at": now}
    return _mark(inbox, notification_id, {"is_archived": True}, [{"$set": put_back}])


def mark_seen(*, inbox: Inbox, until: datetime) -> None:
    """Note that the owner has seen what was delivered ``until`` then; it is never taken back."""
    visits().update_one({"_id": inbox.key}, {"$max": {"seen_until": until}}, upsert=True)


def _in_app(status: DeliveryStatus) -> dict[str, str]:
    return {"channel": Channel.IN_APP.value, "status": status.value}


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
    """Change a notification of an inbox that is not yet as wanted; return it in either case."""
    wanted = {**inbox.match(), "_id": notification_id}
    changed = notifications().find_one_and_update(
        {"$and": [wanted, unless_done]}, changes, return_document=ReturnDocument.AFTER
    )
    if changed is not None:
        return Marked(changed, changed=True)
    document = notifications().find_one(wanted)
    return Marked(document, changed=False) if document is not None else None
