"""Decisions after a failed attempt."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from domain.retry import (
    JITTER,
    MAX_DELAY,
    MAX_OUTAGE,
    MAX_REFUSED_DELAY,
    UNKNOWN_WAIT,
    AwaitReceipt,
    GiveUp,
    RetryAt,
    RetryUncounted,
    UnknownPolicy,
    decide_retry,
    decide_unknown,
    delay,
    retry_or_give_up,
)
from domain.states import Priority
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import retry_state
from tests.support.tables import each_case

BUSY = TransientError("busy", code=FailureCode.PROVIDER_ERROR)
SILENT = TransientError("silent", code=FailureCode.TIMEOUT, is_ambiguous=True)
DOWN = ProviderUnavailableError("down")
TOO_FAST = TransientError("too fast", code=FailureCode.RATE_LIMITED)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
priorities = st.sampled_from(Priority)
jitter = st.floats(-1, 1)


def after(
    error: ProviderError, *, jitter: float = 0.0, now: datetime = NOON, **past: object
) -> object:
    return decide_retry(error=error, state=retry_state(**past), now=now, jitter=jitter)


@each_case(
    "priority, waits",
    [
        (Priority.CRITICAL, [15, 30, 60, 120, 240, 480]),
        (Priority.HIGH, [60, 120, 240, 480, 960, 1920]),
        (Priority.NORMAL, [300, 600, 1200, 2400, 4800, 9600]),
        (Priority.LOW, [300, 600, 1200, 2400, 4800, 9600]),
    ],
)
def test_each_delay_is_twice_the_one_before(priority: Priority, waits: list[int]) -> None:
    seconds = [
        delay(priority=priority, counted_attempts=n, jitter=0).total_seconds() for n in range(1, 7)
    ]
    assert seconds == waits


# Each re-opening by an operator adds attempts without a limit.
@each_case(
    "priority, n", [(Priority.CRITICAL, 12), *((Priority.NORMAL, n) for n in (8, 40, 64, 1_000))]
)
def test_delay_is_at_most_six_hours(priority: Priority, n: int) -> None:
    assert delay(priority=priority, counted_attempts=n, jitter=0) == MAX_DELAY == timedelta(hours=6)


@given(priority=priorities, attempts=st.integers(1, 20), jitter=jitter)
def test_jitter_is_a_fifth_to_either_side(priority: Priority, attempts: int, jitter: float) -> None:
    middle = delay(priority=priority, counted_attempts=attempts, jitter=0)
    wait = delay(priority=priority, counted_attempts=attempts, jitter=jitter)
    assert middle * (1 - JITTER) - SECOND <= wait <= middle * (1 + JITTER) + SECOND


def test_jitter_reaches_both_ends() -> None:
    low = delay(priority=Priority.HIGH, counted_attempts=1, jitter=-1)
    high = delay(priority=Priority.HIGH, counted_attempts=1, jitter=1)
    assert (low, high) == (48 * SECOND, 72 * SECOND)


@given(priority=priorities, attempts=st.integers(1, 10), jitter=jitter)
def test_more_attempts_never_wait_less(priority: Priority, attempts: int, jitter: float) -> None:
    wait = delay(priority=priority, counted_attempts=attempts, jitter=jitter)
    assert delay(priority=priority, counted_attempts=attempts + 1, jitter=jitter) >= wait


@each_case(
    "retry_after, wait",
    [(None, 300), (0.0, 300), (1.0, 300), (299.0, 300), (301.0, 301), (7200.0, 7200)],
)
def test_delay_is_at_least_retry_after(retry_after: float | None, wait: int) -> None:
    error = TransientError("slow down", code=FailureCode.PROVIDER_ERROR, retry_after=retry_after)
    assert after(error) == RetryAt(NOON + wait * SECOND)


@each_case("max_attempts", [1, 2, 4, 11])
def test_last_allowed_attempt_is_the_last(max_attempts: int) -> None:
    one_left = after(BUSY, attempt_count=max_attempts - 1, max_attempts=max_attempts)
    none_left = after(BUSY, attempt_count=max_attempts, max_attempts=max_attempts)
    assert none_left == GiveUp(FailureCode.PROVIDER_ERROR)
    assert max_attempts == 1 or isinstance(one_left, RetryAt)


def test_uncounted_attempts_do_not_use_up_attempts() -> None:
    assert isinstance(after(BUSY, attempt_count=6, uncounted_attempts=3, max_attempts=4), RetryAt)
    assert after(BUSY, attempt_count=7, uncounted_attempts=3, max_attempts=4) == GiveUp(BUSY.code)
    assert retry_state(attempt_count=7, uncounted_attempts=3).counted_attempts == 4


def test_uncounted_attempts_do_not_lengthen_the_delay() -> None:
    assert after(BUSY, attempt_count=4, uncounted_attempts=3) == RetryAt(NOON + 5 * MINUTE)


@each_case(
    "left, decision",
    [
        (timedelta(seconds=299), GiveUp(FailureCode.PROVIDER_ERROR)),
        (timedelta(seconds=300), GiveUp(FailureCode.PROVIDER_ERROR)),
        (timedelta(seconds=301), RetryAt(NOON + 5 * MINUTE)),
    ],
)
def test_retry_after_the_expiry_is_given_up(left: timedelta, decision: object) -> None:
    assert after(BUSY, expires_at=NOON + left) == decision


@given(
    attempts=st.integers(1, 12),
    max_attempts=st.integers(1, 12),
    retry_after=st.none() | st.floats(0, 90_000),
    left=st.none() | st.integers(1, 200_000),
    jitter=jitter,
    priority=priorities,
)
def test_retry_is_in_the_future_within_limit_and_expiry(
    *,
    attempts: int,
    max_attempts: int,
    retry_after: float | None,
    left: int | None,
    jitter: float,
    priority: Priority,
) -> None:
    past = retry_state(
        attempt_count=attempts,
        max_attempts=max_attempts,
        priority=priority,
        expires_at=None if left is None else NOON + left * SECOND,
    )
    decision = retry_or_give_up(
        code=BUSY.code, retry_after=retry_after, state=past, now=NOON, jitter=jitter
    )
    if isinstance(decision, GiveUp):
        assert decision.code is BUSY.code
        assert attempts >= max_attempts or past.expires_at is not None
    else:
        assert decision.at > NOON
        assert (decision.at - NOON).total_seconds() >= (retry_after or 0) - 1e-6
        assert attempts < max_attempts
        assert past.expires_at is None or decision.at < past.expires_at


@each_case(
    "error",
    [
        PermanentError("no", code=FailureCode.REJECTED),
        PermanentError("too much", code=FailureCode.TOO_LARGE),
        InvalidRecipientError("nobody", action=RecipientAction.DEACTIVATE),
    ],
)
def test_permanent_error_is_never_retried(error: ProviderError) -> None:
    assert after(error, attempt_count=1, max_attempts=11) == GiveUp(error.code)


@each_case(
    "priority, wait",
    [
        (Priority.CRITICAL, 30 * SECOND),
        (Priority.HIGH, 2 * MINUTE),
        (Priority.NORMAL, 5 * MINUTE),
        (Priority.LOW, 15 * MINUTE),
    ],
)
def test_unknown_outcome_awaits_a_receipt(priority: Priority, wait: timedelta) -> None:
    assert after(SILENT, priority=priority) == AwaitReceipt(NOON + wait)
    assert UNKNOWN_WAIT[priority] == wait


def test_unknown_outcome_awaits_a_receipt_after_the_last_attempt() -> None:
    decision = after(SILENT, attempt_count=4, max_attempts=4, expires_at=NOON + SECOND)
    assert decision == AwaitReceipt(NOON + 5 * MINUTE)


@each_case(
    "uncounted, wait",
    [(0, 30), (1, 60), (2, 120), (3, 240), (4, 480), (5, 900), (6, 900), (500, 900)],
)
def test_outage_is_retried_at_growing_delays(uncounted: int, wait: int) -> None:
    decision = after(DOWN, attempt_count=uncounted + 1, uncounted_attempts=uncounted)
    assert decision == RetryUncounted(NOON + wait * SECOND)


@each_case("jitter, wait", [(-1, 24), (1, 36)])
def test_outage_retries_have_jitter(jitter: float, wait: int) -> None:
    assert after(DOWN, jitter=jitter) == RetryUncounted(NOON + wait * SECOND)


@given(
    error=st.sampled_from(
        [BUSY, SILENT, DOWN, TOO_FAST, PermanentError("no", code=FailureCode.REJECTED)]
    ),
    attempts=st.integers(1, 10**9),
    uncounted=st.integers(0, 10**9),
    jitter=jitter,
    priority=priorities,
)
def test_every_state_has_a_decision(
    error: ProviderError, attempts: int, uncounted: int, jitter: float, priority: Priority
) -> None:
    """An exception for one delivery would fail its whole batch."""
    past = {
        "attempt_count": attempts + uncounted,
        "uncounted_attempts": uncounted,
        "max_attempts": 10**9 + 1,
        "priority": priority,
    }
    assert after(error, jitter=jitter, **past)


def test_outage_uses_no_attempt() -> None:
    assert isinstance(after(DOWN, attempt_count=1, max_attempts=1), RetryUncounted)


def test_outage_waits_for_retry_after() -> None:
    error = ProviderUnavailableError("quota", retry_after=3600.0)
    assert after(error) == RetryUncounted(NOON + HOUR + MAX_REFUSED_DELAY)


def test_outage_is_given_up_after_three_days() -> None:
    almost, over = MAX_OUTAGE - SECOND, MAX_OUTAGE
    assert isinstance(after(DOWN, held_for=almost), RetryUncounted)
    assert after(DOWN, held_for=over) == GiveUp(FailureCode.CHANNEL_UNAVAILABLE)


def test_outage_is_given_up_at_the_expiry() -> None:
    assert after(DOWN, expires_at=NOON + 30 * SECOND) == GiveUp(FailureCode.CHANNEL_UNAVAILABLE)
    assert isinstance(after(DOWN, expires_at=NOON + 31 * SECOND), RetryUncounted)


def test_rate_limit_uses_no_attempt() -> None:
    """A provider that takes less than the service has would otherwise fail the surplus."""
    assert after(TOO_FAST, attempt_count=1, max_attempts=1) == RetryUncounted(NOON + SECOND)


@each_case("uncounted, wait", [(0, 1), (1, 2), (4, 16), (9, 512), (10, 900), (500, 900)])
def test_rate_limit_is_retried_at_growing_delays(uncounted: int, wait: int) -> None:
    decision = after(TOO_FAST, attempt_count=uncounted + 1, uncounted_attempts=uncounted)
    assert decision == RetryUncounted(NOON + wait * SECOND)


@each_case("retry_after, wait", [(0.0, 1), (1.0, 1.1), (20.0, 22), (90.0, 95)])
def test_rate_limit_waits_for_retry_after_and_lets_others_go_first(
    retry_after: float, wait: float
) -> None:
    error = TransientError("too fast", code=FailureCode.RATE_LIMITED, retry_after=retry_after)
    assert after(error) == RetryUncounted(NOON + wait * SECOND)


def test_delivery_that_would_expire_waits_no_longer_than_retry_after() -> None:
    error = TransientError("too fast", code=FailureCode.RATE_LIMITED, retry_after=60)
    assert after(error, expires_at=NOON + 65 * SECOND) == RetryUncounted(NOON + 60 * SECOND)


def test_rate_limit_is_given_up_after_three_days() -> None:
    almost, over = MAX_OUTAGE - SECOND, MAX_OUTAGE
    assert isinstance(after(TOO_FAST, held_for=almost), RetryUncounted)
    assert after(TOO_FAST, held_for=over) == GiveUp(FailureCode.RATE_LIMITED)


def test_rate_limit_is_given_up_at_the_expiry() -> None:
    assert after(TOO_FAST, expires_at=NOON + SECOND) == GiveUp(FailureCode.RATE_LIMITED)
    assert isinstance(after(TOO_FAST, expires_at=NOON + 2 * SECOND), RetryUncounted)


@each_case(
    "policy, past, decision",
    [
        (UnknownPolicy.RETRY, {}, RetryAt(NOON)),
        (UnknownPolicy.FAIL, {}, GiveUp(FailureCode.OUTCOME_UNKNOWN)),
        (UnknownPolicy.RETRY, {"attempt_count": 4}, GiveUp(FailureCode.OUTCOME_UNKNOWN)),
        (UnknownPolicy.RETRY, {"attempt_count": 4, "uncounted_attempts": 1}, RetryAt(NOON)),
        (UnknownPolicy.RETRY, {"expires_at": NOON}, GiveUp(FailureCode.OUTCOME_UNKNOWN)),
        (UnknownPolicy.RETRY, {"expires_at": NOON + SECOND}, RetryAt(NOON)),
        (UnknownPolicy.FAIL, {"expires_at": NOON}, GiveUp(FailureCode.OUTCOME_UNKNOWN)),
    ],
)
def test_policy_decides_without_a_receipt(
    policy: UnknownPolicy, past: dict[str, object], decision: object
) -> None:
    assert decide_unknown(policy=policy, state=retry_state(**past), now=NOON) == decision
