"""How often somebody may ask: counters in Valkey that all web processes share.

A window begins with the first request and lasts a minute. Key and type are
``rate_limit:{scope}:{identifier}:{endpoint}``, a counter with a lifetime. Without Valkey nobody is
held up: a limit protects the service, and an outage of a cache must not become one of the API.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Network, ip_address
from pathlib import Path

from notifyproject.platform import valkey

WINDOW = timedelta(minutes=1)
UNKNOWN_ADDRESS = "unknown"
_SCRIPT = (Path(__file__).parent / "lua" / "rate_limit.lua").read_text()
_WINDOW = WINDOW // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Whose requests are counted, and for what."""

    scope: str
    """What kind of caller: client, inbox, address."""
    identifier: str
    endpoint: str

    @property
    def key(self) -> str:
        """Return its key in Valkey."""
        return f"rate_limit:{self.scope}:{self.identifier}:{self.endpoint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitStatus:
    """Whether a request may go on, and what the caller has left."""

    is_allowed: bool
    limit: int
    remaining: int
    reset: int
    """Seconds until all of it is there again: at least one."""


def consume(counter: Counter, *, limit: int) -> RateLimitStatus | None:
    """Count a request if it may go on; None without a limit (0), or while Valkey is away."""
    return _run_script(counter, limit, cost=1)


def peek(counter: Counter, *, limit: int) -> RateLimitStatus | None:
    """Return the same without counting anything."""
    return _run_script(counter, limit, cost=0)


def client_ip(meta: Mapping[str, str], *, proxies: int) -> str:
    """Return where a request comes from, past so many proxies of ours; of IPv6 the /64.

    Each proxy appends who called it to X-Forwarded-For. What stands before that came with the
    request and is not believed.
    """
    forwarded = meta.get("HTTP_X_FORWARDED_FOR", "")
    chain = [*(forwarded.split(",") if forwarded else ()), meta.get("REMOTE_ADDR", "")]
    return _network(chain[max(len(chain) - 1 - proxies, 0)].strip())


def _run_script(counter: Counter, limit: int, *, cost: int) -> RateLimitStatus | None:
    if not limit:
        return None
    try:
        allowed, remaining, ends_in = valkey.run(
            _SCRIPT, keys=[counter.key], args=[limit, _WINDOW, cost]
        )
    except valkey.Unavailable:
        return None
    return RateLimitStatus(
        is_allowed=bool(allowed),
        limit=limit,
        remaining=remaining,
        reset=max(math.ceil(ends_in / 1000), 1),
    )


def _network(text: str) -> str:
    """Return an IPv4 address as it is, and the /64 of an IPv6 one: a home has all of that."""
    try:
        address = ip_address(text)
    except ValueError:
        return UNKNOWN_ADDRESS
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), 64), strict=False).network_address)
