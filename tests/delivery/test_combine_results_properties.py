"""Properties of combined results for any mix of outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from delivery.results import TargetResult, combine_results
from domain.errors import FailureCode, ProviderError, ProviderUnavailableError, TransientError
from domain.states import SUCCEEDED, AttemptStatus, DeliveryStatus, Priority
from notifications.store.claims import ClaimedDelivery, Settlement
from providers.contract import SendResult
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.fakes.provider import (
    Outcome,
    accepted,
    channel_unavailable,
    invalid_token,
    malformed_token,
    provider_error,
    rate_limited,
    refused,
    timeout,
    unreachable,
)

S = DeliveryStatus
HOUR = timedelta(hours=1)
waits = st.none() | st.floats(min_value=0, max_value=90_000)
outcomes = st.one_of(
    st.sampled_from(
        [
            accepted(),
            invalid_token(),
            malformed_token(),
            refused(),
            timeout(),
            unreachable(),
            provider_error(),
        ]
    ),
    st.just(accepted(is_delivered=True)),
    st.builds(rate_limited, retry_after=waits),
    st.builds(channel_unavailable, retry_after=waits, scope=st.sampled_from([None, "ios"])),
)
later = st.none() | st.timedeltas(timedelta(0), 100 * HOUR).map(lambda wait: NOON + wait)


def is_ambiguous(outcome: Outcome) -> bool:
    return isinstance(outcome, TransientError) and outcome.is_ambiguous


@dataclass(frozen=True)
class Case:
    """A claimed delivery, the results of its targets, and the context of combining."""

    claimed: ClaimedDelivery
    results: Sequence[TargetResult]
    jitter: float
    context: dict[str, Any]

    @property
    def outcomes(self) -> list[Outcome]:
        return [result.outcome for result in self.results]

    @property
    def accepting_targets(self) -> set[str | None]:
        return {r.device_id for r in self.results if isinstance(r.outcome, SendResult)}

    @property
    def is_accepted(self) -> bool:
        return bool(self.accepting_targets or self.claimed.accepted_targets)

    @property
    def ambiguous(self) -> set[str | None]:
        """The expected ambiguous targets; none if a target accepted."""
        if self.is_accepted:
            return set()
        now = {r.device_id for r in self.results if is_ambiguous(r.outcome)}
        return now | ({*self.claimed.ambiguous_targets} - {r.device_id for r in self.results})

    @property
    def has_retryable(self) -> bool:
        """Whether a target has certainly not accepted, and may accept later."""
        failed = [r.outcome for r in self.results if isinstance(r.outcome, ProviderError)]
        later = any(
            isinstance(e, TransientError | ProviderUnavailableError) and not is_ambiguous(e)
            for e in failed
        )
        not_begun = {*self.claimed.device_ids} - {r.device_id for r in self.results}
        skipped = self.context.get("blocked_until") or self.context.get("quiet_hours_end")
        return bool(later or not_begun or skipped)

    def settlement(self) -> Settlement:
        return combine_results(
            self.claimed, self.results, provider="p", now=NOON, jitter=self.jitter, **self.context
        )


@st.composite
def cases(draw: st.DrawFn, *, with_devices: bool = True) -> Case:
    some = draw(st.lists(outcomes, min_size=1, max_size=5 if with_devices else 1))
    ids: list[str | None] = [f"d{n}" if with_devices else None for n in range(len(some))]
    not_begun = [f"late-{n}" for n in range(draw(st.integers(0, 2)) if with_devices else 0)]
    attempt_count = draw(st.integers(1, 300))
    claim = claimed(
        device_ids=tuple(i for i in [*ids, *not_begun] if i is not None),
        attempt_count=attempt_count,
        uncounted_attempts=draw(st.integers(0, attempt_count - 1)),
        max_attempts=draw(st.integers(1, 11)),
        priority=draw(st.sampled_from(Priority)),
        held_for=draw(st.timedeltas(timedelta(0), 100 * HOUR)),
        expires_at=draw(later),
        accepted_targets=("old",) if with_devices and draw(st.booleans()) else (),
    )
    if with_devices and draw(st.booleans()):
        before = draw(st.sampled_from(["d0", "d1", "older"]))
        claim = replace(claim, ambiguous_targets=(before,), ambiguous_provider="p")
    results = [
        TargetResult(
            device_id=device, outcome=outcome, started_at=NOON, finished_at=NOON, duration_ms=n
        )
        for n, (device, outcome) in enumerate(zip(ids, some, strict=True))
    ]
    context: dict[str, Any] = {"has_failover": draw(st.booleans())}
    if with_devices:
        context |= {"blocked_until": draw(later), "quiet_hours_end": draw(later)}
    return Case(claim, results, draw(st.floats(-1, 1)), context)


any_case = cases() | cases(with_devices=False)


@given(any_case)
def test_delivery_succeeds_if_and_only_if_a_target_accepted(case: Case) -> None:
    status = case.settlement().status
    assert status in {S.SENT, S.DELIVERED, S.PENDING, S.UNKNOWN, S.FAILED}
    assert status is S.PENDING or (status in SUCCEEDED) is case.is_accepted


@given(any_case)
def test_only_open_deliveries_have_a_next_attempt_before_the_expiry(case: Case) -> None:
    settlement = case.settlement()
    at: datetime | None = settlement.next_attempt_at
    assert (at is not None) is (settlement.status in {S.PENDING, S.UNKNOWN})
    assert at is None or at >= NOON
    if settlement.status is S.PENDING and case.claimed.expires_at is not None:
        # Another provider may be asked at once: whether it is too late then, the gate says.
        assert at in (None, NOON) or at < case.claimed.expires_at


@given(any_case)
def test_attempt_counts_unless_an_outage_prevented_it(case: Case) -> None:
    settlement = case.settlement()
    is_newly_ambiguous = not case.is_accepted and any(map(is_ambiguous, case.outcomes))
    if settlement.uncounted:
        assert settlement.status is S.PENDING
        assert not is_newly_ambiguous
    elif settlement.status is S.PENDING:
        assert any(isinstance(outcome, TransientError) for outcome in case.outcomes)
        assert (
            is_newly_ambiguous
            or case.claimed.retry_state.counted_attempts < case.claimed.max_attempts
        )


@given(any_case)
def test_ambiguous_delivery_waits_for_the_others_and_is_then_unknown(case: Case) -> None:
    status = case.settlement().status
    if not case.ambiguous:
        assert status is not S.UNKNOWN
    elif status is S.PENDING:
        assert case.has_retryable
    else:
        assert status is S.UNKNOWN


@given(any_case)
def test_ambiguous_targets_are_kept_while_others_are_retried(case: Case) -> None:
    settlement = case.settlement()
    expected = case.ambiguous if settlement.status is S.PENDING else set()
    assert {*settlement.ambiguous_targets} == expected


@given(any_case)
def test_ambiguous_delivery_never_fails_over(case: Case) -> None:
    settlement = case.settlement()
    if settlement.fails_over:
        assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
        assert not any(map(is_ambiguous, case.outcomes))
        assert case.claimed.ambiguous_provider is None


@given(any_case)
def test_accepted_targets_are_exactly_the_targets_that_accepted(case: Case) -> None:
    targets = case.settlement().accepted_targets
    assert len(targets) == len(set(targets))
    assert set(targets) == {*case.claimed.accepted_targets, *case.accepting_targets} - {None}


@given(cases())
def test_each_device_has_one_record_of_its_outcome(case: Case) -> None:
    records = {attempt.device_id: attempt for attempt in case.settlement().target_attempts}
    assert list(records) == list(case.claimed.device_ids)
    for result in case.results:
        record = records.pop(result.device_id or "")
        expected = AttemptStatus.FAILED
        if isinstance(result.outcome, SendResult):
            expected = AttemptStatus.SENT
        elif is_ambiguous(result.outcome):
            expected = AttemptStatus.UNKNOWN
        assert record.status is expected
        error = result.outcome if isinstance(result.outcome, ProviderError) else None
        assert record.code == (error.code if error else None)
    assert {record.status for record in records.values()} <= {AttemptStatus.EXPIRED}


@given(any_case)
def test_unsuccessful_settlement_has_code_and_reason(case: Case) -> None:
    settlement = case.settlement()
    explained = isinstance(settlement.code, FailureCode) and bool(settlement.reason)
    assert explained is (settlement.status not in SUCCEEDED)
    assert settlement.provider == "p"
