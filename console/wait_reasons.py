"""Why a notification waits, and until when, in words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.errors import FailureCode
from domain.states import OPEN, Channel, DeliveryStatus

S = DeliveryStatus


class Reason(StrEnum):
    """What something that is open waits for."""

    SCHEDULE = "schedule"
    QUIET_HOURS = "quiet_hours"
    CIRCUIT = "circuit"
    RATE = "rate"
    RETRY = "retry"
    STAND_IN = "stand_in"
    REPORT = "report"
    WORKER = "worker"


WORDS: Mapping[Reason, tuple[str, str]] = {
    Reason.SCHEDULE: ("Its time", "it was scheduled"),
    Reason.QUIET_HOURS: ("Quiet hours", "the person is left alone until then"),
    Reason.CIRCUIT: ("Provider", "the provider takes nothing at present"),
    Reason.RATE: ("Rate limit", "the provider's rate is used up"),
    Reason.RETRY: ("Another try", "the last one failed"),
    Reason.STAND_IN: ("Another channel", "it stands in if that one does not deliver"),
    Reason.REPORT: ("A report", "nobody knows whether it went"),
    Reason.WORKER: ("A worker", "it is due or being sent"),
}
"""The reasons as labels, and half a sentence that explains them."""
_BY_CODE: Mapping[str, Reason] = {
    FailureCode.QUIET_HOURS.value: Reason.QUIET_HOURS,
    FailureCode.CHANNEL_UNAVAILABLE.value: Reason.CIRCUIT,
    FailureCode.RATE_LIMITED.value: Reason.RATE,
    FailureCode.OUTCOME_UNKNOWN.value: Reason.REPORT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One channel that is open."""

    channel: Channel
    reason: Reason
    until: datetime | None
    """When it is looked at next; None while a worker has it."""


def waits(delivery: Any, *, now: datetime) -> list[Wait]:
    """Return what is open of a notification's deliveries, the next to be looked at first."""
    found = [_wait(one, now=now) for one in delivery if one.status in OPEN]
    return sorted(found, key=lambda one: one.until or now)


def _wait(one: Any, *, now: datetime) -> Wait:
    return Wait(
        channel=Channel(one.channel), reason=_reason(one, now=now), until=one.next_attempt_at
    )


def _reason(one: Any, *, now: datetime) -> Reason:
    if one.status == S.UNKNOWN:
        return Reason.REPORT
    if one.status == S.SENDING or one.claim is not None:
        return Reason.WORKER
    if one.next_attempt_at is None or one.next_attempt_at <= now:
        return Reason.WORKER
    if one.failure_code in _BY_CODE:
        return _BY_CODE[one.failure_code]
    if one.attempt_count:
        return Reason.RETRY
    return Reason.STAND_IN if one.instead_of else Reason.SCHEDULE


def condition(reason: Reason, *, now: datetime) -> dict[str, Any]:
    """Return what holds for a stored delivery that waits for this: the same rule for MongoDB."""
    waiting: dict[str, Any] = {"status": S.PENDING.value, "next_attempt_at": {"$gt": now}}
    if reason is Reason.REPORT:
        return {"status": S.UNKNOWN.value}
    if reason is Reason.WORKER:
        held = [{"status": S.SENDING.value}, {"claim": {"$ne": None}}]
        due = {"status": S.PENDING.value, "next_attempt_at": {"$lte": now}}
        return {"$or": [*held, due]}
    codes = [code for code, of in _BY_CODE.items() if of is reason]
    if codes:
        return waiting | {"failure_code": {"$in": codes}}
    waiting["failure_code"] = {"$nin": list(_BY_CODE)}
    if reason is Reason.RETRY:
        return waiting | {"attempt_count": {"$gt": 0}}
    waiting["attempt_count"] = 0
    stands_in = {"$ne": None} if reason is Reason.STAND_IN else None
    return waiting | {"instead_of": stands_in}
