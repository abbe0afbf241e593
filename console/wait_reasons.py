"""Why a notification waits, and until when, in words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.errors import FailureCode
from domain.states import OPEN, Channel, DeliveryStatus

S = DeliveryStatus


class WaitReason(StrEnum):
    """What something that is open waits for."""

    SCHEDULE = "schedule"
    QUIET_HOURS = "quiet_hours"
    PROVIDER_HELD = "circuit"
    RATE_LIMIT = "rate"
    RETRY = "retry"
    FALLBACK = "stand_in"
    RECEIPT = "report"
    WORKER = "worker"


WAIT_REASON_LABELS: Mapping[WaitReason, tuple[str, str]] = {
    WaitReason.SCHEDULE: ("Its time", "it was scheduled"),
    WaitReason.QUIET_HOURS: ("Quiet hours", "the person is left alone until then"),
    WaitReason.PROVIDER_HELD: ("Provider", "the provider takes nothing at present"),
    WaitReason.RATE_LIMIT: ("Rate limit", "the provider's rate is used up"),
    WaitReason.RETRY: ("Another try", "the last one failed"),
    WaitReason.FALLBACK: ("Another channel", "it stands in if that one does not deliver"),
    WaitReason.RECEIPT: ("A report", "nobody knows whether it went"),
    WaitReason.WORKER: ("A worker", "it is due or being sent"),
}
"""The reasons as labels, and half a sentence that explains them."""
_REASON_BY_CODE: Mapping[str, WaitReason] = {
    FailureCode.QUIET_HOURS.value: WaitReason.QUIET_HOURS,
    FailureCode.CHANNEL_UNAVAILABLE.value: WaitReason.PROVIDER_HELD,
    FailureCode.RATE_LIMITED.value: WaitReason.RATE_LIMIT,
    FailureCode.OUTCOME_UNKNOWN.value: WaitReason.RECEIPT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One channel that is open."""

    channel: Channel
    reason: WaitReason
    until: datetime | None
    """When it is looked at next; None while a worker has it."""


def find_waits(delivery: Any, *, now: datetime) -> list[Wait]:
    """Return what is open of a notification's deliveries, the next to be looked at first."""
    found = [_wait(one, now=now) for one in delivery if one.status in OPEN]
    return sorted(found, key=lambda one: one.until or now)


def _wait(one: Any, *, now: datetime) -> Wait:
    return Wait(
        channel=Channel(one.channel), reason=_reason(one, now=now), until=one.next_attempt_at
    )


def _reason(one: Any, *, now: datetime) -> WaitReason:
    if one.status == S.UNKNOWN:
        return WaitReason.RECEIPT
    if one.status == S.SENDING or one.claim is not None:
        return WaitReason.WORKER
    if one.next_attempt_at is None or one.next_attempt_at <= now:
        return WaitReason.WORKER
    if one.failure_code in _REASON_BY_CODE:
        return _REASON_BY_CODE[one.failure_code]
    if one.attempt_count:
        return WaitReason.RETRY
    return WaitReason.FALLBACK if one.instead_of else WaitReason.SCHEDULE


def wait_condition(reason: WaitReason, *, now: datetime) -> dict[str, Any]:
    """Return what holds for a stored delivery that waits for this: the same rule for MongoDB."""
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
    fallback_condition = {"$ne": None} if reason is WaitReason.FALLBACK else None
    return waiting | {"instead_of": fallback_condition}
