"""Combines the results of an attempt, one for each target, into one settlement. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain import retry
from domain.errors import FailureCode, ProviderError, TransientError
from domain.states import AttemptStatus, DeliveryStatus
from domain.wait_reasons import WaitReason
from notifications.store.claims import ClaimedDelivery, Settlement, TargetAttempt
from notifications.store.leases import NOT_ATTEMPTED
from providers.contract import SendResult

S = DeliveryStatus
NOT_ACCEPTED = frozenset({FailureCode.CHANNEL_UNAVAILABLE, FailureCode.CONNECTION_FAILED})
"""Errors after which another provider may get the message at once: none was received."""
NO_TIME = "The lease ended before all devices were sent to; the rest follow."
SCOPE_BLOCKED = "Circuit open for a device's platform or push service."
BY_ANOTHER_PROVIDER = "The other devices follow by another provider."
IN_QUIET_HOURS = "Quiet hours of the remaining devices."
AMBIGUOUS = "Outcome unknown for one device; the others can't receive it."


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """Result of one request to the provider, for one target."""

    device_id: str | None
    outcome: SendResult | ProviderError
    started_at: datetime
    finished_at: datetime
    duration_ms: int
    scope: str = ""
    """The scope of the target at the provider."""
    units: int | None = None
    """How many parts of a text may be billed."""


@dataclass(frozen=True, slots=True)
class _Failure:
    result: TargetResult
    error: ProviderError
    decision: retry.Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class _NextState:
    """``code`` is None if the main failure gives code and reason."""

    status: DeliveryStatus
    at: datetime | None = None
    uncounted: bool = False
    code: FailureCode | None = None
    reason: str = ""
    held_reason: WaitReason | None = None


def combine_results(
    claimed: ClaimedDelivery,
    results: Sequence[TargetResult],
    *,
    provider: str,
    now: datetime,
    jitter: float,
    has_failover: bool = False,
    others_at: datetime | None = None,
    blocked_until: datetime | None = None,
    quiet_hours_end: datetime | None = None,
    is_doubted: bool = False,
) -> Settlement:
    """Combine at least one result of an attempt into the settlement of its delivery.

    ``has_failover`` says that another provider can take the delivery now. ``others_at``,
    ``blocked_until``, and ``quiet_hours_end`` are set if some devices were left out until then: for
    another provider, for a circuit, or for the night. ``is_doubted``: it tested an open circuit. A
    device without a result was not tried, because the lease ended.
    """
    accepted = [r for r in results if isinstance(r.outcome, SendResult)]
    # A message that a provider may have accepted is never given to another one.
    fails_over = has_failover and not (
        claimed.ambiguous_provider or any(map(_is_ambiguous, results))
    )
    failures = [
        _Failure(
            r,
            r.outcome,
            _decide(
                r.outcome, claimed, now, jitter, has_failover=fails_over, is_doubted=is_doubted
            ),
        )
        for r in results
        if isinstance(r.outcome, ProviderError)
    ]
    accepted_ids = (r.device_id for r in accepted if r.device_id is not None)
    reached = tuple(dict.fromkeys((*claimed.accepted_targets, *accepted_ids)))
    attempted = {r.device_id for r in results}
    not_attempted = [device for device in claimed.device_ids if device not in attempted]
    waits = _waits_for_skipped_devices(
        claimed,
        (
            (now if not_attempted else None, FailureCode.PROVIDER_ERROR, NO_TIME, None),
            (others_at, FailureCode.PROVIDER_ERROR, BY_ANOTHER_PROVIDER, None),
            (
                blocked_until,
                FailureCode.CHANNEL_UNAVAILABLE,
                SCOPE_BLOCKED,
                WaitReason.CIRCUIT_OPEN,
            ),
            (quiet_hours_end, FailureCode.QUIET_HOURS, IN_QUIET_HOURS, None),
        ),
        now,
    )
    is_reached = bool(accepted or reached)
    ambiguous = () if is_reached else _ambiguous_devices(claimed, results)
    next_state = _next_state(
        failures, waits, is_reached=is_reached, is_ambiguous=bool(ambiguous), now=now
    )
    is_sent = next_state.status is S.SENT
    is_delivered = any(r.outcome.is_delivered for r in results if isinstance(r.outcome, SendResult))
    main_failure = None if is_sent else _main_failure(failures)
    main_result = main_failure.result if main_failure else (accepted or results)[0]
    main_reason = (main_failure.error.code, _reason(failures)) if main_failure else (None, None)
    code, reason = (next_state.code, next_state.reason) if next_state.code else main_reason
    return Settlement(
        claimed=claimed,
        status=S.DELIVERED if is_sent and is_delivered else next_state.status,
        finished_at=now,
        duration_ms=max(r.duration_ms for r in results),
        provider=provider,
        provider_message_id=_message_id(main_result.outcome),
        response=_response(main_result.outcome),
        units=main_result.units,
        next_attempt_at=next_state.at,
        uncounted=next_state.uncounted,
        code=code,
        reason=reason,
        held_reason=next_state.held_reason,
        accepted_targets=reached,
        ambiguous_targets=ambiguous if next_state.status is S.PENDING else (),
        fails_over=fails_over
        and next_state.at == now
        and any(f.error.code in NOT_ACCEPTED for f in failures),
        target_attempts=(
            *(_target_attempt(r, failures) for r in results if r.device_id is not None),
            *(
                TargetAttempt(
                    device_id=device,
                    status=AttemptStatus.EXPIRED,
                    finished_at=now,
                    duration_ms=0,
                    reason=NOT_ATTEMPTED,
                )
                for device in not_attempted
            ),
        ),
    )


def _decide(
    error: ProviderError,
    claimed: ClaimedDelivery,
    now: datetime,
    jitter: float,
    *,
    has_failover: bool,
    is_doubted: bool,
) -> retry.Decision:
    if has_failover and error.code in NOT_ACCEPTED:
        return retry.RetryUncounted(now)
    return retry.decide_retry(
        error=error, state=claimed.retry_state, now=now, jitter=jitter, is_doubted=is_doubted
    )


def _waits_for_skipped_devices(
    claimed: ClaimedDelivery,
    waits: Sequence[tuple[datetime | None, FailureCode, str, WaitReason | None]],
    now: datetime,
) -> list[_NextState]:
    """Return the waits for devices left out, most urgent first, within the maximum deferral."""
    return [
        _NextState(
            status=S.PENDING,
            at=max(at, now),
            uncounted=True,
            code=code,
            reason=reason,
            held_reason=held,
        )
        for at, code, reason, held in waits
        if at is not None and retry.may_defer(until=max(at, now), state=claimed.retry_state)
    ]


def _ambiguous_devices(
    claimed: ClaimedDelivery, results: Sequence[TargetResult]
) -> tuple[str, ...]:
    answered = {r.device_id for r in results}
    before = [device for device in claimed.ambiguous_targets if device not in answered]
    now = [r.device_id for r in results if _is_ambiguous(r) and r.device_id is not None]
    return (*before, *now)


def _is_ambiguous(result: TargetResult) -> bool:
    return isinstance(result.outcome, TransientError) and result.outcome.is_ambiguous


def _next_state(
    failures: Sequence[_Failure],
    waits: Sequence[_NextState],
    *,
    is_reached: bool,
    is_ambiguous: bool,
    now: datetime,
) -> _NextState:
    """Return the next state of the delivery. Retries of failed requests come first.

    Devices that were left out come next, then devices with an unknown outcome. Devices in quiet
    hours are waited for only if no device was reached.
    """
    decisions = [failure.decision for failure in failures]
    awaited = [d.until for d in decisions if isinstance(d, retry.AwaitReceipt)]
    ambiguous_until = [] if is_reached else awaited
    counted = [d.at for d in decisions if isinstance(d, retry.RetryAt)]
    uncounted = [d.at for d in decisions if isinstance(d, retry.RetryUncounted)]
    if counted or uncounted:
        is_uncounted = not counted and not ambiguous_until
        main = _main_failure(failures)
        is_rate_limited = main is not None and main.error.code is FailureCode.RATE_LIMITED
        # The devices of another provider don't wait for this one.
        others = [wait.at for wait in waits if wait.reason == BY_ANOTHER_PROVIDER and wait.at]
        return _NextState(
            status=S.PENDING,
            at=min([max(counted + uncounted), *others]),
            uncounted=is_uncounted,
            held_reason=WaitReason.RATE_LIMITED if is_uncounted and is_rate_limited else None,
        )
    for wait in waits:
        if wait.code is not FailureCode.QUIET_HOURS or not is_reached:
            if not ambiguous_until or wait.at is None:
                return wait
            # At the receipt deadline of devices with an unknown outcome, the type's policy may
            # require another attempt for them, which must be counted.
            return _NextState(status=S.PENDING, at=min(wait.at, *ambiguous_until))
    if ambiguous_until:
        return _NextState(status=S.UNKNOWN, at=max(ambiguous_until))
    if is_ambiguous:
        code = FailureCode.OUTCOME_UNKNOWN
        return _NextState(status=S.UNKNOWN, at=now, code=code, reason=AMBIGUOUS)
    return _NextState(status=S.SENT if is_reached else S.FAILED)


def _main_failure(failures: Sequence[_Failure]) -> _Failure | None:
    order = (retry.AwaitReceipt, retry.RetryAt, retry.RetryUncounted, retry.GiveUp)
    return min(
        failures,
        key=lambda f: (
            order.index(type(f.decision)),
            f.error.code is FailureCode.INVALID_RECIPIENT,
        ),
        default=None,
    )


def _reason(failures: Sequence[_Failure]) -> str:
    reasons = Counter(failure.error.reason for failure in failures)
    if len(reasons) == 1:
        return failures[0].error.reason
    return "; ".join(
        f"{reason} ({count} {'device' if count == 1 else 'devices'})"
        for reason, count in reasons.items()
    )


def _target_attempt(result: TargetResult, failures: Sequence[_Failure]) -> TargetAttempt:
    failure = next((f for f in failures if f.result is result), None)
    status = AttemptStatus.SENT
    if failure is not None:
        is_ambiguous = isinstance(failure.decision, retry.AwaitReceipt)
        status = AttemptStatus.UNKNOWN if is_ambiguous else AttemptStatus.FAILED
    return TargetAttempt(
        device_id=result.device_id or "",
        status=status,
        finished_at=result.finished_at,
        duration_ms=result.duration_ms,
        provider_message_id=_message_id(result.outcome),
        response=_response(result.outcome),
        code=failure.error.code if failure else None,
        reason=failure.error.reason if failure else None,
    )


def _message_id(outcome: SendResult | ProviderError) -> str | None:
    return outcome.provider_id if isinstance(outcome, SendResult) else None


def _response(outcome: SendResult | ProviderError) -> Mapping[str, Any] | None:
    if (answer := outcome.response) is None:
        return None
    fields = {"status": answer.status, "code": answer.code, "body": answer.excerpt or None}
    return {name: value for name, value in fields.items() if value is not None}
