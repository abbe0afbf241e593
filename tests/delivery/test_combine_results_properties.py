"""What holds for every mix of answers, whatever came before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from delivery.results import TargetResult, combine_results
from domain.errors import FailureCode, ProviderError, ProviderUnavailableError, TransientError
from domain.states import SUCCEEDED, AttemptStatus, DeliveryStatus, Priority
from notifications.store import ClaimedDelivery, Settlement
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


def is_in_doubt(outcome: Outcome) -> bool:
    return isinstance(outcome, TransientError) and outcome.is_ambiguous


@dataclass(frozen=True)
class Case:
    """An attempt, what came of it, and what is known beside."""

    claimed: ClaimedDelivery
    results: Sequence[TargetResult]
    dice: float
    context: dict[str, Any]

    @property
    def outcomes(self) -> list[Outcome]:
        return [result.outcome for result in self.results]

    @property
    def took_it(self) -> set[str | None]:
        return {r.device_id for r in self.results if isinstance(r.outcome, SendResult)}

    @property
    def is_reached(self) -> bool:
        return bool(self.took_it or self.claimed.accepted_targets)

    @property
    def doubtful(self) -> set[str | None]:
        """Who may have it, if nobody is known to have it."""
        if self.is_reached:
            return set()
        now = {r.device_id for r in self.results if is_in_doubt(r.outcome)}
        return now | ({*self.claimed.ambiguous_targets} - {r.device_id for r in self.results})

    @property
    def has_others(self) -> bool:
        """Whether there is somebody who certainly has not got it, and may get it yet."""
        failed = [r.outcome for r in self.results if isinstance(r.outcome, ProviderError)]
        later = any(
            isinstance(e, TransientError | ProviderUnavailableError) and not is_in_doubt(e)
            for e in failed
        )
        not_begun = {*self.claimed.device_ids} - {r.device_id for r in self.results}
        left_out = self.context.get("blocked_until") or self.context.get("quiet_hours_end")
        return bool(later or not_begun or left_out)

    def settlement(self) -> Settlement:
        return combine_results(
            self.claimed, self.results, provider="p", now=NOON, jitter=self.dice, **self.context
        )


@st.composite
def cases(draw: st.DrawFn, *, with_devices: bool = True) -> Case:
    some = draw(st.lists(outcomes, min_size=1, max_size=5 if with_devices else 1))
    ids: list[str | None] = [f"d{n}" if with_devices else None for n in range(len(some))]
    not_begun = [f"late-{n}" for n in range(draw(st.integers(0, 2)) if with_devices else 0)]
    attempt_count = draw(st.integers(1, 300))
    one = claimed(
        device_ids=tuple(i for i in [*ids, *not_begun] if i is not None),
        attempt_count=attempt_count,
        uncounted_attempts=draw(st.integers(0, attempt_count - 1)),
        max_attempts=draw(st.integers(1, 11)),
        priority=draw(st.sampled_from(Priority)),
        first_due_at=NOON - draw(st.timedeltas(timedelta(0), 100 * HOUR)),
        expires_at=draw(later),
        accepted_targets=("old",) if with_devices and draw(st.booleans()) else (),
    )
    if with_devices and draw(st.booleans()):
        before = draw(st.sampled_from(["d0", "d1", "older"]))
        one = replace(one, ambiguous_targets=(before,), ambiguous_provider="p")
    results = [
        TargetResult(
            device_id=device, outcome=outcome, started_at=NOON, finished_at=NOON, duration_ms=n
        )
        for n, (device, outcome) in enumerate(zip(ids, some, strict=True))
    ]
    context: dict[str, Any] = {"has_failover": draw(st.booleans())}
    if with_devices:
        context |= {"blocked_until": draw(later), "quiet_hours_end": draw(later)}
    return Case(one, results, draw(st.floats(-1, 1)), context)


any_case = cases() | cases(with_devices=False)


@given(any_case)
def test_a_delivery_is_sent_only_if_somebody_has_it_and_failed_only_if_nobody_has(
    case: Case,
) -> None:
    status = case.settlement().status
    assert status in {S.SENT, S.DELIVERED, S.PENDING, S.UNKNOWN, S.FAILED}
    assert status is S.PENDING or (status in SUCCEEDED) is case.is_reached


@given(any_case)
def test_only_what_is_open_is_looked_at_again_and_not_after_its_end(case: Case) -> None:
    settlement = case.settlement()
    at: datetime | None = settlement.next_attempt_at
    assert (at is not None) is (settlement.status in {S.PENDING, S.UNKNOWN})
    assert at is None or at >= NOON
    if settlement.status is S.PENDING and case.claimed.expires_at is not None:
        # Another provider may be asked at once: whether it is too late then, the gate says.
        assert at in (None, NOON) or at < case.claimed.expires_at


@given(any_case)
def test_an_attempt_counts_unless_an_outage_spoiled_it(case: Case) -> None:
    settlement = case.settlement()
    is_new_doubt = not case.is_reached and any(map(is_in_doubt, case.outcomes))
    if settlement.uncounted:
        assert settlement.status is S.PENDING
        assert not is_new_doubt
    elif settlement.status is S.PENDING:
        assert any(isinstance(outcome, TransientError) for outcome in case.outcomes)
        assert is_new_doubt or case.claimed.retry_state.counted_attempts < case.claimed.max_attempts


@given(any_case)
def test_a_doubt_with_nobody_reached_waits_for_the_others_and_is_decided_then(case: Case) -> None:
    status = case.settlement().status
    if not case.doubtful:
        assert status is not S.UNKNOWN
    elif status is S.PENDING:
        assert case.has_others
    else:
        assert status is S.UNKNOWN


@given(any_case)
def test_who_may_have_it_is_known_while_the_others_are_tried(case: Case) -> None:
    settlement = case.settlement()
    expected = case.doubtful if settlement.status is S.PENDING else set()
    assert {*settlement.ambiguous_targets} == expected


@given(any_case)
def test_what_a_provider_may_have_taken_is_given_to_no_other(case: Case) -> None:
    settlement = case.settlement()
    if settlement.fails_over:
        assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
        assert not any(map(is_in_doubt, case.outcomes))
        assert case.claimed.ambiguous_provider is None


@given(any_case)
def test_nobody_who_has_it_is_forgotten_and_nobody_else_is_among_them(case: Case) -> None:
    told = case.settlement().accepted_targets
    assert len(told) == len(set(told))
    assert set(told) == {*case.claimed.accepted_targets, *case.took_it} - {None}


@given(cases())
def test_every_device_has_exactly_one_record_and_it_says_what_happened(case: Case) -> None:
    tries = {one.device_id: one for one in case.settlement().target_attempts}
    assert list(tries) == list(case.claimed.device_ids)
    for result in case.results:
        record = tries.pop(result.device_id or "")
        expected = AttemptStatus.FAILED
        if isinstance(result.outcome, SendResult):
            expected = AttemptStatus.SENT
        elif is_in_doubt(result.outcome):
            expected = AttemptStatus.UNKNOWN
        assert record.status is expected
        error = result.outcome if isinstance(result.outcome, ProviderError) else None
        assert record.code == (error.code if error else None)
    assert {one.status for one in tries.values()} <= {AttemptStatus.EXPIRED}


@given(any_case)
def test_why_it_is_not_sent_is_told(case: Case) -> None:
    settlement = case.settlement()
    explained = isinstance(settlement.code, FailureCode) and bool(settlement.reason)
    assert explained is (settlement.status not in SUCCEEDED)
    assert settlement.answer.provider == "p"
