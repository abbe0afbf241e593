"""Reports results to circuits, rate limiters, suppressions, devices, and traces."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice

import structlog

from devices import status
from devices.models import DeactivationReason
from devices.status import Evidence
from domain.channels import address_key
from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    RecipientAction,
    TransientError,
)
from domain.states import DeliveryStatus
from notifications.store.claims import ClaimedDelivery, NotSent, Settlement
from notifyproject.platform import tracing
from notifyproject.platform.tracing import Kind, Span
from providers.contract import Provider, ReceiptlessProvider, SendResult
from recipients import suppressions, whatsapp_learning
from recipients.models import SuppressionReason

from . import circuit_breaker, rooms
from .circuit_breaker import (
    ACCOUNT,
    RATE,
    CircuitReporter,
    Probe,
    Recipients,
    circuit_name,
    recipient_key,
)
from .rate_limiter import RateLimiter
from .results import TargetResult
from .runtime import SendingRuntime
from .sending import PreparedDelivery

log = structlog.get_logger(__name__)
SENDER_ID_MISMATCH = "SENDER_ID_MISMATCH"
MIN_MISMATCHES = 5
"""From this many, if all devices of a batch mismatch, the service's credentials are wrong."""
DOUBTFUL_CODES = ({SENDER_ID_MISMATCH}, {"INVALID_ARGUMENT"})
"""Codes that may have another cause than the device."""
HEALTH_FAILURES = frozenset(
    {
        FailureCode.PROVIDER_ERROR,
        FailureCode.CONNECTION_FAILED,
        FailureCode.CONNECTION_LOST,
        FailureCode.TIMEOUT,
    }
)
"""Errors that count against a provider's circuit, unless they concern the recipient alone."""
NEUTRAL_CODES = frozenset(
    {
        FailureCode.CHANNEL_UNAVAILABLE,
        FailureCode.INTERNAL_ERROR,
        FailureCode.ATTACHMENT_UNAVAILABLE,
    }
)
"""Errors that say nothing about the provider: a reported outage trips its circuit separately."""
MAX_FAILED = 20
"""Recipients of one batch's failures that are reported; a circuit needs fewer."""
S = DeliveryStatus
Sent = tuple[PreparedDelivery, TargetResult]
"""A delivery, and the result for one of its targets."""


def apply_reputation(
    sent: Sequence[Sent],
    *,
    provider: Provider,
    now: datetime,
    is_doubted: bool = False,
) -> None:
    """Deactivate rejected devices, suppress rejected addresses, and record successful devices.

    ``is_doubted``: a circuit is open, so that refusals of uncertain reach say nothing about their
    recipients. Test deliveries are left out. A second call changes no device but counts soft
    bounces again.
    """
    last_success: dict[str, datetime] = {}
    sent = [(delivery, result) for delivery, result in sent if not delivery.claimed.is_test]
    if sent and not sent[0][0].claimed.channel.is_personal:
        answers = [(d.claimed, d.targets[0].address, result) for d, result in sent]
        rooms.apply_answers(answers, now=now)
        return
    outcomes = [result.outcome for _, result in sent]
    codes = [
        outcome.response.code
        for outcome in outcomes
        if isinstance(outcome, InvalidRecipientError) and outcome.response
    ]
    # All devices belong to another sender, or none takes the message: the service's own credentials
    # or the message are wrong.
    if len(sent) >= MIN_MISMATCHES and len(codes) == len(sent) and {*codes} in DOUBTFUL_CODES:
        log.error("device_refusals_ignored", provider=provider.name, count=len(sent), code=codes[0])
        return
    for delivery, result in sent:
        outcome = result.outcome
        if isinstance(outcome, InvalidRecipientError):
            if is_doubted and outcome.reach is Reach.UNCERTAIN:
                continue
            _apply_invalid_recipient(delivery, result, outcome, provider=provider.name, now=now)
        elif isinstance(outcome, SendResult) and result.device_id is not None:
            known = last_success.get(result.device_id, result.finished_at)
            last_success[result.device_id] = max(known, result.finished_at)
    if last_success:
        status.record_success(accepted=last_success)
    if clears_soft_bounces(provider):
        _clear_soft_bounces(sent)
    # Last: if it fails, the next send reports it again.
    others = {
        own: result.outcome.other_address
        for delivery, result in sent
        if isinstance(result.outcome, SendResult) and result.outcome.other_address
        if (own := delivery.claimed.recipient.phone)
    }
    if others:
        whatsapp_learning.learn(others, now=now)


