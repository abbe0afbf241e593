"""Reading broadcasts: one, a client's list, and what became of their notifications."""

from collections.abc import Mapping
from typing import Any

import pymongo
from bson import ObjectId
from pymongo.errors import PyMongoError

from domain.states import NotificationStatus
from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page

from .documents import Document

NEWEST_FIRST = (("created_at", -1), ("_id", -1))
COUNT_SECONDS = 2.0
"""How long counting a broadcast's notifications may take: about a million of them."""
WITHOUT_USER_IDS = {"user_ids": 0}
"""Nobody reads 10,000 ids to know how far a broadcast is."""
UNFINISHED = (
    NotificationStatus.CREATED,
    NotificationStatus.QUEUED,
    NotificationStatus.PROCESSING,
    NotificationStatus.RETRYING,
)
"""What a notification may be as a whole while any of its deliveries is open."""


def one(broadcast_id: ObjectId, *, client_id: ObjectId | None = None) -> Document | None:
    """Return a broadcast; of one client only, if that is given. Raises PyMongoError."""
    wanted: dict[str, Any] = {"_id": broadcast_id}
    if client_id is not None:
        wanted["client_id"] = client_id
    return collection("broadcasts").find_one(wanted, WITHOUT_USER_IDS)


def page(*, client_id: ObjectId, limit: int, place: Cursor | None = None) -> Page:
    """Return up to ``limit`` of a client's broadcasts, newest first. Raises PyMongoError."""
    return paging.page(
        "broadcasts",
        {"client_id": client_id},
        order=NEWEST_FIRST,
        limit=limit,
        place=place,
        fields=WITHOUT_USER_IDS,
    )


def figures(broadcast_id: ObjectId) -> Mapping[NotificationStatus, int] | None:
    """Return how many of a broadcast's notifications are in each status; None if it takes too long.

    Counted from an index alone. Raises PyMongoError for anything else that goes wrong.
    """
    pipeline: list[Mapping[str, Any]] = [
        {"$match": {"broadcast_id": broadcast_id}},
        {"$group": {"_id": "$status", "count": {"$sum": 1}}},
    ]
    try:
        with pymongo.timeout(COUNT_SECONDS):
            found = list(collection("notifications").aggregate(pipeline, hint="ntf_broadcast"))
    except PyMongoError as error:
        if error.timeout:
            return None
        raise
    counts = {NotificationStatus(row["_id"]): int(row["count"]) for row in found}
    return {status: counts[status] for status in NotificationStatus if status in counts}


def open_of(broadcast_id: ObjectId) -> dict[str, Any]:
    """Return what holds for a broadcast's notifications of which anything is open."""
    return {
        "broadcast_id": broadcast_id,
        "status": {"$in": [status.value for status in UNFINISHED]},
    }


def has_open(broadcast_id: ObjectId) -> bool:
    """Return whether anything of a broadcast is pending, being sent, or in doubt."""
    found = collection("notifications").find_one(
        open_of(broadcast_id), {"_id": 1}, hint="ntf_broadcast"
    )
    return found is not None
