"""Counts one client's newest notifications for the API, up to a cap."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bson import ObjectId

from domain.states import SUCCEEDED, DeliveryStatus, NotificationStatus
from notifyproject.db.collections import collection

SUCCEEDED_NAMES = sorted(status.value for status in SUCCEEDED)
CAP = 100_000
"""Maximum of notifications to count. The newest are used."""


class GroupBy(StrEnum):
    """Field by which notifications are grouped."""

    STATUS = "status"
    TYPE = "type"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Counts of one status, type, or channel. By channel, the counts are of deliveries."""

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

    @property
    def is_complete(self) -> bool:
        """Whether all notifications were counted."""
        return self.counted < CAP


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
    """Count notifications by status, type, or channel, with the largest group first."""
    pipeline: list[dict[str, Any]] = [
        {"$match": selection.match()},
        {"$sort": {"created_at": -1, "_id": -1}},
        {"$limit": CAP},
        *(_by_channel() if by is GroupBy.CHANNEL else _by_field(by)),
        {
            "$group": {
                "_id": "$value",
                "total": {"$sum": 1},
                "sent": {"$sum": {"$toInt": "$is_sent"}},
                "failed": {"$sum": {"$toInt": "$is_failed"}},
                "attempts": {"$sum": "$attempts"},
                "counted": {"$sum": {"$toInt": "$is_first"}},
            }
        },
    ]
    index = "ntf_client_created" if selection.user_id is None else "ntf_user_feed"
    found = list(collection("notifications").aggregate(pipeline, hint=index))
    groups = [
        Group(
            value=row["_id"],
            total=row["total"],
            sent=row["sent"],
            failed=row["failed"],
            average_attempts=round(row["attempts"] / row["total"], 2),
        )
        for row in sorted(found, key=lambda row: (-row["total"], row["_id"]))
    ]
    return Statistics(groups=groups, counted=sum(row["counted"] for row in found))


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
            }
        }
    ]


def _by_channel() -> list[dict[str, Any]]:
    return [
        {"$unwind": {"path": "$delivery", "includeArrayIndex": "place"}},
        {
            "$project": {
                "value": "$delivery.channel",
                "is_sent": {"$in": ["$delivery.status", SUCCEEDED_NAMES]},
                "is_failed": {"$eq": ["$delivery.status", DeliveryStatus.FAILED.value]},
                "attempts": "$delivery.attempt_count",
                "is_first": {"$eq": ["$place", 0]},
            }
        },
    ]
