"""Reports results to circuits, rate limiters, suppressions, devices, and traces."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from devices import status
from devices.models import DeactivationReason
from devices.status import Evidence
from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from domain.states import DeliveryStatus
from notifications.store import ClaimedDelivery, NotSent, Settlement
from notifyproject.platform import tracing
from notifyproject.platform.tracing import Kind, Span
from providers.contract import Provider, SendResult
from recipients import suppressions
from recipients.models import SuppressionReason

from . import circuit_breaker, rate_limiter
from .circuit_breaker import Probe, circuit_name
from .results import TargetResult
from .sending import PreparedDelivery

log = structlog.get_logger(__name__)
SENDER_ID_MISMATCH = "SENDER_ID_MISMATCH"
MIN_MISMATCHES = 5
"""From this many, if all devices of a batch mismatch, the service's credentials are wrong."""
HEALTH_FAILURES = frozenset(
    {
        FailureCode.PROVIDER_ERROR,
        FailureCode.CONNECTION_FAILED,
        FailureCode.CONNECTION_LOST,
        FailureCode.TIMEOUT,
    }
)
"""Errors that count against a provider's circuit; rate limiting does not."""
NEUTRAL_CODES = frozenset(
    {
        FailureCode.CHANNEL_UNAVAILABLE,
        FailureCode.INTERNAL_ERROR,
        FailureCode.ATTACHMENT_UNAVAILABLE,
    }
)
"""Errors that say nothing about the provider: a reported outage trips its circuit separately."""
S = DeliveryStatus


def apply_reputation(
    sent: Sequence[tuple[PreparedDelivery, TargetResult]], *, provider: str, now: datetime
) -> None:
    """Deactivate rejected devices, suppress rejected addresses, and record successful devices.

    Test deliveries are left out. A second call changes no device but counts soft bounces again.
    """
    last_success: dict[str, datetime] = {}
    sent = [(delivery, result) for delivery, result in sent if not delivery.claimed.is_test]
    outcomes = [result.outcome for _, result in sent]
    codes = [
        one.response.code
        for one in outcomes
        if isinstance(one, InvalidRecipientError) and one.response
    ]
    # All devices belong to another sender: the service's own credentials are wrong.
    if len(sent) >= MIN_MISMATCHES and codes == [SENDER_ID_MISMATCH] * len(sent):
        log.error("sender_mismatch_ignored", provider=provider, count=len(sent))
        return
    for delivery, result in sent:
        if isinstance(result.outcome, InvalidRecipientError):
            _apply_invalid_recipient(delivery, result, result.outcome, provider=provider, now=now)
        elif isinstance(result.outcome, SendResult) and result.device_id is not None:
            known = last_success.get(result.device_id, result.finished_at)
            last_success[result.device_id] = max(known, result.finished_at)
    if last_success:
        status.record_success(accepted=last_success)


def _apply_invalid_recipient(
    delivery: PreparedDelivery,
    result: TargetResult,
    error: InvalidRecipientError,
    *,
    provider: str,
    now: datetime,
) -> None:
    if result.device_id is not None:
        _apply_invalid_device(delivery, result, error, provider=provider, now=now)
        return
    channel = delivery.claimed.channel
    address = delivery.claimed.recipient.address(channel)
    if address is None:
        return
    log.info("address_rejected", delivery_id=delivery.claimed.reference, action=error.action.value)
    unsubscribed = error.action is RecipientAction.SUPPRESS_MARKETING
    suppressions.record_bounce(
        channel=channel.value,
        address=address,
        reason=SuppressionReason.UNSUBSCRIBED if unsubscribed else SuppressionReason.HARD_BOUNCE,
        is_soft=error.action is RecipientAction.SUSPECT,
        event=delivery.claimed.reference,
        source=provider,
        now=now,
    )


def _apply_invalid_device(
    delivery: PreparedDelivery,
    result: TargetResult,
    error: InvalidRecipientError,
    *,
    provider: str,
    now: datetime,
) -> None:
    evidence = Evidence(
        at=result.started_at,
        source=provider,
        code=error.response.code if error.response else None,
        notification_id=str(delivery.claimed.notification_id),
    )
    ids = [result.device_id or ""]
    is_mismatch = evidence.code == SENDER_ID_MISMATCH
    if is_mismatch or error.action is RecipientAction.SUSPECT:
        # A mismatch depends on the service's own credentials too, so one response is no proof.
        reason = DeactivationReason.SENDER_MISMATCH if is_mismatch else DeactivationReason.SUSPECT
        status.record_suspect_result(device_ids=ids, reason=reason, evidence=evidence, now=now)
    else:
        reason = DeactivationReason.UNREGISTERED
        status.deactivate(device_ids=ids, reason=reason, evidence=evidence, now=now)