def clears_soft_bounces(provider: Provider) -> bool:
    """Return whether a provider's acceptance shows that the address takes messages."""
    return isinstance(provider, ReceiptlessProvider) and provider.clears_soft_bounces


def _clear_soft_bounces(sent: Sequence[Sent]) -> None:
    """Reset the soft bounces of accepting addresses.

    Those are addresses that had some at the claim, or got one from a result of this batch.
    """
    suspected = {
        _address_key(delivery)
        for delivery, result in sent
        if delivery.claimed.has_soft_bounces or isinstance(result.outcome, InvalidRecipientError)
    }
    for delivery, result in sent if suspected else ():
        claimed = delivery.claimed
        address = claimed.recipient.address(claimed.channel)
        is_accepted = isinstance(result.outcome, SendResult)
        if address is not None and is_accepted and _address_key(delivery) in suspected:
            suppressions.clear_soft_bounces(channel=claimed.channel.value, address=address)


def _address_key(delivery: PreparedDelivery) -> str | None:
    claimed = delivery.claimed
    address = claimed.recipient.address(claimed.channel)
    return address and address_key(claimed.channel.value, address)


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
    log.info(
        "address_rejected", delivery_id=delivery.claimed.delivery_id, action=error.action.value
    )
    unsubscribed = error.action is RecipientAction.UNSUBSCRIBE
    suppressions.record_bounce(
        channel=channel.value,
        address=address,
        reason=SuppressionReason.UNSUBSCRIBED if unsubscribed else SuppressionReason.HARD_BOUNCE,
        soft_bounces=1 if error.action is RecipientAction.SUSPECT else None,
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
    runtime: SendingRuntime,
    provider: Provider,
    sent: Sequence[Sent],
    *,
    probes: Mapping[str, Probe],
    now: datetime,
) -> None:
    """Report the results of a batch to the provider's circuits and rate limiter.

    A result that concerns one recipient changes neither. One that concerns a scope changes only the
    circuit of the scope.
    """
    if not runtime.has_circuits:
        return
    account = provider.account
    errors = [(d, r.outcome) for d, r in sent if isinstance(r.outcome, ProviderError)]
    _trip_circuits(runtime.circuits, provider, errors, now)
    _pause_scopes(runtime.circuits, provider, errors, now)
    for _, result in sent:
        if isinstance(result.outcome, SendResult) and result.outcome.pause and result.scope:
            name = circuit_name(provider, result.scope)
            runtime.circuits.pause(name, now=now, retry_after=result.outcome.pause)
    rate_limited = [
        error
        for _, error in errors
        if error.code is FailureCode.RATE_LIMITED and error.scope is None
    ]
    if certain := [error for error in rate_limited if error.reach is Reach.ACCOUNT]:
        _throttle(runtime.rates, account, certain, now, is_doubted=False)
    proven = _record_outcomes(runtime.circuits, account, sent, probes, now)
    for scope, recipients in proven.items():
        if scope == RATE:
            _throttle(runtime.rates, account, rate_limited, now, is_doubted=True)
        else:
            reason, name = _uncertain_reason(errors), circuit_name(provider, scope)
            runtime.circuits.trip(
                name,
                now=now,
                retry_after=None,
                reason=reason,
                refused=recipients,
                is_doubted=True,
            )
    probed = {name.removeprefix(circuit_name(provider, "")) for name in probes.keys() - {account}}
    failing = {error.scope for _, error in errors if error.scope and _is_failure(error)}
    runtime.circuits.watch(account, failing, now=now)
    # Successes count, too, while a scope fails.
    watched = runtime.circuits.watched(account, now=now)
    for scope in probed | (watched & {result.scope for _, result in sent} if watched else watched):
        own = [pair for pair in sent if pair[1].scope == scope]
        _record_outcomes(
            runtime.circuits, circuit_name(provider, scope), own, probes, now, scope=scope
        )


