"""Pushes to devices: their targets, attempts, and results."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from delivery import pipeline, targets
from delivery.results import TargetResult, combine_results
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from devices.preferences import Preferences
from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.store.claims import ClaimedDelivery, NotSent, Settlement
from providers.contract import Provider
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import FIXED_NOON, NOON, claimed_delivery
from tests.support.fakes.provider import Outcome, ScriptedProvider

RETRY = NOON + timedelta(minutes=6, seconds=1)
"""After the longest first delay of normal priority."""


def push(**fields: Any) -> ObjectId:
    notification_id: ObjectId = factories.accepted(channels=[Channel.PUSH], **fields)["_id"]
    return notification_id


def deliver(
    *ids: ObjectId, at: datetime = NOON, clock: Callable[[], datetime] | None = None
) -> BatchReport:
    return pipeline.dispatch(
        SendingRuntime(), ids, channel=Channel.PUSH, clock=clock or (lambda: at)
    )


def state(notification_id: ObjectId) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id), Channel.PUSH)


def delivery_status(notification_id: ObjectId) -> tuple[str, str | None]:
    delivery = state(notification_id)
    return delivery["status"], delivery.get("failure_code")


def tokens(provider: ScriptedProvider) -> list[str]:
    """Return the sorted tokens of all sends since the last call."""
    seen = sorted(outbound.recipient for outbound in provider.seen)
    provider.seen.clear()
    return seen


def in_quiet_hours(until: str) -> Preferences:
    """Return preferences with quiet hours from 11:00."""
    return Preferences(quiet_hours={"enabled": True, "start": "11:00", "end": until})


def claimed_push(**fields: Any) -> ClaimedDelivery:
    return factories.claimed(channel=Channel.PUSH, **fields)


def resolve_targets(
    *claims: ClaimedDelivery,
    channel: Channel = Channel.PUSH,
    providers: Sequence[Provider] = (),
    now: datetime = NOON,
) -> targets.ResolvedTargets:
    return targets.resolve_targets(claims, channel=channel, providers=providers, now=now)


def target_ids(claim: ClaimedDelivery, *, now: datetime = NOON) -> list[str | None]:
    """Return the IDs of the devices that a push is sent to."""
    resolved = resolve_targets(claim, now=now)
    assert resolved.not_sent == []
    return [target.device_id for target in resolved.targets[claim.reference]]


def deferral(claim: ClaimedDelivery, *, now: datetime = NOON) -> NotSent:
    """Return the deferral of a push without targets."""
    resolved = resolve_targets(claim, now=now)
    assert resolved.targets == {}
    (not_sent,) = resolved.not_sent
    assert not_sent.claimed == claim
    return not_sent


CONTEXT = ("has_failover", "blocked_until", "quiet_hours_end")


def result(device_id: str, outcome: Outcome) -> TargetResult:
    return TargetResult(
        device_id=device_id,
        outcome=outcome,
        started_at=FIXED_NOON,
        finished_at=FIXED_NOON,
        duration_ms=12,
    )


def combined(*outcomes: Outcome, **fields: Any) -> Settlement:
    """Combine the results of the devices d0, d1, ..."""
    ids = tuple(f"d{n}" for n in range(len(outcomes)))
    context = {name: fields.pop(name) for name in CONTEXT if name in fields}
    return combine_results(
        claimed_delivery(**{"device_ids": ids, **fields}),
        [result(*notification_id) for notification_id in zip(ids, outcomes, strict=True)],
        provider="fcm",
        now=FIXED_NOON,
        jitter=0,
        **context,
    )


def settlement_summary(settlement: Settlement) -> tuple[DeliveryStatus, Any, FailureCode | None]:
    return settlement.status, settlement.next_attempt_at, settlement.code
