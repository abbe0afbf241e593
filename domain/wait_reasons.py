"""Why an open delivery, stored document or row of the admin, waits, and until when. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from .channels import Channel
from .digests import RECHECK
from .errors import FailureCode
from .plans import FIRST_STEP
from .states import OPEN, DeliveryStatus

S = DeliveryStatus
_LIMIT = re.compile(r"\(limit ([^()]{1,64})\)")
"""The name of the limit in a delivery's failure reason."""
_SENTENCE_AND_CODE = re.compile(r"(.+)\. \(([^()]+)\)")


class WaitReason(StrEnum):
    """The reason why an open delivery waits."""

    SCHEDULE = "schedule"
    QUIET_HOURS = "quiet_hours"
    OVER_LIMIT = "over_limit"
    DAILY_UNITS = "daily_units"
    DIGEST = "digest"
    PROVIDER_PAUSED = "provider_paused"
    CIRCUIT_OPEN = "circuit_open"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    RATE_LIMITED = "rate_limited"
    DECRYPTION_FAILED = "decryption_failed"
    RETRY = "retry"
    STEP = "step"  # A later step of the notification's plan
    RECEIPT = "receipt"
    WORKER = "worker"
    UNKNOWN_CHANNEL = "unknown_channel"  # Another version has it


W = WaitReason
HELD = frozenset(W) - {W.SCHEDULE, W.RETRY, W.RECEIPT, W.WORKER}
"""Reasons of held deliveries: all but the send time, a retry, a receipt, and work in progress."""
_REASON_BY_CODE: Mapping[str, WaitReason] = {
    FailureCode.QUIET_HOURS.value: W.QUIET_HOURS,
    FailureCode.OVER_LIMIT.value: W.OVER_LIMIT,
    FailureCode.OVER_DAILY_UNITS.value: W.DAILY_UNITS,
    FailureCode.IN_DIGEST.value: W.DIGEST,
    FailureCode.CHANNEL_UNAVAILABLE.value: W.PROVIDER_UNAVAILABLE,
    FailureCode.DECRYPTION_FAILED.value: W.DECRYPTION_FAILED,
    FailureCode.OUTCOME_UNKNOWN.value: W.RECEIPT,
}
STORED_REASONS = frozenset({W.PROVIDER_PAUSED, W.CIRCUIT_OPEN, W.RATE_LIMITED})
"""Reasons that a delivery's failure code does not give. Its ``held_reason`` holds them."""


OUTAGES = frozenset({W.PROVIDER_PAUSED, W.CIRCUIT_OPEN, W.PROVIDER_UNAVAILABLE})
"""Reasons that end when a provider sends again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A time in which an outage held a delivery. It ends with the delivery's next event."""

    reason: WaitReason
    """One of OUTAGES."""
    provider: str
    """Empty if it is the message's brand that can't send by any."""
    since: datetime
    detail: str = ""
    """Why the circuit opened, who paused the provider and why, or what the brand lacks."""

    def is_same(self, other: "Hold | None") -> bool:
        """Return whether both are the same outage of one provider."""
        return other is not None and (self.reason, self.provider) == (other.reason, other.provider)


def describe_hold(hold: Hold, *, provider: str, is_over: bool) -> str:
    """Return a hold as text: "SendGrid's circuit was open (token expired)".

    ``provider`` is the provider's label.
    """
    verb, sender = "was" if is_over else "is", provider or "its brand"
    states = {
        W.PROVIDER_PAUSED: f"{provider} {verb} paused",
        W.CIRCUIT_OPEN: f"{provider}'s circuit {verb} open",
    }
    text = states.get(hold.reason, f"{sender} {verb} unavailable")
    detail = as_clause(hold.detail)
    return f"{text} ({detail})" if detail else text