def _trip_circuits(
    circuits: CircuitReporter,
    provider: Provider,
    errors: Sequence[tuple[PreparedDelivery, ProviderError]],
    now: datetime,
) -> None:
    """Open the circuits of outages that surely concern the whole account or scope."""
    outages: dict[str, tuple[ProviderUnavailableError, dict[str, None]]] = {}
    for delivery, error in errors:
        if isinstance(error, ProviderUnavailableError) and error.reach is Reach.ACCOUNT:
            scope = error.scope
            name = provider.account if scope is None else circuit_name(provider, scope)
            _, refused = outages.get(name, (error, {}))
            if len(refused) < MAX_FAILED:
                refused[recipient_key(delivery.claimed)] = None
            outages[name] = (error, refused)
    for name, (error, refused) in outages.items():
        circuits.trip(
            name, now=now, retry_after=error.retry_after, reason=error.reason, refused=refused
        )


def _pause_scopes(
    circuits: CircuitReporter,
    provider: Provider,
    errors: Sequence[tuple[PreparedDelivery, ProviderError]],
    now: datetime,
) -> None:
    """Pause the scopes that have a rate limit of their own."""
    waits: dict[str, float] = {}
    for _, error in errors:
        if (
            isinstance(error, TransientError)
            and error.code is FailureCode.RATE_LIMITED
            and error.scope
            and error.reach is Reach.ACCOUNT
        ):
            waits[error.scope] = max(waits.get(error.scope, 0), error.retry_after or 0)
    for scope, wait in waits.items():
        circuits.pause(circuit_name(provider, scope), now=now, retry_after=wait)


def _throttle(
    rates: RateLimiter,
    account: str,
    rate_limited: Sequence[ProviderError],
    now: datetime,
    *,
    is_doubted: bool,
) -> None:
    waits = [e.retry_after for e in rate_limited if isinstance(e, TransientError) and e.retry_after]
    rates.throttle(account, retry_after=max(waits, default=None), now=now, is_doubted=is_doubted)


def _record_outcomes(
    circuits: CircuitReporter,
    name: str,
    sent: Sequence[Sent],
    probes: Mapping[str, Probe],
    now: datetime,
    *,
    scope: str = ACCOUNT,
) -> Mapping[str, Recipients]:
    """Record results on the circuit of the account, or of a ``scope``.

    A rejection of the message is no failure of the provider. Return the proven scopes, as
    :func:`delivery.circuit_breaker.CircuitReporter.record` does.
    """
    errors = [(d, r.outcome) for d, r in sent if isinstance(r.outcome, ProviderError)]
    elsewhere = [e for _, e in errors if scope == ACCOUNT and e.scope and _is_failure(e)]
    failures = [(d, e) for d, e in errors if _is_failure(e) and e not in elsewhere]
    neutral = [error for _, error in errors if error.code in NEUTRAL_CODES] + elsewhere
    reason = failures[0][1].reason if failures else _uncertain_reason(errors)
    refused, disproved = _uncertain_refusals(sent, scope) if errors else ({}, {})
    return circuits.record(
        name,
        successes=len(sent) - len(failures) - len(neutral),
        failures=len(failures),
        probe=probes.get(name),
        now=now,
        reason=reason,
        evidence=circuit_breaker.CircuitEvidence(
            accepted=_accepted_scopes(sent),
            refused=refused,
            failed=_failed_recipients(failures),
            disproved=disproved,
            forgiven=_accepted_recipients(sent) if circuits.has_refused(name) else {},
        ),
    )


def _is_failure(error: ProviderError) -> bool:
    return (
        isinstance(error, TransientError)
        and error.code in HEALTH_FAILURES
        and error.reach is not Reach.RECIPIENT
    )


