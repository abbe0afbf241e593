"""Bisection of a refused batch: requests and their number."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from providers.contract import NotAttemptedError, SendResult
from providers.sendgrid.provider import MAX_REQUESTS, Outcome, RequestResult, send_bisecting

SENT = SendResult(provider_id="sg-1", response=ProviderResponse(status=202))
BLAMED = InvalidRecipientError("no such address", action=RecipientAction.SUSPECT)
LOST = TransientError("no answer", code=FailureCode.TIMEOUT, is_ambiguous=True)
BUSY = TransientError("busy", code=FailureCode.RATE_LIMITED, retry_after=5)
BROKEN = TransientError("broken", code=FailureCode.PROVIDER_ERROR)
LOCKED = ProviderUnavailableError("wrong key")
TOO_LARGE = PermanentError("too large", code=FailureCode.TOO_LARGE)


class Provider:
    """Refuses requests that contain one of ``bad``. Otherwise returns ``answers`` or sends."""

    def __init__(self, bad: Sequence[int] = (), answers: Sequence[Outcome] = ()) -> None:
        self.bad = set(bad)
        self.answers = list(answers)
        self.requests: list[list[int]] = []
        self.sent: Counter[int] = Counter()

    def __call__(self, group: Sequence[int]) -> RequestResult:
        self.requests.append(list(group))
        if self.bad.intersection(group):
            return RequestResult(outcome=BLAMED, can_bisect=True)
        outcome = self.answers.pop(0) if self.answers else SENT
        if isinstance(outcome, SendResult) or outcome is LOST:
            self.sent.update(group)
        return RequestResult(outcome=outcome)


def bisect(
    provider: Provider, *requests: Sequence[int], seconds: int = 10**6
) -> dict[int, Outcome]:
    """Send with time for ``seconds`` more requests after the first."""
    left = iter(range(seconds))
    return send_bisecting(requests, send=provider, has_time=lambda: next(left, None) is not None)


@given(count=st.integers(1, 200), bad=st.sets(st.integers(0, 199), max_size=4))
def test_only_refused_recipients_fail_and_others_get_one_mail(count: int, bad: set[int]) -> None:
    provider = Provider(sorted(bad))
    outcomes = bisect(provider, range(count))
    blamed = bad & set(range(count))
    assert {n for n, outcome in outcomes.items() if outcome is BLAMED} == blamed
    assert {n for n, outcome in outcomes.items() if outcome is SENT} == set(range(count)) - blamed
    assert provider.sent == Counter(set(range(count)) - blamed)


def test_accepted_request_is_the_only_one() -> None:
    provider = Provider()
    assert bisect(provider, range(1_000)) == dict.fromkeys(range(1_000), SENT)
    assert len(provider.requests) == 1


def test_one_bad_address_in_a_thousand_takes_about_twenty_requests() -> None:
    provider = Provider([617])
    outcomes = bisect(provider, range(1_000))
    assert outcomes[617] is BLAMED
    assert len(provider.requests) <= 21


def test_larger_groups_go_first() -> None:
    provider = Provider([0])
    bisect(provider, range(16))
    sizes = [len(group) for group in provider.requests]
    assert sizes == sorted(sizes, reverse=True)


def test_refusal_of_all_is_not_bisected() -> None:
    provider = Provider(answers=[TOO_LARGE])
    assert bisect(provider, range(100)) == dict.fromkeys(range(100), TOO_LARGE)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("outcome", [BUSY, BROKEN, LOCKED])
def test_unavailable_provider_ends_bisection(outcome: ProviderError) -> None:
    provider = Provider([0], [SENT, outcome])
    outcomes = bisect(provider, range(16))
    taken = sorted(n for n, one in outcomes.items() if one is SENT)
    assert taken == list(range(8, 16))
    assert {outcomes[n] for n in range(8)} == {outcome}
    assert provider.sent == Counter(taken)


def test_ambiguous_outcome_stays_in_its_request() -> None:
    provider = Provider([0], [LOST])
    outcomes = bisect(provider, range(8))
    assert {n for n, one in outcomes.items() if one is LOST} == {4, 5, 6, 7}
    assert outcomes[0] is BLAMED
    assert {n for n, one in outcomes.items() if one is SENT} == {1, 2, 3}
    assert max(provider.sent.values()) == 1


def test_bisection_out_of_time_returns_unattempted() -> None:
    provider = Provider([0])
    outcomes = bisect(provider, range(16), seconds=2)
    assert len(provider.requests) == 3
    assert {n for n, one in outcomes.items() if one is SENT} == set(range(8, 16))
    left = [outcomes[n] for n in range(8)]
    assert all(isinstance(one, NotAttemptedError) and not one.is_ambiguous for one in left)


def test_first_request_needs_no_time() -> None:
    provider = Provider()
    assert bisect(provider, [0, 1], seconds=0) == {0: SENT, 1: SENT}


def test_entirely_bad_batch_ends() -> None:
    provider = Provider(range(1_000))
    outcomes = bisect(provider, range(1_000))
    assert len(provider.requests) == MAX_REQUESTS
    assert outcomes.keys() == set(range(1_000))
    assert all(isinstance(one, NotAttemptedError) or one is BLAMED for one in outcomes.values())
    assert provider.sent == Counter()


def test_several_requests_go_in_turn() -> None:
    provider = Provider([1])
    outcomes = bisect(provider, [0, 1], [2, 3], [4])
    assert provider.requests[:3] == [[0, 1], [2, 3], [4]]
    assert [outcomes[n] for n in range(5)] == [SENT, BLAMED, SENT, SENT, SENT]


def test_no_recipients_need_no_request() -> None:
    provider = Provider()
    assert bisect(provider) == {}
    assert provider.requests == []
