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
NOT_TAKEN = frozenset({FailureCode.CHANNEL_UNAVAILABLE, FailureCode.CONNECTION_FAILED})
"""Nothing of the message reached the provider: another one may be given it at once."""
NO_TIME = "The provider was too slow to reach all devices at once; the others follow."
HELD = "The provider takes nothing for the platform of some of the devices at present."
ASLEEP = "The devices that are left are in their quiet hours."
NOT_BEGUN = "Not begun: the time for it was over. Nothing was sent."
IN_DOUBT = "One device may have it by an earlier attempt; the others cannot get it."


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
class _Next:
    """What a delivery becomes, and why; without a code for what the failures themselves say."""

    status: DeliveryStatus
    at: datetime | None = None
    excused: bool = False
    code: FailureCode | None = None
    reason: str = ""


def combine_results(
    claimed: ClaimedDelivery,
    results: Sequence[TargetResult],
    *,
    provider: str,
    now: datetime,
    dice: float,
    has_substitute: bool = False,
    held_until: datetime | None = None,
    asleep_until: datetime | None = None,
) -> Settlement:
    """Return what an attempt's results, at least one, make of the delivery.

    ``has_substitute``: another provider would take what this one has not taken. ``held_until``:
    some of the person's devices were left out, as nothing goes to their platform before then.
    ``asleep_until``: so were some in their quiet hours. The devices of the attempt that have no
    result were not begun: there was no time.
    """
    accepted = [r for r in results if isinstance(r.outcome, SendResult)]
    # What a provider may have taken is given to no other.
    passes_on = has_substitute and not (claimed.doubtful_provider or any(map(_is_doubt, results)))
    failures = [
        _Failure(r, r.outcome, _decide(r.outcome, claimed, now, dice, passes_on))
        for r in results
        if isinstance(r.outcome, ProviderError)
    ]
    took_it = (r.device_id for r in accepted if r.device_id is not None)
    reached = tuple(dict.fromkeys((*claimed.accepted_targets, *took_it)))
    begun = {r.device_id for r in results}
    not_begun = [device for device in claimed.device_ids if device not in begun]
    left_out = _left_out(
        claimed, now, is_short_of_time=bool(not_begun), held=held_until, asleep=asleep_until
    )
    is_reached = bool(accepted or reached)
    doubtful = () if is_reached else _doubtful(claimed, results)
    what = _next(failures, left_out, is_reached=is_reached, is_doubtful=bool(doubtful), now=now)
    is_sent = what.status is S.SENT
    first = None if is_sent else _telling(failures)
    told = first.result if first else (accepted or results)[0]
    said = (first.error.code, _reason(failures)) if first else (None, None)
    code, reason = (what.code, what.reason) if what.code else said
    return Settlement(
        claimed=claimed,
        status=S.DELIVERED if is_sent and _is_with_them(results) else what.status,
        finished_at=now,
        duration_ms=max(r.duration_ms for r in results),
        answer=_provider_answer(provider, told.outcome),
        next_attempt_at=what.at,
        excused=what.excused,
        code=code,
        reason=reason,
        accepted_targets=reached,
        doubtful_targets=doubtful if what.status is S.PENDING else (),
        passes_on=passes_on and what.at == now and any(f.error.code in NOT_TAKEN for f in failures),
        tries=(
            *(_try(r, provider, failures) for r in results if r.device_id is not None),
            *(_not_begun(device, provider, now) for device in not_begun),
        ),
    )


def _decide(
    error: ProviderError, claimed: ClaimedDelivery, now: datetime, dice: float, has_substitute: bool
) -> retry.Decision:
    if has_substitute and error.code in NOT_TAKEN:
        return retry.RetryUncounted(now)
    return retry.decide_retry(error=error, state=claimed.standing, now=now, jitter=dice)


def _left_out(
    claimed: ClaimedDelivery,
    now: datetime,
    *,
    is_short_of_time: bool,
    held: datetime | None,
    asleep: datetime | None,
) -> list[_Next]:
    """Return what is to be waited for on account of devices left out, what comes first first.

    Nobody waits for ever: a wait beyond the patience or the notification's end is none.
    """
    waits = (
        (now if is_short_of_time else None, FailureCode.PROVIDER_ERROR, NO_TIME),
        (held, FailureCode.CHANNEL_UNAVAILABLE, HELD),
        (asleep, FailureCode.QUIET_HOURS, ASLEEP),
    )
    return [
        _Next(status=S.PENDING, at=max(at, now), excused=True, code=code, reason=reason)
        for at, code, reason in waits
        if at is not None and _is_worth_it(claimed, at, now)
    ]


