"""Request rate limits, counted in Valkey for all web processes. Without Valkey, none applies."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address
from pathlib import Path

from notifyproject.platform import valkey

WINDOW = timedelta(minutes=1)
UNKNOWN_ADDRESS = "unknown"
_SCRIPT = (Path(__file__).parent / "lua" / "rate_limit.lua").read_text()
_WINDOW = WINDOW // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Identifies what a rate limit counts: the requests of one caller to one endpoint."""

    scope: str
    """The kind of caller: client, inbox, or address."""
    identifier: str
    endpoint: str

    @property
    def key(self) -> str:
        """Return the Valkey key."""
        return f"rate_limit:{self.scope}:{self.identifier}:{self.endpoint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitStatus:
    """The result of a rate limit check."""

    is_allowed: bool
    limit: int
    remaining: int
    reset: int
    """Seconds until the window ends, at least 1."""


def consume(counter: Counter, *, limit: int) -> RateLimitStatus | None:
    """Count a request if it is allowed. None without a limit (0) or without Valkey."""
    return _run_script([(counter, limit, 1)])[0]


def peek(counter: Counter, *, limit: int) -> RateLimitStatus | None:
    """Return the status without counting a request. None as :func:`consume`."""
    return _run_script([(counter, limit, 0)])[0]


def peek_and_consume(
    peeked: Counter, counter: Counter, *, peeked_limit: int, limit: int
) -> tuple[RateLimitStatus | None, RateLimitStatus | None]:
    """Do both, in one round trip. A request that ``peeked`` refuses isn't counted."""
    first, second = _run_script([(peeked, peeked_limit, 0), (counter, limit, 1)])
    return first, second


def client_ip(meta: Mapping[str, str], *, proxies: int) -> str:
    """Return the client's IPv4 address or IPv6 /64, given ``proxies`` trusted proxies.

    Each proxy appends its caller to X-Forwarded-For. Earlier entries aren't trusted.
    """
    forwarded = meta.get("HTTP_X_FORWARDED_FOR", "")
    chain = [*(forwarded.split(",") if forwarded else ()), meta.get("REMOTE_ADDR", "")]
    return _network(chain[max(len(chain) - 1 - proxies, 0)].strip())


def _run_script(wanted: Sequence[tuple[Counter, int, int]]) -> list[RateLimitStatus | None]:
    """Return the status of each counter with its limit and the cost of the request."""
    limited = [one for one in wanted if one[1]]
    if not limited:
        return [None] * len(wanted)
    try:
        found = valkey.run(
            _SCRIPT,
            keys=[counter.key for counter, _, _ in limited],
            args=[_WINDOW, *(number for _, limit, cost in limited for number in (limit, cost))],
        )
    except valkey.Unavailable:
        return [None] * len(wanted)
    answers = iter(found)
    return [_status(next(answers), limit) if limit else None for _, limit, _ in wanted]


def _status(answer: Sequence[int], limit: int) -> RateLimitStatus:
    allowed, remaining, ends_in = answer
    return RateLimitStatus(
        is_allowed=bool(allowed),
        limit=limit,
        remaining=remaining,
        reset=max(math.ceil(ends_in / 1000), 1),
    )


@lru_cache(maxsize=1_024)
def _network(text: str) -> str:
    """Return an IPv4 address as is, and an IPv6 address as its /64, which one subscriber owns."""
    try:
        address = ip_address(text)
    except ValueError:
        return UNKNOWN_ADDRESS
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), 64), strict=False).network_address)
