"""A token bucket in one process."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.rate_limiter import MIN_SHARE, TokenBucket

START = 1_790_000_000_000
SECOND = 1000
rates = st.one_of(st.floats(0.01, 10_000), st.integers(1, 10_000).map(float))
pauses = st.integers(0, 100 * SECOND)


def full(rate: float = 80.0, burst: int = 8) -> TokenBucket:
    """Return a bucket that was used for the first time at START."""
    bucket = TokenBucket()
    bucket.take(0, rate=rate, burst=burst, now=START)
    return bucket


def granted(bucket: TokenBucket, after: int = 0, count: int = 1000, rate: float = 80.0) -> int:
    return bucket.take(count, rate=rate, burst=8, now=START + after)[0]


def test_it_begins_full_and_gains_at_its_rate() -> None:
    bucket = full()
    assert [granted(bucket, after) for after in (0, 0, 50, 60, 100, SECOND)] == [8, 0, 4, 0, 4, 8]


def test_it_says_when_the_next_one_may_go() -> None:
    bucket = full()
    assert bucket.take(3, rate=80.0, burst=8, now=START) == (3, 0)
    assert bucket.take(6, rate=80.0, burst=8, now=START) == (5, 13)
    assert bucket.take(6, rate=80.0, burst=8, now=START + 12) == (0, 1)
    assert bucket.take(6, rate=80.0, burst=8, now=START + 13) == (1, 12)


def test_a_rate_below_one_a_second_lets_one_go_now_and_then() -> None:
    bucket = TokenBucket()
    taken = [bucket.take(5, rate=0.1, burst=1, now=START + s * SECOND) for s in (0, 5, 10, 11)]
    assert taken == [(1, 10_000), (0, 5_000), (1, 10_000), (0, 9_000)]


def test_without_a_rate_only_a_refusal_holds_anything_up() -> None:
    bucket = TokenBucket()
    assert bucket.take(10**6, rate=None, burst=0, now=START) == (10**6, 0)
    bucket.throttle(pause=5 * SECOND, now=START)
    assert bucket.take(7, rate=None, burst=0, now=START + SECOND) == (0, 4 * SECOND)
    assert bucket.take(7, rate=None, burst=0, now=START + 5 * SECOND) == (7, 0)


def test_after_a_refusal_it_waits_and_begins_empty_at_half_the_rate() -> None:
    bucket = full()
    bucket.throttle(pause=5 * SECOND, now=START)
    assert bucket.take(9, rate=80.0, burst=8, now=START + SECOND) == (0, 4 * SECOND)
    assert bucket.take(9, rate=80.0, burst=8, now=START + 5 * SECOND) == (0, 25)
    assert granted(bucket, 5 * SECOND + 100) == 4


def each_second(bucket: TokenBucket, seconds: Sequence[int]) -> list[int]:
    """Return what is granted in each of these seconds, asking fifty times in each."""
    return [
        sum(granted(bucket, second * SECOND + part * 20) for part in range(50))
        for second in seconds
    ]


def test_the_rate_comes_back_by_a_tenth_every_ten_seconds() -> None:
    bucket = full()
    bucket.throttle(pause=0, now=START)
    rates = each_second(bucket, range(60))
    steps = [rates[5 + 10 * step] for step in range(6)]
    assert steps == [40, 48, 56, 64, 72, 80]


def test_another_refusal_halves_it_again_and_recovery_begins_anew() -> None:
    bucket = full()
    bucket.throttle(pause=0, now=START)
    bucket.throttle(pause=0, now=START + 15 * SECOND)
    rates = each_second(bucket, range(15, 40))
    assert (rates[5], rates[9], rates[15]) == (24, 24, 32)


def test_refusals_of_what_left_at_the_same_time_count_once() -> None:
    bucket = full()
    for n in range(32):
        bucket.throttle(pause=0, now=START + n * 31)
    assert each_second(bucket, [2, 3])[-1] == 40
    bucket.throttle(pause=20 * SECOND, now=START + 4 * SECOND)
    bucket.throttle(pause=0, now=START + 19 * SECOND)
    assert granted(bucket, 24 * SECOND - 1) == 0
    assert each_second(bucket, [24, 25])[-1] == 20


def test_one_in_a_hundred_is_always_left() -> None:
    bucket = full()
    for n in range(100):
        bucket.throttle(pause=0, now=START + n * SECOND)
    assert bucket.take(1, rate=80.0, burst=8, now=START + 99 * SECOND) == (0, 1250)
    assert 80.0 * MIN_SHARE == 0.8


@pytest.mark.parametrize("ahead", [3, 600, 86_400])
def test_a_clock_that_is_wrong_starves_nobody(ahead: int) -> None:
    bucket = full()
    granted(bucket, ahead * SECOND)
    assert granted(bucket, 0) == 0
    assert granted(bucket, 100) == 8


def test_clocks_that_differ_a_little_grant_nothing_twice() -> None:
    bucket = full()
    granted(bucket, SECOND)
    assert [granted(bucket, after) for after in (0, 500, SECOND, SECOND + 50)] == [0, 0, 0, 4]


takes = st.tuples(st.integers(0, 3000), st.integers(0, 50), st.just(-1))
refusals = st.tuples(st.integers(0, 3000), st.just(0), pauses)


@given(rate=rates, burst=st.integers(1, 1000), events=st.lists(takes | refusals, max_size=60))
def test_no_window_has_more_than_its_rate_and_one_burst(
    rate: float, burst: int, events: list[tuple[int, int, int]]
) -> None:
    bucket, now = TokenBucket(), START
    grants: list[tuple[int, int]] = []
    for wait, count, pause in events:
        now += wait
        if pause >= 0:
            bucket.throttle(pause=pause, now=now)
        else:
            grants.append((now, bucket.take(count, rate=rate, burst=burst, now=now)[0]))
    for first, (begin, _) in enumerate(grants):
        total = 0
        for end, number in grants[first:]:
            total += number
            assert total <= rate * (end - begin) / 1000 + burst + 1e-6


@given(rate=rates, burst=st.integers(1, 1000), pause=pauses, count=st.integers(1, 50))
def test_who_waits_as_told_is_granted_one(rate: float, burst: int, pause: int, count: int) -> None:
    bucket = full(rate, burst)
    bucket.take(burst, rate=rate, burst=burst, now=START)
    bucket.throttle(pause=pause, now=START)
    now = START + bucket.take(count, rate=rate, burst=burst, now=START)[1]
    for _ in range(3):
        number, wait = bucket.take(count, rate=rate, burst=burst, now=now)
        if number:
            break
        # The pause comes first; and a sum of fractions may be short of one by a hair.
        now += wait
    assert number >= 1


def test_threads_share_it() -> None:
    bucket = full(burst=500)
    with ThreadPoolExecutor(16) as pool:
        numbers = pool.map(
            lambda _: bucket.take(7, rate=80.0, burst=500, now=START)[0], range(1000)
        )
        assert sum(numbers) == 500