def as_clause(detail: str) -> str:
    """Return a provider's failure for use within a sentence: "Provider error, 500"."""
    text = detail.strip().rstrip(".")
    found = _SENTENCE_AND_CODE.fullmatch(text)
    return f"{found[1]}, {found[2]}" if found else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The wait of one open delivery."""

    channel: Channel
    reason: WaitReason
    until: datetime | None  # When the delivery is due next; None while a worker holds its lease
    limit: str | None = None  # Over a limit: its name


def find_waits(deliveries: Iterable[Any], *, now: datetime) -> list[Wait]:
    """Return the waits of the open deliveries, the next one due first."""
    found = [
        _wait_of(delivery, now) for delivery in deliveries if field(delivery, "status") in OPEN
    ]
    return sorted(found, key=lambda wait: wait.until or now)


def _wait_of(delivery: Any, now: datetime) -> Wait:
    reason, until = wait_reason(delivery, now=now), field(delivery, "next_attempt_at")
    if reason is W.DIGEST:
        # The delivery is rechecked only if its digest has missed it.
        until = max(until - RECHECK, now)
    limit = None
    if reason is W.OVER_LIMIT and (found := _LIMIT.search(field(delivery, "failure_reason") or "")):
        limit = found[1]
    return Wait(
        channel=Channel(field(delivery, "channel")), reason=reason, until=until, limit=limit
    )


def wait_reason(delivery: Any, *, now: datetime) -> WaitReason:
    """Return the reason why an open delivery waits."""
    if field(delivery, "status") == S.UNKNOWN:
        return W.RECEIPT
    if field(delivery, "status") == S.SENDING or field(delivery, "claim") is not None:
        return W.WORKER
    if not Channel(field(delivery, "channel")).is_known:
        return W.UNKNOWN_CHANNEL
    due_at = field(delivery, "next_attempt_at")
    return W.WORKER if due_at is None or due_at <= now else _stored_reason(delivery)


def _stored_reason(delivery: Any) -> WaitReason:
    held, code = field(delivery, "held_reason"), field(delivery, "failure_code")
    if reason := WaitReason(held) if held else _REASON_BY_CODE.get(code):
        return reason
    if field(delivery, "attempt_count"):
        return W.RETRY
    return W.STEP if (field(delivery, "step") or 0) > FIRST_STEP else W.SCHEDULE


def wait_condition(reason: WaitReason, *, now: datetime) -> dict[str, Any]:
    """Return the MongoDB condition on a delivery that is equal to :func:`wait_reason`.

    A delivery on an unknown channel also has the reason that it would have on another channel.
    """
    waiting: dict[str, Any] = {"status": S.PENDING.value, "next_attempt_at": {"$gt": now}}
    claimed = [{"status": S.SENDING.value}, {"claim": {"$ne": None}}]
    due = {"status": S.PENDING.value, "next_attempt_at": {"$lte": now}}
    unknown = {"channel": {"$nin": [channel.value for channel in Channel]}}
    of_state: dict[WaitReason, dict[str, Any]] = {
        W.RECEIPT: {"status": S.UNKNOWN.value},
        W.WORKER: {"$or": [*claimed, due]},
        W.UNKNOWN_CHANNEL: {"status": S.PENDING.value, "claim": None, **unknown},
    }
    if reason in of_state:
        return of_state[reason]
    if reason in STORED_REASONS:
        return waiting | {"held_reason": reason.value}
    waiting["held_reason"] = None
    if codes := [code for code, mapped in _REASON_BY_CODE.items() if mapped is reason]:
        return waiting | {"failure_code": {"$in": codes}}
    waiting["failure_code"] = {"$nin": list(_REASON_BY_CODE)}
    if reason is W.RETRY:
        return waiting | {"attempt_count": {"$gt": 0}}
    waiting["attempt_count"] = 0
    is_later = {"$gt": FIRST_STEP}
    return waiting | {"step": is_later if reason is W.STEP else {"$not": is_later}}


def field(delivery: Any, name: str) -> Any:
    """Return one field of a delivery, which is a stored document or a row of the admin."""
    return delivery.get(name) if isinstance(delivery, Mapping) else getattr(delivery, name, None)
