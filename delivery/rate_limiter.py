"""Token bucket of each provider account, in Valkey. Without Valkey, each process has its own.

A bucket gains ``rate`` tokens a second and holds at most ``burst``. A provider's rate-limit
response halves the rate, which then recovers step by step. If it is uncertain whether the response
concerns the account, its pause doesn't hold critical messages.
"""

import json
import math
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from notifyproject.platform import valkey
from providers.http import MAX_RETRY_AFTER

log = structlog.get_logger(__name__)
MIN_SHARE = 0.01
"""Lowest throttled rate, as a share of the configured rate."""
MIN_DOUBTED_SHARE = 0.25
"""Lowest throttled rate after responses of uncertain reach."""
RESTORE_INTERVAL, RESTORE_SHARE = timedelta(seconds=10), 0.1
"""A throttled rate recovers by this share of the configured rate in each interval."""
OVERDRAFT_SHARE = 0.5
"""Share of a bucket that critical messages may overdraw, at least one token, so that they need not
wait for a token that a backlog has taken. The next tokens repay it."""
MAX_DEBT = 50
"""Most tokens that one delivery needs together: the devices of a recipient, or the parts of a text.
A bucket with one token grants them, and the next tokens repay the rest. Critical messages don't
wait for that: a login code is never behind a campaign."""
THROTTLE_DEBOUNCE = timedelta(seconds=1)
"""Further rate-limit responses within this time don't halve the rate again."""
MAX_SKEW = timedelta(seconds=2)
"""If a bucket's time is further in the future, a clock was wrong, and the time is ignored."""
MAX_WAIT = timedelta(days=1)
LONGEST_WAIT = timedelta(seconds=2 * MAX_RETRY_AFTER)
"""Stored times beyond this count as absent: no pause is longer, also with a wrong clock."""
IDLE_TTL = timedelta(minutes=10)
"""A bucket is removed this long after it is full and no longer throttled."""
_MILLISECOND = timedelta(milliseconds=1)
_RESTORE_INTERVAL, _THROTTLE_DEBOUNCE, _MAX_SKEW, _MAX_WAIT, _IDLE_TTL = (
    duration // _MILLISECOND
    for duration in (RESTORE_INTERVAL, THROTTLE_DEBOUNCE, MAX_SKEW, MAX_WAIT, IDLE_TTL)
)
_SCRIPTS = Path(__file__).with_name("lua")
_TAKE_SCRIPT = valkey.read_script(_SCRIPTS / "rate_take.lua")
_THROTTLE_SCRIPT = valkey.read_script(_SCRIPTS / "rate_throttle.lua")
_RULES = json.dumps(
    {
        "min_share": MIN_SHARE,
        "min_doubted_share": MIN_DOUBTED_SHARE,
        "restore_interval": _RESTORE_INTERVAL,
        "restore_share": RESTORE_SHARE,
        "overdraft_share": OVERDRAFT_SHARE,
        "max_debt": MAX_DEBT,
        "throttle_debounce": _THROTTLE_DEBOUNCE,
        "max_skew": _MAX_SKEW,
        "max_wait": _MAX_WAIT,
        "longest_wait": LONGEST_WAIT // _MILLISECOND,
        "idle_ttl": _IDLE_TTL,
    }
)


@dataclass(frozen=True, slots=True)
class Grant:
    """Number of messages that may be sent now, and the wait until the next one."""

    granted: int
    wait: timedelta


@dataclass(frozen=True, slots=True)
class RateStatus:
    """Current rate of an account, for the console."""

    share: float
    """Share of the configured rate: 1 if not throttled."""
    blocked_until: datetime | None


def rate_statuses(accounts: Sequence[str], *, now: datetime) -> Mapping[str, RateStatus] | None:
    """Return the current rate of each account, or None if Valkey is unavailable."""
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            for account in accounts:
                pipe.hmget(_key(account), "share", "blocked_until", "doubted_until")
            found = pipe.execute()
    except valkey.Unavailable:
        return None
    return {
        account: _status(share, until, doubted_until, now)
        for account, (share, until, doubted_until) in zip(accounts, found, strict=True)
    }