def report_provider_health(
    provider: Provider,
    results: Sequence[TargetResult],
    *,
    probes: Mapping[str, Probe],
    now: datetime,
) -> None:
    """Report the results of a batch to the provider's circuits and rate limiter."""
    account = provider.account
    errors = [r.outcome for r in results if isinstance(r.outcome, ProviderError)]
    outages = {e.scope: e for e in errors if isinstance(e, ProviderUnavailableError)}
    for scope, error in outages.items():
        name = account if scope is None else circuit_name(provider, scope)
        circuit_breaker.trip(name, now=now, retry_after=error.retry_after, reason=error.reason)
    rate_limited = [
        e for e in errors if isinstance(e, TransientError) and e.code is FailureCode.RATE_LIMITED
    ]
    if rate_limited:
        waits = [e.retry_after for e in rate_limited if e.retry_after]
        rate_limiter.throttle(account, retry_after=max(waits, default=None), now=now)
    _record_outcomes(account, results, probes, now)
    for name in probes.keys() - {account}:
        platform = name.removeprefix(circuit_name(provider, ""))
        _record_outcomes(name, [r for r in results if r.platform == platform], probes, now)


def _record_outcomes(
    name: str, results: Sequence[TargetResult], probes: Mapping[str, Probe], now: datetime
) -> None:
    """Record results on a circuit. A rejection of the message is no failure of the provider."""
    errors = [r.outcome for r in results if isinstance(r.outcome, ProviderError)]
    failures = [e for e in errors if isinstance(e, TransientError) and e.code in HEALTH_FAILURES]
    neutral = [e for e in errors if e.code in NEUTRAL_CODES]
    circuit_breaker.record(
        name,
        successes=len(results) - len(failures) - len(neutral),
        failures=len(failures),
        probe=probes.get(name),
        now=now,
        reason=failures[0].reason if failures else "",
    )


def record_attempts(
    settlements: Sequence[Settlement],
    results: Sequence[Sequence[TargetResult]],
    *,
    now: datetime,
) -> None:
    """Record a trace span for each attempt, with a child span for each target."""
    if not tracing.is_on():
        return
    for settlement, some in zip(settlements, results, strict=True):
        claimed, provider = settlement.claimed, settlement.answer.provider
        if (parent := claimed.traceparent) is not None:
            is_successful = settlement.status in (S.SENT, S.DELIVERED)
            _record_span(
                claimed,
                parent,
                {"notify.provider": provider, "notify.delivery.status": settlement.status.value},
                began_at=min(one.started_at for one in some),
                ended_at=now,
                error=None if is_successful else (settlement.code or settlement.status).value,
                children=[_request_span(claimed, one, provider) for one in some],
            )


def record_not_sent(not_sent: Sequence[NotSent], *, now: datetime) -> None:
    """Record a trace span for each delivery that ended without an attempt."""
    if not tracing.is_on():
        return
    for one in not_sent:
        if (parent := one.claimed.traceparent) is not None and one.status is not S.PENDING:
            _record_span(
                one.claimed,
                parent,
                {"notify.delivery.status": one.status.value, "notify.reason": one.code.value},
                began_at=now,
                ended_at=now,
                error=one.code.value if one.status is S.FAILED else None,
            )


def _record_span(
    claimed: ClaimedDelivery,
    parent: str,
    attributes: Mapping[str, str],
    *,
    began_at: datetime,
    ended_at: datetime,
    error: str | None,
    children: Sequence[Span] = (),
) -> None:
    span = Span(
        name=f"deliver {claimed.channel}",
        kind=Kind.CONSUMER,
        began_at=began_at,
        ended_at=ended_at,
        attributes={
            "notify.notification.id": str(claimed.notification_id),
            "notify.channel": claimed.channel.value,
            "notify.attempt": claimed.attempt_count,
            "notify.type": claimed.type,
            "notify.test": claimed.is_test,
            **attributes,
        },
        error=error,
        children=children,
    )
    tracing.record(span, parent=parent)


def _request_span(claimed: ClaimedDelivery, result: TargetResult, provider: str) -> Span:
    outcome = result.outcome
    answer = outcome.response
    return Span(
        name=f"send {provider}",
        kind=Kind.CLIENT,
        began_at=result.started_at,
        ended_at=result.finished_at,
        attributes={
            "notify.delivery.id": claimed.reference_to(result.device_id),
            "notify.provider": provider,
            "notify.outcome": type(outcome).__name__,
            **({"notify.provider.status": answer.status} if answer else {}),
        },
        error=outcome.code.value if isinstance(outcome, ProviderError) else None,
    )
