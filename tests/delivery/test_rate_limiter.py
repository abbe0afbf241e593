"""Rate limits to providers: shared in Valkey, and token buckets in one process."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from delivery import rate_limiter
from delivery.rate_limiter import MIN_SHARE, Grant, TokenBucket
from notifyproject.platform import valkey
from tests.support.factories.notifications import NOON
from tests.support.fakes.valkey_faults import at_once, of_our_own, unavailable, unresponsive

WHATSAPP = "whatsapp:1a2b3c4d"

SECOND = timedelta(seconds=1)

MILLISECOND = timedelta(milliseconds=1)

_numbers = count()

with_valkey = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def _full_buckets(broker: redis.Redis, valkey_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limiter, "_buckets", {})


def take(number: int = 1000, after: timedelta = timedelta(), **options: Any) -> Grant:
    options = {"account": WHATSAPP, "rate": 80.0, "burst": 8, "now": NOON + after, **options}
    return rate_limiter.take(count=number, **options)


def slow_down(after: timedelta = timedelta(), retry_after: float | None = None) -> None:
    rate_limiter.throttle(WHATSAPP, retry_after=retry_after, now=NOON + after)


@pytest.mark.usefixtures("_full_buckets")
def test_as_many_go_as_may_and_the_wait_for_the_next_is_told() -> None:
    assert take(3) == Grant(3, timedelta())
    assert take(6) == Grant(5, 13 * MILLISECOND)
    assert take(6, after=13 * MILLISECOND) == Grant(1, 12 * MILLISECOND)
    assert take(0, after=SECOND) == Grant(0, timedelta())
    assert take(-5, after=SECOND) == Grant(0, timedelta())
    assert take(9, after=SECOND).granted == 8


@pytest.mark.usefixtures("_full_buckets")
def test_accounts_have_rates_of_their_own() -> None:
    assert take(8).granted == 8
    assert take(8, account="whatsapp:other").granted == 8


@pytest.mark.usefixtures("_full_buckets")
def test_an_account_without_a_rate_is_held_up_by_refusals_only() -> None:
    assert take(10**6, rate=None, burst=0) == Grant(10**6, timedelta())
    slow_down(retry_after=30)
    assert take(7, rate=None, burst=0, after=SECOND) == Grant(0, 29 * SECOND)
    assert take(7, rate=None, burst=0, after=30 * SECOND) == Grant(7, timedelta())


@pytest.mark.usefixtures("_full_buckets")
def test_after_a_refusal_it_pauses_and_goes_on_at_half_the_rate() -> None:
    take(8)
    slow_down(retry_after=5)
    assert take(9, after=SECOND) == Grant(0, 4 * SECOND)
    assert take(9, after=5 * SECOND) == Grant(0, 25 * MILLISECOND)
    assert take(9, after=5.1 * SECOND).granted == 4


@pytest.mark.usefixtures("_full_buckets")
@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [(None, 0), (-1.0, 0), (float("nan"), 0), (0.5, 0.5), (1e12, 86_400), (float("inf"), 86_400)],
)
def test_it_pauses_for_as_long_as_the_provider_asks(
    retry_after: float | None, seconds: float
) -> None:
    slow_down(retry_after=retry_after)
    assert take(rate=None, burst=0).wait == timedelta(seconds=seconds)


@pytest.mark.usefixtures("_full_buckets")
def test_refusals_of_one_batch_count_once() -> None:
    with capture_logs() as logs:
        at_once(32, slow_down)
    assert [(entry["event"], entry["share"]) for entry in logs] == [("rate_throttled", 0.5)]


@pytest.mark.usefixtures("_full_buckets")
def test_any_number_of_callers_gets_no_more_than_there_is() -> None:
    grants = at_once(32, lambda: take(7, burst=100).granted)
    assert sum(grants) == 100


@pytest.mark.usefixtures("_full_buckets")
def test_callers_at_work_for_a_while_keep_to_the_rate_together() -> None:
    """Each has a clock of its own that is a little off, and asks as often as it can."""

    def work(caller: int) -> int:
        skew = (caller - 8) * 50 * MILLISECOND
        return sum(take(5, after=n * 10 * MILLISECOND + skew).granted for n in range(100))

    with ThreadPoolExecutor(16) as pool:
        total = sum(pool.map(work, range(16)))
    assert 80 <= total <= 80 * (0.99 + 0.75) + 8


takes = st.tuples(st.integers(0, 3000), st.integers(0, 50), st.none())

pauses = st.integers(0, 100).map(float)

refusals = st.tuples(st.integers(0, 3000), st.just(0), pauses)

histories = st.lists(takes | refusals, max_size=40)

rates = st.floats(0.01, 10_000)


@pytest.mark.usefixtures("_full_buckets")
@with_valkey
@given(rate=rates, burst=st.integers(1, 1000), events=histories)
def test_no_window_has_more_than_its_rate_and_one_burst(
    rate: float, burst: int, events: list[tuple[int, int, float | None]]
) -> None:
    account, now = f"history:{next(_numbers)}", NOON
    grants: list[tuple[datetime, int]] = []
    for wait, number, pause in events:
        now += wait * MILLISECOND
        if pause is None:
            grant = rate_limiter.take(account, number, rate=rate, burst=burst, now=now)
            assert grant.granted <= number
            grants.append((now, grant.granted))
        else:
            rate_limiter.throttle(account, retry_after=pause, now=now)
    for first, (begin, _) in enumerate(grants):
        total = 0
        for end, number in grants[first:]:
            total += number
            assert total <= rate * (end - begin).total_seconds() + burst + 1e-6


@pytest.mark.usefixtures("_full_buckets")
@with_valkey
@given(rate=st.none() | rates, burst=st.integers(1, 1000), events=histories, back=st.booleans())
def test_valkey_and_a_bucket_of_this_process_reckon_alike(
    rate: float | None, burst: int, events: list[tuple[int, int, float | None]], back: bool
) -> None:
    account, now, own = f"history:{next(_numbers)}", NOON, TokenBucket()
    for turn, (wait, number, pause) in enumerate(events):
        now += wait * MILLISECOND * (-1 if back and turn % 3 == 0 else 1)
        at = valkey.to_milliseconds(now)
        if pause is None:
            shared = rate_limiter.take(account, number, rate=rate, burst=burst, now=now)
            granted, left = own.take(number, rate=rate, burst=burst, now=at)
            assert shared == Grant(granted, left * MILLISECOND)
        else:
            rate_limiter.throttle(account, retry_after=pause, now=now)
            own.throttle(pause=int(pause * 1000), now=at)


@pytest.mark.usefixtures("_full_buckets")
def test_a_bucket_is_forgotten_when_it_would_be_full(broker: redis.Redis) -> None:
    take(8)
    assert 590_000 < broker.pttl(f"rate:{WHATSAPP}") <= 600_100
    take(1, account="smtp:1", rate=1 / 3600, burst=2)
    assert broker.pttl("rate:smtp:1") > 2 * 3600 * 1000
    rate_limiter.throttle("smtp:1", retry_after=None, now=NOON)
    assert broker.pttl("rate:smtp:1") > 2 * 3600 * 1000
    slow_down(retry_after=3600)
    assert 3600_000 < broker.pttl(f"rate:{WHATSAPP}") <= 4200_000


@pytest.mark.usefixtures("_full_buckets")
def test_without_valkey_this_process_keeps_to_the_rate_by_itself() -> None:
    with unavailable():
        assert take(20) == Grant(8, 13 * MILLISECOND)
        assert take(20, after=50 * MILLISECOND).granted == 4
        assert sum(at_once(16, lambda: take(1, after=SECOND).granted)) == 8


@pytest.mark.usefixtures("_full_buckets")
def test_without_valkey_and_without_a_rate_everything_goes() -> None:
    with unavailable():
        assert take(10**6, rate=None, burst=0) == Grant(10**6, timedelta())


@pytest.mark.usefixtures("_full_buckets")
def test_without_valkey_this_process_remembers_what_it_was_told() -> None:
    slow_down(retry_after=60)
    with unavailable():
        assert take(9, after=SECOND) == Grant(0, 59 * SECOND)
        slow_down(after=SECOND, retry_after=120)
        assert take(9, after=61 * SECOND) == Grant(0, 60 * SECOND)


@pytest.mark.usefixtures("_full_buckets")
def test_a_silent_valkey_is_waited_for_once() -> None:
    with unresponsive() as valkey_there:
        for _ in range(20):
            take(1)
            slow_down()
        assert valkey_there.asked == 1


@pytest.mark.usefixtures("_full_buckets")
def test_a_take_is_one_question(tmp_path: Path) -> None:
    with of_our_own(tmp_path):
        take(1)
        valkey.client().config_resetstat()
        take(1)
        stats = valkey.client().info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 1
    assert {"cmdstat_hmget", "cmdstat_hset", "cmdstat_pexpire"} <= stats.keys()


START = 1_790_000_000_000

SECOND_MS = 1000

bucket_rates = st.one_of(st.floats(0.01, 10_000), st.integers(1, 10_000).map(float))

pauses_ms = st.integers(0, 100 * SECOND_MS)


def full(rate: float = 80.0, burst: int = 8) -> TokenBucket:
    """Return a bucket that was used for the first time at START."""
    bucket = TokenBucket()
    bucket.take(0, rate=rate, burst=burst, now=START)
    return bucket


def granted(bucket: TokenBucket, after: int = 0, count: int = 1000, rate: float = 80.0) -> int:
    return bucket.take(count, rate=rate, burst=8, now=START + after)[0]


def test_it_begins_full_and_gains_at_its_rate() -> None:
    bucket = full()
    assert [granted(bucket, after) for after in (0, 0, 50, 60, 100, SECOND_MS)] == [
        8,
        0,
        4,
        0,
        4,
        8,
    ]


def test_it_says_when_the_next_one_may_go() -> None:
    bucket = full()
    assert bucket.take(3, rate=80.0, burst=8, now=START) == (3, 0)
    assert bucket.take(6, rate=80.0, burst=8, now=START) == (5, 13)
    assert bucket.take(6, rate=80.0, burst=8, now=START + 12) == (0, 1)
    assert bucket.take(6, rate=80.0, burst=8, now=START + 13) == (1, 12)


def test_a_rate_below_one_a_second_lets_one_go_now_and_then() -> None:
    bucket = TokenBucket()
    taken = [bucket.take(5, rate=0.1, burst=1, now=START + s * SECOND_MS) for s in (0, 5, 10, 11)]
    assert taken == [(1, 10_000), (0, 5_000), (1, 10_000), (0, 9_000)]


def test_without_a_rate_only_a_refusal_holds_anything_up() -> None:
    bucket = TokenBucket()
    assert bucket.take(10**6, rate=None, burst=0, now=START) == (10**6, 0)
    bucket.throttle(pause=5 * SECOND_MS, now=START)
    assert bucket.take(7, rate=None, burst=0, now=START + SECOND_MS) == (0, 4 * SECOND_MS)
    assert bucket.take(7, rate=None, burst=0, now=START + 5 * SECOND_MS) == (7, 0)


def test_after_a_refusal_it_waits_and_begins_empty_at_half_the_rate() -> None:
    bucket = full()
    bucket.throttle(pause=5 * SECOND_MS, now=START)
    assert bucket.take(9, rate=80.0, burst=8, now=START + SECOND_MS) == (0, 4 * SECOND_MS)
    assert bucket.take(9, rate=80.0, burst=8, now=START + 5 * SECOND_MS) == (0, 25)
    assert granted(bucket, 5 * SECOND_MS + 100) == 4


def each_second(bucket: TokenBucket, seconds: Sequence[int]) -> list[int]:
    """Return what is granted in each of these seconds, asking fifty times in each."""
    return [
        sum(granted(bucket, second * SECOND_MS + part * 20) for part in range(50))
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
    bucket.throttle(pause=0, now=START + 15 * SECOND_MS)
    rates = each_second(bucket, range(15, 40))
    assert (rates[5], rates[9], rates[15]) == (24, 24, 32)


def test_refusals_of_what_left_at_the_same_time_count_once() -> None:
    bucket = full()
    for n in range(32):
        bucket.throttle(pause=0, now=START + n * 31)
    assert each_second(bucket, [2, 3])[-1] == 40
    bucket.throttle(pause=20 * SECOND_MS, now=START + 4 * SECOND_MS)
    bucket.throttle(pause=0, now=START + 19 * SECOND_MS)
    assert granted(bucket, 24 * SECOND_MS - 1) == 0
    assert each_second(bucket, [24, 25])[-1] == 20


def test_one_in_a_hundred_is_always_left() -> None:
    bucket = full()
    for n in range(100):
        bucket.throttle(pause=0, now=START + n * SECOND_MS)
    assert bucket.take(1, rate=80.0, burst=8, now=START + 99 * SECOND_MS) == (0, 1250)
    assert 80.0 * MIN_SHARE == 0.8


@pytest.mark.parametrize("ahead", [3, 600, 86_400])
def test_a_clock_that_is_wrong_starves_nobody(ahead: int) -> None:
    bucket = full()
    granted(bucket, ahead * SECOND_MS)
    assert granted(bucket, 0) == 0
    assert granted(bucket, 100) == 8


def test_clocks_that_differ_a_little_grant_nothing_twice() -> None:
    bucket = full()
    granted(bucket, SECOND_MS)
    assert [granted(bucket, after) for after in (0, 500, SECOND_MS, SECOND_MS + 50)] == [0, 0, 0, 4]


takes_ms = st.tuples(st.integers(0, 3000), st.integers(0, 50), st.just(-1))

refusals_ms = st.tuples(st.integers(0, 3000), st.just(0), pauses_ms)


@given(
    rate=bucket_rates,
    burst=st.integers(1, 1000),
    events=st.lists(takes_ms | refusals_ms, max_size=60),
)
def test_a_bucket_has_no_window_with_more_than_its_rate_and_one_burst(
    rate: float, burst: int, events: list[tuple[int, int, int]]
) -> None:
    bucket, now = TokenBucket(), START
    grants: list[tuple[int, int]] = []
    for wait, wanted, pause in events:
        now += wait
        if pause >= 0:
            bucket.throttle(pause=pause, now=now)
        else:
            grants.append((now, bucket.take(wanted, rate=rate, burst=burst, now=now)[0]))
    for first, (begin, _) in enumerate(grants):
        total = 0
        for end, number in grants[first:]:
            total += number
            assert total <= rate * (end - begin) / 1000 + burst + 1e-6


@given(rate=bucket_rates, burst=st.integers(1, 1000), pause=pauses_ms, count=st.integers(1, 50))
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