def _is_worth_it(claimed: ClaimedDelivery, until: datetime, now: datetime) -> bool:
    decision = retry.defer_or_give_up(until=max(until, now), state=claimed.standing, now=now)
    return isinstance(decision, retry.RetryAt)


def _doubtful(claimed: ClaimedDelivery, results: Sequence[TargetResult]) -> tuple[str, ...]:
    """Return the devices that may have it: what is known of each is what came of the last send."""
    answered = {r.device_id for r in results}
    before = [device for device in claimed.doubtful_targets if device not in answered]
    now = [r.device_id for r in results if _is_doubt(r) and r.device_id is not None]
    return (*before, *now)


def _is_doubt(result: TargetResult) -> bool:
    return isinstance(result.outcome, TransientError) and result.outcome.is_ambiguous


def _next(
    failures: Sequence[_Failure],
    left_out: Sequence[_Next],
    *,
    is_reached: bool,
    is_doubtful: bool,
    now: datetime,
) -> _Next:
    """Return what the failures, and then the devices that were left out, make of a delivery.

    Who certainly has not got it comes before who may have it, which is decided when nobody else is
    left. Who is asleep is waited for only if nobody else can be reached.
    """
    decisions = [failure.decision for failure in failures]
    awaited = [d.until for d in decisions if isinstance(d, retry.AwaitReceipt)]
    doubts = [] if is_reached else awaited
    counted = [d.at for d in decisions if isinstance(d, retry.RetryAt)]
    excused = [d.at for d in decisions if isinstance(d, retry.RetryUncounted)]
    if counted or excused:
        is_excused = not counted and not doubts
        return _Next(status=S.PENDING, at=max(counted + excused), excused=is_excused)
    for wait in left_out:
        if wait.code is not FailureCode.QUIET_HOURS or not is_reached:
            return _at_most(wait, doubts)
    if doubts:
        return _Next(status=S.UNKNOWN, at=max(doubts))
    if is_doubtful:
        code = FailureCode.OUTCOME_UNKNOWN
        return _Next(status=S.UNKNOWN, at=now, code=code, reason=IN_DOUBT)
    return _Next(status=S.SENT if is_reached else S.FAILED)


def _at_most(wait: _Next, doubts: Sequence[datetime]) -> _Next:
    """Return a wait that is no longer than that for the reports of devices in doubt.

    By then their type may want them to be sent to again, which their attempt has to count for.
    """
    if not doubts or wait.at is None:
        return wait
    return _Next(status=S.PENDING, at=min(wait.at, *doubts))


def _telling(failures: Sequence[_Failure]) -> _Failure | None:
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


def _is_with_them(results: Sequence[TargetResult]) -> bool:
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


def _try(result: TargetResult, provider: str, failures: Sequence[_Failure]) -> TargetAttempt:
    failure = next((f for f in failures if f.result is result), None)
    status = AttemptStatus.SENT
    if failure is not None:
        in_doubt = isinstance(failure.decision, retry.AwaitReceipt)
        status = AttemptStatus.UNKNOWN if in_doubt else AttemptStatus.FAILED
    return TargetAttempt(
        device_id=result.device_id or "",
        status=status,
        finished_at=result.finished_at,
        duration_ms=result.duration_ms,
        answer=_provider_answer(provider, result.outcome),
        code=failure.error.code if failure else None,
        reason=failure.error.reason if failure else None,
    )


def _not_begun(device_id: str, provider: str, now: datetime) -> TargetAttempt:
    return TargetAttempt(
        device_id=device_id,
        status=AttemptStatus.EXPIRED,
        finished_at=now,
        duration_ms=0,
        answer=ProviderAnswer(provider=provider),
        reason=NOT_BEGUN,
    )


def _provider_answer(provider: str, outcome: SendResult | ProviderError) -> ProviderAnswer:
    message_id = outcome.provider_id if isinstance(outcome, SendResult) else None
    return ProviderAnswer(
        provider=provider, message_id=message_id, response=_response(outcome.response)
    )


def _response(answer: ProviderResponse | None) -> dict[str, object] | None:
    if answer is None:
        return None
    said = {"status": answer.status, "code": answer.code, "body": answer.excerpt or None}
    return {name: value for name, value in said.items() if value is not None}


_random = random.SystemRandom()


def random_jitter() -> float:
    """Return the dice of a retry's wait, in [-1, 1]."""
    return _random.uniform(-1, 1)
