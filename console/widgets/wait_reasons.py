"""The reason why an open delivery waits, and until when. Pure.

Deliveries are stored documents or rows of the admin: both are read by field name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.errors import FailureCode
from domain.states import OPEN, Channel, DeliveryStatus

S = DeliveryStatus


class WaitReason(StrEnum):
    """The reason why an open delivery waits."""

    SCHEDULE = "schedule"
    QUIET_HOURS = "quiet_hours"
    PROVIDER_HELD = "circuit"
    RATE_LIMIT = "rate"
    RETRY = "retry"
    FALLBACK = "stand_in"
    RECEIPT = "report"
    WORKER = "worker"


HELD = frozenset(
    {
        *(WaitReason.QUIET_HOURS, WaitReason.PROVIDER_HELD),
        *(WaitReason.RATE_LIMIT, WaitReason.FALLBACK),
    }
)
_REASON_BY_CODE: Mapping[str, WaitReason] = {
    FailureCode.QUIET_HOURS.value: WaitReason.QUIET_HOURS,
    FailureCode.CHANNEL_UNAVAILABLE.value: WaitReason.PROVIDER_HELD,
    FailureCode.RATE_LIMITED.value: WaitReason.RATE_LIMIT,
    FailureCode.OUTCOME_UNKNOWN.value: WaitReason.RECEIPT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The wait of one open delivery."""

    channel: Channel
    reason: WaitReason
    until: datetime | None
    """When the delivery is due next; None while a worker holds its lease."""


def find_waits(deliveries: Iterable[Any], *, now: datetime) -> list[Wait]:
    """Return the waits of the open deliveries, the next one due first."""
    found = [
        Wait(
            channel=Channel(field(one, "channel")),
            reason=wait_reason(one, now=now),
            until=field(one, "next_attempt_at"),
        )
        for one in deliveries
        if field(one, "status") in OPEN
    ]
    return sorted(found, key=lambda one: one.until or now)


def wait_reason(delivery: Any, *, now: datetime) -> WaitReason:
    """Return the reason why an open delivery waits."""
    if field(delivery, "status") == S.UNKNOWN:
        return WaitReason.RECEIPT
    if field(delivery, "status") == S.SENDING or field(delivery, "claim") is not None:
        return WaitReason.WORKER
    due_at = field(delivery, "next_attempt_at")
    if due_at is None or due_at <= now:
        return WaitReason.WORKER
    if reason := _REASON_BY_CODE.get(field(delivery, "failure_code")):
        return reason
    if field(delivery, "attempt_count"):
        return WaitReason.RETRY
    return WaitReason.FALLBACK if field(delivery, "instead_of") else WaitReason.SCHEDULE


def wait_condition(reason: WaitReason, *, now: datetime) -> dict[str, Any]:
    """Return the MongoDB condition on a delivery that is equal to :func:`wait_reason`."""
    waiting: dict[str, Any] = {"status": S.PENDING.value, "next_attempt_at": {"$gt": now}}
    if reason is WaitReason.RECEIPT:
        return {"status": S.UNKNOWN.value}
    if reason is WaitReason.WORKER:
        claimed = [{"status": S.SENDING.value}, {"claim": {"$ne": None}}]
        due = {"status": S.PENDING.value, "next_attempt_at": {"$lte": now}}
        return {"$or": [*claimed, due]}
    codes = [code for code, mapped in _REASON_BY_CODE.items() if mapped is reason]
    if codes:
        return waiting | {"failure_code": {"$in": codes}}
    waiting["failure_code"] = {"$nin": list(_REASON_BY_CODE)}
    if reason is WaitReason.RETRY:
        return waiting | {"attempt_count": {"$gt": 0}}
    waiting["attempt_count"] = 0
    return waiting | {"instead_of": {"$ne": None} if reason is WaitReason.FALLBACK else None}


def field(delivery: Any, name: str) -> Any:
    """Return one field of a delivery, which is a stored document or a row of the admin."""
    return delivery.get(name) if isinstance(delivery, Mapping) else getattr(delivery, name, None)
