"""Sending at another time what has not been sent."""

from datetime import datetime

from bson import ObjectId
from pymongo import ReturnDocument

from domain.states import DeliveryStatus

from .collections import notifications
from .documents import Document
from .expressions import Computed, Expression, update

S = DeliveryStatus
UNTOUCHED = [S.PENDING.value, S.SUPPRESSED.value, S.CANCELLED.value]
"""Where a delivery may stand of which nothing has left."""
_FIXED: dict[str, Expression] = {"scheduled_local": "$$REMOVE"}


def reschedule(
    *,
    notification_id: ObjectId,
    send_at: datetime,
    now: datetime,
    is_same_local_time: bool = False,
) -> Document | None:
    """Let a notification be due at ``send_at``; return the document, None if it is too late.

    It is too late once a try has been made on any channel, or something was delivered or has
    expired. A worker that has claimed a delivery but not started loses it; one that has started
    wins. Channels that stand in for another keep their distance to it. An expiry that counts from
    the send time moves with it; one that does not must lie after ``send_at``.
    ``is_same_local_time``: it goes on following the person's own clock.
    """
    touched = {"$or": [{"status": {"$nin": UNTOUCHED}}, {"attempt_count": {"$gt": 0}}]}
    due_at = Computed({"$add": [send_at, {"$subtract": ["$$d.first_due_at", _first_due_at()]}]})
    return notifications().find_one_and_update(
        {
            "_id": notification_id,
            "delivery.status": S.PENDING.value,
            "delivery": {"$not": {"$elemMatch": touched}},
            "$or": [
                {"ttl_seconds": {"$exists": True}},
                {"expires_at": None},
                {"expires_at": {"$gt": send_at}},
            ],
        },
        update(
            condition={"$eq": ["$$d.status", S.PENDING.value]},
            changes={
                "claim": None,
                "claim_count": 0,
                "first_due_at": due_at,
                "next_attempt_at": due_at,
            },
            now=now,
            besides=_times(send_at) | ({} if is_same_local_time else _FIXED),
        ),
        return_document=ReturnDocument.AFTER,
    )


def _times(send_at: datetime) -> dict[str, Expression]:
    """Return the times of a document that follow from its send time."""
    until = {"$add": [send_at, {"$multiply": ["$ttl_seconds", 1000]}]}
    moved = {"$subtract": [send_at, {"$ifNull": ["$scheduled_at", "$created_at"]}]}
    return {
        "scheduled_at": send_at,
        # Without a ttl the sum is null.
        "expires_at": {"$ifNull": [until, "$expires_at", "$$REMOVE"]},
        "purge_at": {"$ifNull": [{"$add": ["$purge_at", moved]}, "$$REMOVE"]},
    }


def _first_due_at() -> Expression:
    """Return when the first of the pending deliveries was to be sent at first."""
    pending = {
        "$filter": {
            "input": "$delivery",
            "as": "one",
            "cond": {"$eq": ["$$one.status", S.PENDING.value]},
        }
    }
    return {"$min": {"$map": {"input": pending, "as": "one", "in": "$$one.first_due_at"}}}
