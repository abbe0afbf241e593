"""Rate limits to providers: shared in Valkey, and token buckets in one process."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from delivery import rate_limiter
from delivery.rate_limiter import MIN_DOUBTED_SHARE, MIN_SHARE, Grant, RateLimiter, TokenBucket
from notifyproject.platform import valkey
from tests.support.factories.notifications import NOON
from tests.support.fakes.valkey_faults import at_once, own_valkey, unavailable, unresponsive
from tests.support.tables import each_case

WHATSAPP = "whatsapp:1a2b3c4d"
SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)
_numbers = count()

limiter = RateLimiter()
pytestmark = pytest.mark.usefixtures("full_buckets")
with_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
with_valkey = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def full_buckets(broker: redis.Redis, valkey_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "limiter", RateLimiter())


def take(number: int = 1000, after: timedelta = timedelta(), **options: Any) -> Grant:
    options = {"account": WHATSAPP, "rate": 80.0, "burst": 8, "now": NOON + after, **options}
    return limiter.take(count=number, **options)


def throttle(after: timedelta = timedelta(), retry_after: float | None = None) -> None:
    limiter.throttle(WHATSAPP, retry_after=retry_after, now=NOON + after)


def test_take_grants_what_is_available_and_returns_the_wait() -> None:
    assert take(3) == Grant(3, timedelta())
    assert take(6) == Grant(5, 13 * MILLISECOND)
    assert take(6, after=13 * MILLISECOND) == Grant(1, 12 * MILLISECOND)
    assert take(0, after=SECOND) == Grant(0, timedelta())
    assert take(-5, after=SECOND) == Grant(0, timedelta())
    assert take(9, after=SECOND).granted == 8


def test_accounts_have_separate_buckets() -> None:
    assert take(8).granted == 8
    assert take(8, account="whatsapp:other").granted == 8


def test_account_without_a_rate_is_limited_by_throttling_only() -> None:
    assert take(10**6, rate=None, burst=0) == Grant(10**6, timedelta())
    throttle(retry_after=30)
    assert take(7, rate=None, burst=0, after=SECOND) == Grant(0, 29 * SECOND)
    assert take(7, rate=None, burst=0, after=30 * SECOND) == Grant(7, timedelta())


def test_throttling_pauses_and_halves_the_rate() -> None:
    take(8)
    throttle(retry_after=5)
    assert take(9, after=SECOND) == Grant(0, 4 * SECOND)
    assert take(9, after=5 * SECOND) == Grant(0, 25 * MILLISECOND)
    assert take(9, after=5.1 * SECOND).granted == 4


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [(None, 0), (-1.0, 0), (float("nan"), 0), (0.5, 0.5), (1e12, 86_400), (float("inf"), 86_400)],
)
def test_throttling_honours_retry_after_up_to_1_day(
    retry_after: float | None, seconds: float
) -> None:
    throttle(retry_after=retry_after)
    assert take(rate=None, burst=0).wait == timedelta(seconds=seconds)


def test_throttling_by_one_batch_counts_once() -> None:
    with capture_logs() as logs:
        at_once(32, throttle)
    assert [(entry["event"], entry["share"]) for entry in logs] == [("rate_throttled", 0.5)]


def test_concurrent_callers_share_one_bucket() -> None:
    assert sum(at_once(32, lambda: take(7, burst=100).granted)) == 100


def test_callers_with_clock_skew_keep_to_the_rate_together() -> None:
    """Each caller has its own clock skew and asks as often as it can."""

    def work(caller: int) -> int:
        skew = (caller - 8) * 50 * MILLISECOND
        return sum(take(5, after=n * 10 * MILLISECOND + skew).granted for n in range(100))

    with ThreadPoolExecutor(16) as pool:
        total = sum(pool.map(work, range(16)))
    assert 80 <= total <= 80 * (0.99 + 0.75) + 8


def test_what_needs_several_tokens_is_granted_whole_and_repaid() -> None:
    """A text of three parts takes three seconds of a rate of one part a second."""
    slow = partial(take, account="twilio:1", rate=1.0, burst=1)
    assert slow(3, totals=[3]) == Grant(3, 3 * SECOND)
    assert slow(3, totals=[3], after=2 * SECOND) == Grant(0, SECOND)
    assert slow(4, totals=[3, 4], after=3 * SECOND) == Grant(3, 3 * SECOND)
    assert slow(1, after=6 * SECOND) == Grant(1, SECOND)


def test_no_token_is_lost_that_covers_no_whole_message() -> None:
    """Five tokens each, of seven that come between two calls."""
    every = partial(take, 20, rate=100.0, burst=10, totals=[5, 10, 15, 20])
    taken = sum(every(after=n * 70 * MILLISECOND).granted for n in range(100))
    assert 10 + 99 * 7 - 1 <= taken <= 10 + 99 * 7 + 4


def test_login_code_waits_for_no_debt_of_a_campaign() -> None:
    slow = partial(take, account="twilio:1", rate=1.0, burst=1)
    assert slow(10, totals=[10]) == Grant(10, 10 * SECOND)
    code = partial(slow, 1, is_critical=True)
    assert code(after=MILLISECOND) == Grant(1, SECOND)
    # Codes together keep to the rate, and the campaign makes up for them.
    assert code(after=2 * MILLISECOND).granted == 0
    assert slow(1, after=10.9 * SECOND).granted == 0
    assert slow(1, after=11.1 * SECOND).granted == 1


def test_rate_limit_response_forgives_no_debt() -> None:
    slow = partial(take, account="twilio:1", rate=1.0, burst=1)
    slow(10, totals=[10])
    slow(3, totals=[3], is_critical=True)
    limiter.throttle("twilio:1", retry_after=1, now=NOON)
    assert slow(1, is_critical=True, after=SECOND) == Grant(0, 6 * SECOND)
    assert slow(1, after=SECOND) == Grant(0, 26 * SECOND)


def test_older_version_takes_no_debt_for_an_unreadable_bucket(broker: redis.Redis) -> None:
    """It reads fewer tokens than it can overdraw as a full bucket."""
    take(50, account="twilio:1", rate=1.0, burst=1, totals=[50])
    stored = broker.hget("rate:twilio:1", "tokens")
    assert stored is not None
    assert float(stored) == 0


def test_debt_is_not_forgotten_while_the_bucket_is_idle(broker: redis.Redis) -> None:
    take(50, account="twilio:1", rate=1 / 3600, burst=1, totals=[50])
    assert broker.pttl("rate:twilio:1") > 49 * 3600 * 1000


def test_critical_messages_need_no_token_that_a_backlog_has_taken() -> None:
    assert take(100).granted == 8
    assert take(1, is_critical=True) == Grant(1, timedelta())
    assert take(9, is_critical=True) == Grant(3, 13 * MILLISECOND)
    # The backlog waits until the tokens are repaid.
    assert take(100) == Grant(0, 63 * MILLISECOND)
    assert take(100, after=63 * MILLISECOND).granted == 1


def test_critical_messages_wait_for_a_provider_that_asks_for_a_pause() -> None:
    throttle(retry_after=5)
    assert take(1, after=SECOND, is_critical=True) == Grant(0, 4 * SECOND)
    assert take(9, after=5 * SECOND, is_critical=True).granted == 2


def test_doubted_pause_holds_only_other_messages() -> None:
    for _ in range(10):
        limiter.throttle(WHATSAPP, retry_after=60, now=NOON, is_doubted=True)
    assert take(9, after=SECOND) == Grant(0, 59 * SECOND)
    assert take(1, after=SECOND, is_critical=True).granted == 1
    assert take(8, rate=None, burst=0, after=SECOND, is_critical=True).granted == 8
    assert take(9, after=60 * SECOND).granted == 8


def test_doubted_pauses_leave_a_quarter_of_the_rate() -> None:
    for n in range(10):
        limiter.throttle(WHATSAPP, retry_after=0, now=NOON + n * SECOND, is_doubted=True)
    status = rate_limiter.rate_statuses([WHATSAPP], now=NOON + 9 * SECOND)
    assert status is not None
    assert status[WHATSAPP].share == MIN_DOUBTED_SHARE


takes = st.tuples(st.integers(0, 3000), st.integers(0, 50), st.none())
pauses = st.integers(0, 100).map(float)
refusals = st.tuples(st.integers(0, 3000), st.just(0), pauses)
histories = st.lists(takes | refusals, max_size=40)
rates = st.floats(0.01, 10_000)


@with_valkey
@given(rate=st.none() | rates, burst=st.integers(1, 1000), events=histories, has_skew=st.booleans())
def test_shared_and_local_buckets_agree(
    rate: float | None, burst: int, events: list[tuple[int, int, float | None]], has_skew: bool
) -> None:
    options: dict[str, Any]
    account, now, local = f"history:{next(_numbers)}", NOON, TokenBucket()
    for turn, (wait, number, pause) in enumerate(events):
        now += wait * MILLISECOND * (-1 if has_skew and turn % 3 == 0 else 1)
        at = valkey.to_milliseconds(now)
        if pause is None:
            options = {"rate": rate, "burst": burst, "is_critical": turn % 4 == 1}
            options["totals"] = [*range(1 + turn % 7, number, 1 + turn % 7), number]
            shared = limiter.take(account, number, now=now, **options)
            granted, left = local.take(number, now=at, **options)
            assert shared == Grant(granted, left * MILLISECOND)
        else:
            doubt = {"is_doubted": turn % 3 == 1}
            limiter.throttle(account, retry_after=pause, now=now, **doubt)
            local.throttle(pause=int(pause * 1000), now=at, **doubt)


@each_case("odd", [b"nan", b"-nan", b"inf", b"-50", b"1e300", b"9" * 40, b"", b"soon", b"\xff"])
@each_case(
    "field", ["tokens", "debt", "at", "share", "blocked_until", "doubted_until", "slowed_at"]
)
def test_odd_stored_value_counts_as_absent(field: str, odd: bytes, broker: redis.Redis) -> None:
    broker.flushdb()
    with capture_logs() as logs:
        throttle(retry_after=1)
        broker.hset(f"rate:{WHATSAPP}", field, odd)
        assert rate_limiter.rate_statuses([WHATSAPP], now=NOON) is not None
        grant = take(9, after=2 * SECOND)
        assert grant.granted <= 8
        assert grant.granted or grant.wait < SECOND
        broker.hset(f"rate:{WHATSAPP}", field, odd)
        throttle(after=3 * SECOND, retry_after=1)
        assert take(9, after=3 * SECOND).granted == 0
        assert take(9, after=100 * SECOND).granted == 8
    assert "valkey_unavailable" not in {entry["event"] for entry in logs}


def test_bucket_expires_when_it_would_be_full(broker: redis.Redis) -> None:
    take(8)
    assert 590_000 < broker.pttl(f"rate:{WHATSAPP}") <= 600_100
    take(1, account="smtp:1", rate=1 / 3600, burst=2)
    assert broker.pttl("rate:smtp:1") > 2 * 3600 * 1000
    limiter.throttle("smtp:1", retry_after=None, now=NOON)
    assert broker.pttl("rate:smtp:1") > 2 * 3600 * 1000
    throttle(retry_after=3600)
    assert 3600_000 < broker.pttl(f"rate:{WHATSAPP}") <= 4200_000


def test_process_keeps_the_rate_without_valkey() -> None:
    with unavailable():
        assert take(20) == Grant(8, 13 * MILLISECOND)
        assert take(20, after=50 * MILLISECOND).granted == 4
        assert sum(at_once(16, lambda: take(1, after=SECOND).granted)) == 8
        assert take(10**6, rate=None, burst=0) == Grant(10**6, timedelta())


def test_throttling_is_remembered_without_valkey() -> None:
    throttle(retry_after=60)
    with unavailable():
        assert take(9, after=SECOND) == Grant(0, 59 * SECOND)
        throttle(after=SECOND, retry_after=120)
        assert take(9, after=61 * SECOND) == Grant(0, 60 * SECOND)


def test_unresponsive_valkey_is_asked_once() -> None:
    with unresponsive() as valkey_there:
        for _ in range(20):
            take(1)
            throttle()
        assert valkey_there.connections == 1


def test_take_is_one_round_trip(tmp_path: Path) -> None:
    with own_valkey(tmp_path):
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


def test_bucket_starts_full_and_refills_at_its_rate() -> None:
    bucket = full()
    afters = (0, 0, 50, 60, 100, SECOND_MS)
    assert [granted(bucket, after) for after in afters] == [8, 0, 4, 0, 4, 8]


def test_rate_below_one_per_second_grants_now_and_then() -> None:
    bucket = TokenBucket()
    taken = [bucket.take(5, rate=0.1, burst=1, now=START + s * SECOND_MS) for s in (0, 5, 10, 11)]
    assert taken == [(1, 10_000), (0, 5_000), (1, 10_000), (0, 9_000)]


def each_second(bucket: TokenBucket, seconds: Sequence[int]) -> list[int]:
    """Return the tokens granted in each second, in which fifty are requested."""
    return [
        sum(granted(bucket, second * SECOND_MS + part * 20) for part in range(50))
        for second in seconds
    ]


def test_rate_recovers_by_a_tenth_every_ten_seconds() -> None:
    bucket = full()
    bucket.throttle(pause=0, now=START)
    rates = each_second(bucket, range(60))
    assert [rates[5 + 10 * step] for step in range(6)] == [40, 48, 56, 64, 72, 80]


def test_second_throttling_halves_again_and_restarts_the_recovery() -> None:
    bucket = full()
    bucket.throttle(pause=0, now=START)
    bucket.throttle(pause=0, now=START + 15 * SECOND_MS)
    rates = each_second(bucket, range(15, 40))
    assert (rates[5], rates[9], rates[15]) == (24, 24, 32)


def test_concurrent_throttling_counts_once() -> None:
    bucket = full()
    for n in range(32):
        bucket.throttle(pause=0, now=START + n * 31)
    assert each_second(bucket, [2, 3])[-1] == 40
    bucket.throttle(pause=20 * SECOND_MS, now=START + 4 * SECOND_MS)
    bucket.throttle(pause=0, now=START + 19 * SECOND_MS)
    assert granted(bucket, 24 * SECOND_MS - 1) == 0
    assert each_second(bucket, [24, 25])[-1] == 20


def test_rate_never_falls_below_one_percent() -> None:
    bucket = full()
    for n in range(100):
        bucket.throttle(pause=0, now=START + n * SECOND_MS)
    assert bucket.take(1, rate=80.0, burst=8, now=START + 99 * SECOND_MS) == (0, 1250)
    assert 80.0 * MIN_SHARE == 0.8


@pytest.mark.parametrize("ahead", [3, 600, 86_400])
def test_wrong_clock_starves_no_caller(ahead: int) -> None:
    bucket = full()
    granted(bucket, ahead * SECOND_MS)
    assert granted(bucket, 0) == 0
    assert granted(bucket, 100) == 8


def test_small_clock_skew_grants_nothing_twice() -> None:
    bucket = full()
    granted(bucket, SECOND_MS)
    assert [granted(bucket, after) for after in (0, 500, SECOND_MS, SECOND_MS + 50)] == [0, 0, 0, 4]


takes_ms = st.tuples(st.integers(0, 3000), st.integers(0, 50), st.just(-1))
refusals_ms = st.tuples(st.integers(0, 3000), st.just(0), pauses_ms)


@with_fixtures
@given(
    rate=bucket_rates,
    burst=st.integers(1, 1000),
    events=st.lists(takes_ms | refusals_ms, max_size=60),
)
def test_local_bucket_grants_at_most_rate_and_one_burst_in_any_window(
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


@with_fixtures
@given(rate=bucket_rates, burst=st.integers(1, 1000), pause=pauses_ms, count=st.integers(1, 50))
def test_caller_that_waits_is_granted_one(rate: float, burst: int, pause: int, count: int) -> None:
    bucket = full(rate, burst)
    bucket.take(burst, rate=rate, burst=burst, now=START)
    bucket.throttle(pause=pause, now=START)
    now = START + bucket.take(count, rate=rate, burst=burst, now=START)[1]
    for _ in range(3):
        number, wait = bucket.take(count, rate=rate, burst=burst, now=now)
        if number:
            break
        # The pause comes first, and rounding can leave slightly less than one token.
        now += wait
    assert number >= 1


def test_threads_share_a_bucket() -> None:
    bucket = full(burst=500)
    with ThreadPoolExecutor(16) as pool:
        numbers = pool.map(
            lambda _: bucket.take(7, rate=80.0, burst=500, now=START)[0], range(1000)
        )
        assert sum(numbers) == 500
