"""Attempts at a person's devices, and what comes of them."""

from typing import Any

from delivery.results import TargetResult, combine_results
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.store import Settlement
from tests.support.factories.records import NOON, claimed
from tests.support.fakes.provider import Outcome

CONTEXT = ("has_failover", "blocked_until", "quiet_hours_end")


def result(device_id: str, outcome: Outcome) -> TargetResult:
    return TargetResult(
        device_id=device_id, outcome=outcome, started_at=NOON, finished_at=NOON, duration_ms=12
    )


def combined(*outcomes: Outcome, **fields: Any) -> Settlement:
    """Conclude an attempt at the devices d0, d1, ...: one for each outcome, unless said."""
    ids = tuple(f"d{n}" for n in range(len(outcomes)))
    context = {name: fields.pop(name) for name in CONTEXT if name in fields}
    return combine_results(
        claimed(**{"device_ids": ids, **fields}),
        [result(*one) for one in zip(ids, outcomes, strict=True)],
        provider="fcm",
        now=NOON,
        jitter=0,
        **context,
    )


def delivery_status(settlement: Settlement) -> tuple[DeliveryStatus, Any, FailureCode | None]:
    return settlement.status, settlement.next_attempt_at, settlement.code