def _failed_recipients(failures: Sequence[tuple[PreparedDelivery, ProviderError]]) -> list[str]:
    """Return a key for each failure that is evidence, at most MAX_FAILED.

    Answered failures of one recipient share a key. One without an answer has its own, since the
    recipient isn't its cause, and so has that of a scope, since a room is one recipient.
    """
    keys = (
        recipient_key(delivery.claimed)
        if error.response and not error.scope
        else circuit_breaker.evidence_key(delivery.claimed.reference)
        for delivery, error in failures
    )
    return list(dict.fromkeys(islice(keys, MAX_FAILED)))


def _accepted_scopes(sent: Sequence[Sent]) -> frozenset[str]:
    scopes = {r.scope for _, r in sent if isinstance(r.outcome, SendResult)}
    return frozenset({ACCOUNT, RATE, *scopes}) if scopes else frozenset()


def _accepted_recipients(sent: Sequence[Sent]) -> Mapping[str, Recipients]:
    """Return the recipients of acceptances, by scope."""
    found: dict[str, set[str]] = {}
    for delivery, result in sent:
        if isinstance(result.outcome, SendResult):
            key = recipient_key(delivery.claimed)
            for scope in {ACCOUNT, RATE, result.scope}:
                found.setdefault(scope, set()).add(key)
    return found


def _uncertain_refusals(
    sent: Sequence[Sent], scope: str
) -> tuple[Mapping[str, Recipients], Mapping[str, Recipients]]:
    """Return the recipients with a refusal of uncertain reach, by scope.

    The first are those after the last acceptance. The others are disproved: their request was under
    way when another was accepted. Of a batch, many devices may be refused beside one that is not.
    On the circuit of a ``scope``, that is the only one; on the account's, there are all.
    """
    accepted_at: dict[str, datetime] = {}
    for _, result in sent:
        if isinstance(result.outcome, SendResult):
            for cleared in (ACCOUNT, RATE, result.scope):
                last = accepted_at.get(cleared, result.finished_at)
                accepted_at[cleared] = max(result.finished_at, last)
    refused: dict[str, set[str]] = {}
    disproved: dict[str, set[str]] = {}
    for delivery, result in sent:
        error = result.outcome
        if isinstance(error, SendResult) or error.reach is not Reach.UNCERTAIN:
            continue
        own = _scope(error)
        if not _is_failure(error) and scope in (ACCOUNT, own):
            is_disproved = own in accepted_at and result.started_at <= accepted_at[own]
            found = disproved if is_disproved else refused
            found.setdefault(own, set()).add(recipient_key(delivery.claimed))
    return refused, disproved


def _scope(error: ProviderError) -> str:
    if error.scope:
        return error.scope
    return RATE if error.code is FailureCode.RATE_LIMITED else ACCOUNT


def _uncertain_reason(errors: Sequence[tuple[PreparedDelivery, ProviderError]]) -> str:
    return next((e.reason for _, e in errors if e.reach is Reach.UNCERTAIN), "")


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
        claimed, provider = settlement.claimed, settlement.provider
        if (parent := claimed.traceparent) is not None:
            is_successful = settlement.status in (S.SENT, S.DELIVERED)
            _record_span(
                claimed,
                parent,
                {"notify.provider": provider, "notify.delivery.status": settlement.status.value},
                began_at=min(result.started_at for result in some),
                ended_at=now,
                error=None if is_successful else (settlement.code or settlement.status).value,
                children=[_request_span(claimed, result, provider) for result in some],
            )


def record_not_sent(not_sent: Sequence[NotSent], *, now: datetime) -> None:
    """Record a trace span for each delivery that ended without an attempt."""
    if not tracing.is_on():
        return
    for unsent in not_sent:
        if (parent := unsent.claimed.traceparent) is not None and unsent.status is not S.PENDING:
            _record_span(
                unsent.claimed,
                parent,
                {"notify.delivery.status": unsent.status.value, "notify.reason": unsent.code.value},
                began_at=now,
                ended_at=now,
                error=unsent.code.value if unsent.status is S.FAILED else None,
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
