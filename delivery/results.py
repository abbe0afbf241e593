"""Combines the results of an attempt into one settlement. Pure but for the jitter.

A push to several devices has a result for each; together they decide whether the delivery is
sent, retried, failed, or in doubt.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from domain import retry
from domain.errors import FailureCode, ProviderError, ProviderResponse, TransientError
from domain.states import AttemptStatus, DeliveryStatus
from notifications.store import ClaimedDelivery, ProviderAnswer, Settlement, TargetAttempt
from providers.contract import SendResult

S = DeliveryStatus
NOT_ACCEPTED = frozenset({FailureCode.CHANNEL_UNAVAILABLE, FailureCode.CONNECTION_FAILED})
"""Nothing of the message reached the provider: another one may be given it at once."""
NO_TIME = "The provider was too slow to reach all devices at once; the others follow."
PLATFORM_BLOCKED = "The provider takes nothing for the platform of some of the devices at present."
IN_QUIET_HOURS = "The devices that are left are in their quiet hours."
NOT_ATTEMPTED = "Not begun: the time for it was over. Nothing was sent."
AMBIGUOUS = "One device may have it by an earlier attempt; the others cannot get it."


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """What came of handing the message to the provider for one target."""

    device_id: str | None
    """None for the one address of a channel that has no devices."""
    outcome: SendResult | ProviderError
    started_at: datetime
    finished_at: datetime
    duration_ms: int
    platform: str = ""
    """Push: android, ios or web."""


@dataclass(frozen=True, slots=True)
class _Failure:
    result: TargetResult
    error: ProviderError
    decision: retry.Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class _NextState:
    """What a delivery becomes, and why; without a code for what the failures themselves say."""

    status: DeliveryStatus
    at: datetime | None = None
    uncounted: bool = False
    code: FailureCode | None = None
    reason: str = ""


def combine_results(
    claimed: ClaimedDelivery,
    results: Sequence[TargetResult],
    *,
    provider: str,
    now: datetime,
    jitter: float,
    has_failover: bool = False,
    blocked_until: datetime | None = None,
    quiet_hours_end: datetime | None = None,
) -> Settlement:
    """Return what an attempt's results, at least one, make of the delivery.

    ``has_failover``: another provider would take what this one has not taken. ``blocked_until``:
    some of the person's devices were left out, as nothing goes to their platform before then.
    ``quiet_hours_end``: so were some in their quiet hours. The devices of the attempt that have no
    result were not begun: there was no time.
    """
    accepted = [r for r in results if isinstance(r.outcome, SendResult)]
    # What a provider may have taken is given to no other.
    fails_over = has_failover and not (
        claimed.ambiguous_provider or any(map(_is_ambiguous, results))
    )
    failures = [
        _Failure(r, r.outcome, _decide(r.outcome, claimed, now, jitter, fails_over))
        for r in results
        if isinstance(r.outcome, ProviderError)
    ]
    accepted_ids = (r.device_id for r in accepted if r.device_id is not None)
    reached = tuple(dict.fromkeys((*claimed.accepted_targets, *accepted_ids)))
    attempted = {r.device_id for r in results}
    not_attempted = [device for device in claimed.device_ids if device not in attempted]
    waits = _waits_for_skipped_devices(
        claimed,
        now,
        is_short_of_time=bool(not_attempted),
        blocked_until=blocked_until,
        quiet_hours_end=quiet_hours_end,
    )
    is_reached = bool(accepted or reached)
    ambiguous = () if is_reached else _ambiguous_devices(claimed, results)
    next_state = _next_state(
        failures, waits, is_reached=is_reached, is_ambiguous=bool(ambiguous), now=now
    )
    is_sent = next_state.status is S.SENT
    main_failure = None if is_sent else _main_failure(failures)
    main_result = main_failure.result if main_failure else (accepted or results)[0]
    main_reason = (main_failure.error.code, _reason(failures)) if main_failure else (None, None)
    code, reason = (next_state.code, next_state.reason) if next_state.code else main_reason
    return Settlement(
        claimed=claimed,
        status=S.DELIVERED if is_sent and _is_delivered(results) else next_state.status,
        finished_at=now,
        duration_ms=max(r.duration_ms for r in results),
        answer=_provider_answer(provider, main_result.outcome),
        next_attempt_at=next_state.at,
        uncounted=next_state.uncounted,
        code=code,
        reason=reason,
        accepted_targets=reached,
        ambiguous_targets=ambiguous if next_state.status is S.PENDING else (),
        fails_over=fails_over
        and next_state.at == now
        and any(f.error.code in NOT_ACCEPTED for f in failures),
        target_attempts=(
            *(_target_attempt(r, provider, failures) for r in results if r.device_id is not None),
            *(_not_attempted(device, provider, now) for device in not_attempted),
        ),
    )


def _decide(
    error: ProviderError, claimed: ClaimedDelivery, now: datetime, jitter: float, has_failover: bool
) -> retry.Decision:
    if has_failover and error.code in NOT_ACCEPTED:
        return retry.RetryUncounted(now)
    return retry.decide_retry(error=error, state=claimed.retry_state, now=now, jitter=jitter)


def _waits_for_skipped_devices(
    claimed: ClaimedDelivery,
    now: datetime,
    *,
    is_short_of_time: bool,
    blocked_until: datetime | None,
    quiet_hours_end: datetime | None,
) -> list[_NextState]:
    """Return what is to be waited for on account of devices left out, what comes first first.

    Nobody waits for ever: a wait beyond the patience or the notification's end is none.
    """
    waits = (
        (now if is_short_of_time else None, FailureCode.PROVIDER_ERROR, NO_TIME),
        (blocked_until, FailureCode.CHANNEL_UNAVAILABLE, PLATFORM_BLOCKED),
        (quiet_hours_end, FailureCode.QUIET_HOURS, IN_QUIET_HOURS),
    )
    return [
        _NextState(status=S.PENDING, at=max(at, now), uncounted=True, code=code, reason=reason)
        for at, code, reason in waits
        if at is not None and _can_wait(claimed, at, now)
    ]


def _can_wait(claimed: ClaimedDelivery, until: datetime, now: datetime) -> bool:
    decision = retry.defer_or_give_up(until=max(until, now), state=claimed.retry_state, now=now)
    return isinstance(decision, retry.RetryAt)


def _ambiguous_devices(
    claimed: ClaimedDelivery, results: Sequence[TargetResult]
) -> tuple[str, ...]:
    """Return the devices that may have it: what is known of each is what came of the last send."""
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
    """Return what the failures, and then the devices that were left out, make of a delivery.

    Who certainly has not got it comes before who may have it, which is decided when nobody else is
    left. Who is asleep is waited for only if nobody else can be reached.
    """
    decisions = [failure.decision for failure in failures]
    awaited = [d.until for d in decisions if isinstance(d, retry.AwaitReceipt)]
    ambiguous_until = [] if is_reached else awaited
    counted = [d.at for d in decisions if isinstance(d, retry.RetryAt)]
    uncounted = [d.at for d in decisions if isinstance(d, retry.RetryUncounted)]
    if counted or uncounted:
        is_uncounted = not counted and not ambiguous_until
        return _NextState(status=S.PENDING, at=max(counted + uncounted), uncounted=is_uncounted)
    for wait in waits:
        if wait.code is not FailureCode.QUIET_HOURS or not is_reached:
            return _cap_wait(wait, ambiguous_until)
    if ambiguous_until:
        return _NextState(status=S.UNKNOWN, at=max(ambiguous_until))
    if is_ambiguous:
        code = FailureCode.OUTCOME_UNKNOWN
        return _NextState(status=S.UNKNOWN, at=now, code=code, reason=AMBIGUOUS)
    return _NextState(status=S.SENT if is_reached else S.FAILED)


def _cap_wait(wait: _NextState, ambiguous_until: Sequence[datetime]) -> _NextState:
    """Return a wait that is no longer than that for the reports of devices in doubt.

    By then their type may want them to be sent to again, which their attempt has to count for.
    """
    if not ambiguous_until or wait.at is None:
        return wait
    return _NextState(status=S.PENDING, at=min(wait.at, *ambiguous_until))


def _main_failure(failures: Sequence[_Failure]) -> _Failure | None:
    """Return the failure that tells most: what is in doubt or to be tried again, then what is over.

    A dead device says less than anything else: the others were to be reached.
    """
    order = (retry.AwaitReceipt, retry.RetryAt, retry.RetryUncounted, retry.GiveUp)
    return min(
        failures,
        key=lambda f: (
            order.index(type(f.decision)),
            f.error.code is FailureCode.INVALID_RECIPIENT,
        ),
        default=None,
    )


def _is_delivered(results: Sequence[TargetResult]) -> bool:
    return any(isinstance(r.outcome, SendResult) and r.outcome.is_delivered for r in results)


def _reason(failures: Sequence[_Failure]) -> str:
    """Return why it failed; of several devices, what was said and of how many."""
    reasons = Counter(failure.error.reason for failure in failures)
    if len(reasons) == 1:
        return failures[0].error.reason
    return "; ".join(
        f"{reason} ({count} {'device' if count == 1 else 'devices'})"
        for reason, count in reasons.items()
    )


def _target_attempt(
    result: TargetResult, provider: str, failures: Sequence[_Failure]
) -> TargetAttempt:
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
        answer=_provider_answer(provider, result.outcome),
        code=failure.error.code if failure else None,
        reason=failure.error.reason if failure else None,
    )


def _not_attempted(device_id: str, provider: str, now: datetime) -> TargetAttempt:
    return TargetAttempt(
        device_id=device_id,
        status=AttemptStatus.EXPIRED,
        finished_at=now,
        duration_ms=0,
        answer=ProviderAnswer(provider=provider),
        reason=NOT_ATTEMPTED,
    )


def _provider_answer(provider: str, outcome: SendResult | ProviderError) -> ProviderAnswer:
    message_id = outcome.provider_id if isinstance(outcome, SendResult) else None
    return ProviderAnswer(
        provider=provider, message_id=message_id, response=_response(outcome.response)
    )


def _response(answer: ProviderResponse | None) -> dict[str, object] | None:
    if answer is None:
        return None
    fields = {"status": answer.status, "code": answer.code, "body": answer.excerpt or None}
    return {name: value for name, value in fields.items() if value is not None}


_random = random.SystemRandom()


def random_jitter() -> float:
    """Return the dice of a retry's wait, in [-1, 1]."""
    return _random.uniform(-1, 1)
