"""What a provider reports later: applied in any order, any number of times, to one end."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId

from ..errors import REPORTED, FailureCode
from ..states import TRANSITIONS, DeliveryStatus
from .collections import notifications
from .documents import ERROR_LENGTH, Reference
from .expressions import Computed, Expression, of_channel, update

S = DeliveryStatus

RANK = {S.SENT: 1, S.DELIVERED: 2, S.FAILED: 3, S.READ: 4}
"""A report is applied if it ranks higher than what stands.

A failure the provider reported outranks delivered: a mail server may take a message and bounce it
later. A failure that we declared ranks lowest: any report knows better.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One provider event about one delivery, in the words of the store."""

    reference: Reference
    status: DeliveryStatus
    """Sent, delivered, read, or failed."""
    at: datetime
    """When the provider says that it happened."""
    provider: str
    provider_message_id: str | None = None
    code: FailureCode | None = None
    reason: str | None = None


def apply_report(report: Report, *, now: datetime) -> bool:
    """Apply a report if it says more than is known; return whether it changed the delivery."""
    lower = [
        status.value
        for status in DeliveryStatus
        if report.status in TRANSITIONS[status] and RANK.get(status, 0) < RANK[report.status]
    ]
    guard: dict[str, Any] = {
        "channel": report.reference.channel.value,
        "$or": [
            {"status": {"$in": lower}},
            # Declared by us, not reported: see RANK.
            {"status": S.FAILED.value, "failure_code": {"$nin": _reported_codes()}},
        ],
    }
    if report.status is S.FAILED:
        # That an earlier attempt failed says nothing once there is a later one.
        guard["attempt_count"] = {"$lte": report.reference.attempt_number}
    outranked: Expression = {
        "$or": [
            {"$in": ["$$d.status", lower]},
            {
                "$and": [
                    {"$eq": ["$$d.status", S.FAILED.value]},
                    {"$not": [{"$in": ["$$d.failure_code", _reported_codes()]}]},
                ]
            },
        ]
    }
    pipeline = update(
        condition={"$and": [of_channel(report.reference.channel), outranked]},
        changes=_changes(report),
        now=now,
        error=_error(report, now),
    )
    result = notifications().update_one(
        {"_id": report.reference.notification_id, "delivery": {"$elemMatch": guard}}, pipeline
    )
    return result.modified_count == 1


def is_known(notification_id: ObjectId) -> bool:
    """Return whether there is such a notification."""
    return notifications().find_one({"_id": notification_id}, {"_id": 1}) is not None


def _reported_codes() -> list[str]:
    return sorted(code.value for code in REPORTED)


def _changes(report: Report) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "status": report.status.value,
        "claim": None,
        "next_attempt_at": None,
        "provider": report.provider,
        "provider_message_id": Computed(
            {"$ifNull": ["$$d.provider_message_id", {"$literal": report.provider_message_id}]}
        ),
    }
    if report.status is S.FAILED:
        return changes | {
            "failed_at": report.at,
            "failure_code": (report.code or FailureCode.REPORTED_FAILED).value,
            "failure_reason": (report.reason or "")[:ERROR_LENGTH],
        }
    changes |= {"failed_at": None, "failure_code": None, "failure_reason": None}
    changes["sent_at"] = Computed({"$ifNull": ["$$d.sent_at", report.at]})
    if report.status is S.DELIVERED:
        changes["delivered_at"] = report.at
    if report.status is S.READ:
        changes["delivered_at"] = Computed({"$ifNull": ["$$d.delivered_at", report.at]})
        changes["read_at"] = report.at
    return changes


def _error(report: Report, now: datetime) -> dict[str, Any] | None:
    if report.status is not S.FAILED:
        return None
    return {
        "timestamp": now,
        "channel": report.reference.channel.value,
        "code": (report.code or FailureCode.REPORTED_FAILED).value,
        "error": (report.reason or "")[:ERROR_LENGTH],
    }
