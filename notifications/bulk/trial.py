"""Stops a bulk operation whose deliveries all fail again, as a circuit breaker does.

The first deliveries of a retry or resend are a trial: the others wait until one of them is sent, or
until time has passed without an answer. Later, a run of failures without a success stops it too.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.states import SUCCEEDED, BulkAction, DeliveryStatus
from notifications.documents.notification import NOTIFICATIONS, DeliveryDocument

from .operation import Operation, resend_id

S = DeliveryStatus
TRIAL = 20
"""Failures without a success that stop an operation, and deliveries of its trial."""
PATIENCE = timedelta(seconds=60)
"""An operation goes on if its trial has no answer for this long: workers may be busy."""
CHECK_INTERVAL = timedelta(seconds=2)
_FAILED = frozenset({S.FAILED, S.EXPIRED, S.SUPPRESSED})


class Verdict(StrEnum):
    """Whether an operation goes on."""

    GO_ON = "go_on"
    WAIT = "wait"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of the last deliveries that an operation acted on."""

    verdict: Verdict
    is_over: bool = False
    """One was sent, or nobody has answered for PATIENCE: the others don't wait any longer."""
    problem: str = ""


def is_on_trial(operation: Operation) -> bool:
    """Return whether an operation sends, and its first deliveries have no result yet."""
    sends = operation.action in (BulkAction.RETRY, BulkAction.RESEND)
    return sends and not operation.is_proven


def trial_size(operation: Operation, *, wanted: int) -> int:
    """Return on how many notifications of ``wanted`` an operation may act before the next check."""
    if not is_on_trial(operation):
        return wanted
    left = TRIAL - len(operation.recent)
    return min(wanted, left) if left > 0 else wanted


def assess(operation: Operation, *, now: datetime) -> Trial:
    """Return whether an operation goes on. Raises PyMongoError."""
    if operation.action not in (BulkAction.RETRY, BulkAction.RESEND):
        return Trial(verdict=Verdict.GO_ON)
    if len(operation.recent) < TRIAL:
        return Trial(verdict=Verdict.GO_ON)
    results = _results(operation)
    failures: Counter[str] = Counter()
    successes = 0
    for delivery in results:
        if delivery["status"] in SUCCEEDED:
            successes += 1
        elif _has_failed(delivery):
            failures[delivery.get("failure_code") or "unknown"] += 1
    if successes:
        return Trial(verdict=Verdict.GO_ON, is_over=True)
    if failures.total() >= TRIAL:
        cause, count = failures.most_common(1)[0]
        cause = cause.replace("_", " ")
        problem = (
            f"{failures.total()} of the last {len(results)} deliveries failed again and none was "
            f"sent, {count} of them with “{cause}”. Remove the cause and resume, or cancel."
        )
        return Trial(verdict=Verdict.STOP, problem=problem)
    acted_at = operation.acted_at
    if not operation.is_proven and acted_at is not None and now - acted_at < PATIENCE:
        return Trial(verdict=Verdict.WAIT)
    return Trial(verdict=Verdict.GO_ON, is_over=True)


def _has_failed(delivery: DeliveryDocument) -> bool:
    if delivery["status"] in _FAILED:
        return True
    tries = delivery["attempt_count"] - (delivery.get("earlier_attempts") or 0)
    is_retrying = delivery["status"] == S.PENDING and tries > 0
    return is_retrying and delivery.get("failure_code") is not None


def _results(operation: Operation) -> list[DeliveryDocument]:
    """Return the deliveries that the operation last acted on, as they are now."""
    is_resend = operation.action is BulkAction.RESEND
    keys = {
        (resend_id(operation, acted.id) if is_resend else acted.id, acted.channel)
        for acted in operation.recent
    }
    names = ("channel", "status", "failure_code", "attempt_count", "earlier_attempts")
    found = NOTIFICATIONS().find(
        {"_id": {"$in": sorted({notification_id for notification_id, _ in keys})}},
        {f"delivery.{name}": 1 for name in names},
    )
    return [
        delivery
        for document in found
        for delivery in document["delivery"]
        if (document["_id"], delivery["channel"]) in keys
    ]