def _status(
    share: bytes | None, until: bytes | None, doubted_until: bytes | None, now: datetime
) -> RateStatus:
    latest = now + LONGEST_WAIT
    blocked = valkey.stored_instant(until, latest=latest)
    known_share = valkey.stored_number(share, most=1)
    if known_share is None or blocked is None:
        return RateStatus(1.0, None)
    steps = max((now - blocked) // RESTORE_INTERVAL, 0)
    grown = min(known_share + steps * RESTORE_SHARE, 1.0)
    doubted = valkey.stored_instant(doubted_until, latest=latest)
    blocked = max(blocked, doubted or blocked)
    return RateStatus(grown, blocked if blocked > now else None)


class TokenBucket:
    """Token bucket of one process. Times are in milliseconds. The Lua scripts compute the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: float | None = None
        self._debt = 0.0
        self._at = 0
        self._share = 1.0
        self._blocked_until = self._doubted_until = 0
        self._throttled_at: int | None = None

    def take(
        self,
        count: int,
        *,
        rate: float | None,
        burst: int,
        now: int,
        is_critical: bool = False,
        totals: Sequence[int] = (),
    ) -> tuple[int, int]:
        """Take up to ``count`` tokens. Return how many, and the wait for the next in ms."""
        with self._lock:
            until = max(self._blocked_until, 0 if is_critical else self._doubted_until)
            if now < until:
                return 0, until - now
            if rate is None:
                return count, 0
            tokens = self._refill(rate=rate, burst=burst, now=now)
            overdraft = is_critical * max(self._capacity(burst, now) * OVERDRAFT_SHARE, 1)
            granted = min(count, max(math.floor(tokens + overdraft), 0))
            whole = granted
            if totals and 0 < granted < count:
                whole = min(totals[bisect_left(totals, granted)], granted + MAX_DEBT)
            if is_critical:
                self._tokens = tokens - whole
            else:
                self._tokens = tokens - granted
                self._debt += whole - granted
            left = self._tokens + overdraft - (0 if is_critical else self._debt)
            if left >= 1:
                return whole, 0
            wait = (1 - left) * 1000 / (rate * self._share_at(now))
            return whole, math.ceil(min(wait, _MAX_WAIT))

    def throttle(self, *, pause: int, now: int, is_doubted: bool = False) -> None:
        """Block for ``pause``, and halve the rate unless it was halved within the last second."""
        with self._lock:
            last = self._throttled_at
            if last is None or now >= max(self._blocked_until, last + _THROTTLE_DEBOUNCE):
                share = self._share_at(now)
                least = min(share, MIN_DOUBTED_SHARE) if is_doubted else MIN_SHARE
                self._share = max(share / 2, least)
                self._throttled_at = now
                if is_doubted:
                    self._blocked_until = max(self._blocked_until, now)
            if is_doubted:
                self._doubted_until = max(self._doubted_until, now + pause)
                return
            self._blocked_until = max(self._blocked_until, now + pause)
            # What critical messages have overdrawn is still to be repaid.
            self._tokens, self._at = min(self._tokens or 0.0, 0.0), self._blocked_until

    def _refill(self, *, rate: float, burst: int, now: int) -> float:
        at = now if self._tokens is None or self._at - now > _MAX_SKEW else self._at
        capacity = self._capacity(burst, now)
        gained = max(now - at, 0) / 1000 * rate * self._share_at(at)
        self._at = max(now, at)
        tokens = (capacity if self._tokens is None else self._tokens) + gained
        paid = min(self._debt, max(tokens, 0.0))
        self._debt -= paid
        return min(tokens - paid, capacity)

    def _capacity(self, burst: int, now: int) -> float:
        return max(burst * self._share_at(now), 1.0)

    def _share_at(self, instant: int) -> float:
        steps = max((instant - self._blocked_until) // _RESTORE_INTERVAL, 0)
        return min(self._share + steps * RESTORE_SHARE, 1.0)


class RateLimiter:
    """The rates of provider accounts, as one process applies them; safe for many threads."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}
        """For times without Valkey."""

    def take(
        self,
        account: str,
        count: int,
        *,
        rate: float | None,
        burst: int,
        now: datetime,
        is_critical: bool = False,
        totals: Sequence[int] = (),
    ) -> Grant:
        """Take up to ``count`` tokens; ``is_critical``: even if that overdraws the bucket.

        ``totals``: if messages need several, how many the first one needs, the first two, and so
        on, up to ``count``. The last that gets any gets all, at most MAX_DEBT more than there are.
        A ``rate`` of None sets no limit except after a throttle.
        """
        at, count = valkey.to_milliseconds(now), max(count, 0)
        limit = "" if rate is None else rate
        args: list[str | int | float] = [at, _RULES, count, limit, burst, int(is_critical)]
        args.append(",".join(map(str, totals)))
        try:
            granted, wait = valkey.run(_TAKE_SCRIPT, keys=[_key(account)], args=args)
        except valkey.Unavailable:
            bucket = self._bucket(account)
            granted, wait = bucket.take(
                count, rate=rate, burst=burst, now=at, is_critical=is_critical, totals=totals
            )
        return Grant(granted, wait * _MILLISECOND)

    def throttle(
        self,
        account: str,
        *,
        retry_after: float | None,
        now: datetime,
        is_doubted: bool = False,
    ) -> None:
        """Halve an account's rate, and block it for ``retry_after`` seconds, at most a day.

        ``is_doubted``: its responses had an uncertain reach, so that critical messages aren't
        blocked.
        """
        at = valkey.to_milliseconds(now)
        pause = math.ceil(1000 * min(max(0.0, retry_after or 0.0), MAX_RETRY_AFTER))
        self._bucket(account).throttle(pause=pause, now=at, is_doubted=is_doubted)
        args: list[str | int | float] = [at, _RULES, pause, int(is_doubted)]
        try:
            share = valkey.run(_THROTTLE_SCRIPT, keys=[_key(account)], args=args)
        except valkey.Unavailable:
            return
        if share >= 0:
            log.warning("rate_throttled", account=account, share=share / 1000, pause_ms=pause)

    def _bucket(self, account: str) -> TokenBucket:
        return self._buckets.setdefault(account, TokenBucket())


def _key(account: str) -> str:
    return f"rate:{account}"
