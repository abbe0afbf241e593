"""Counts one client's newest notifications for the API, up to a cap."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bson import ObjectId

from domain.channels import PUSH
from domain.states import SUCCEEDED, AttemptStatus, DeliveryStatus, NotificationStatus
from notifications.documents.notification import NOTIFICATIONS
from notifyproject.db.collections import collection

from .metrics import NONE

SUCCEEDED_NAMES = sorted(status.value for status in SUCCEEDED)
CAP = 100_000
"""Maximum of notifications to count. The newest are used."""
PLATFORM_CAP = 10_000
"""Maximum by platform, since the attempts of each notification are read."""


class GroupBy(StrEnum):
    """Field by which notifications are grouped."""

    STATUS = "status"
    TYPE = "type"
    CHANNEL = "channel"
    PROVIDER = "provider"
    PLATFORM = "platform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Counts of one status, type, channel, provider, or platform.

    By channel and provider, the counts are of deliveries. By platform, they are of the devices that
    a push was sent to.
    """

    value: str
    total: int
    sent: int
    """Sent or in the inbox, on at least one channel."""
    failed: int
    average_attempts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts by group."""

    groups: Sequence[Group]
    counted: int
    is_complete: bool
    """Whether all notifications were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFilter:
    """Selects one client's notifications, optionally by user and creation time."""

    client_id: ObjectId
    user_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def match(self) -> dict[str, Any]:
        """Return the filter as a MongoDB query."""
        match: dict[str, Any] = {"client_id": self.client_id, "is_active": True}
        if self.user_id is not None:
            match["user_id"] = self.user_id
        limits = {"$gte": self.created_after, "$lt": self.created_before}
        if created := {name: at for name, at in limits.items() if at is not None}:
            match["created_at"] = created
        return match


def count_notifications(selection: StatisticsFilter, *, by: GroupBy) -> Statistics:
    """Count the newest notifications by group, the largest group first.

    By channel and provider, each delivery counts; by platform, each device.
    """
    match, cap = selection.match(), CAP
    options: dict[str, Any] = {
        "hint": "ntf_client_created" if selection.user_id is None else "ntf_user_feed"
    }
    if by is GroupBy.PLATFORM:
        cap = PLATFORM_CAP
        statuses = [status.value for status in DeliveryStatus]
        push = {"channel": PUSH.value, "status": {"$in": statuses}}
        match["delivery"] = {"$elemMatch": push}
        if selection.user_id is None:
            # Without a hint: MongoDB tries the index of pushes and that of the client's list.
            options = {}
    pipeline: list[dict[str, Any]] = [
        {"$match": match},
        {"$sort": {"created_at": -1, "_id": -1}},
        {"$limit": cap},
        *_STAGES[by],
        {
            "$group": {
                "_id": "$value",
                "total": {"$sum": {"$toInt": "$is_counted"}},
                "sent": {"$sum": {"$toInt": "$is_sent"}},
                "failed": {"$sum": {"$toInt": "$is_failed"}},
                "attempts": {"$sum": "$attempts"},
                "counted": {"$sum": {"$toInt": "$is_first"}},
            }
        },
    ]
    found = list(collection(NOTIFICATIONS.name).aggregate(pipeline, **options))
    groups = [
        Group(
            value=row["_id"],
            total=row["total"],
            sent=row["sent"],
            failed=row["failed"],
            average_attempts=round(row["attempts"] / row["total"], 2),
        )
        for row in sorted(found, key=lambda row: (-row["total"], row["_id"]))
        if row["total"]
    ]
    counted = sum(row["counted"] for row in found)
    return Statistics(groups=groups, counted=counted, is_complete=counted < cap)


def _by_field(by: GroupBy) -> list[dict[str, Any]]:
    succeeded = {"$setIntersection": ["$delivery.status", SUCCEEDED_NAMES]}
    return [
        {
            "$project": {
                "value": f"${by.value}",
                "is_sent": {"$ne": [succeeded, []]},
                "is_failed": {"$eq": ["$status", NotificationStatus.FAILED.value]},
                "attempts": {"$sum": "$delivery.attempt_count"},
                "is_first": {"$literal": True},
                "is_counted": {"$literal": True},
            }
        }
    ]


def _by_delivery(value: Any) -> list[dict[str, Any]]:
    return [
        {"$unwind": {"path": "$delivery", "includeArrayIndex": "place"}},
        {
            "$project": {
                "value": value,
                "is_sent": {"$in": ["$delivery.status", SUCCEEDED_NAMES]},
                "is_failed": {"$eq": ["$delivery.status", DeliveryStatus.FAILED.value]},
                "attempts": "$delivery.attempt_count",
                "is_first": {"$eq": ["$place", 0]},
                "is_counted": {"$literal": True},
            }
        },
    ]


def _by_device() -> list[dict[str, Any]]:
    """Return the stages that count each device of a push once, with its attempts."""
    has_status = {status: {"$eq": ["$status", status.value]} for status in AttemptStatus}
    was_sent = {"$or": [has_status[AttemptStatus.SENT], {"$gt": ["$delivered_at", None]}]}
    devices = {
        "from": "delivery_attempts",
        "localField": "_id",
        "foreignField": "notification_id",
        "as": "device",
        "pipeline": [
            {
                "$match": {
                    "device_id": {"$exists": True},
                    "status": {"$ne": AttemptStatus.EXPIRED.value},
                }
            },
            {
                "$group": {
                    "_id": "$device_id",
                    "platform": {"$max": "$platform"},
                    "attempts": {"$sum": 1},
                    "is_sent": {"$max": was_sent},
                    "is_failed": {"$max": has_status[AttemptStatus.FAILED]},
                }
            },
        ],
    }
    return [
        {"$project": {"_id": 1}},
        {"$lookup": devices},
        {
            "$unwind": {
                "path": "$device",
                "includeArrayIndex": "place",
                "preserveNullAndEmptyArrays": True,
            }
        },
        {
            "$project": {
                "value": {"$ifNull": ["$device.platform", NONE]},
                "is_sent": {"$ifNull": ["$device.is_sent", False]},
                "is_failed": {"$and": ["$device.is_failed", {"$not": ["$device.is_sent"]}]},
                "attempts": {"$ifNull": ["$device.attempts", 0]},
                # A push that wasn't attempted has no device, and no place.
                "is_first": {"$in": ["$place", [0, None]]},
                "is_counted": {"$gt": ["$place", None]},
            }
        },
    ]


_STAGES = {
    GroupBy.STATUS: _by_field(GroupBy.STATUS),
    GroupBy.TYPE: _by_field(GroupBy.TYPE),
    GroupBy.CHANNEL: _by_delivery("$delivery.channel"),
    GroupBy.PROVIDER: _by_delivery({"$ifNull": ["$delivery.provider", NONE]}),
    GroupBy.PLATFORM: _by_device(),
}
