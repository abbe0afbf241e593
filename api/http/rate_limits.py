"""Rate limits of clients, inboxes, and IP addresses, and the ``RateLimit-*`` headers.

Requests are counted in Valkey for all web processes. Without Valkey, no limit applies.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from access.clients.inbox_tokens import InboxUser
from access.clients.registry import Client
from devices.browser_tokens import BrowserToken
from notifyproject.platform import valkey
from notifyproject.platform.client_ip import client_ip

from .problems import RATE_LIMITED

log = structlog.get_logger(__name__)
WINDOW = timedelta(minutes=1)
_SCRIPT = valkey.read_script(Path(__file__).parent / "lua" / "rate_limit.lua")
_WINDOW = WINDOW // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Identifies what a rate limit counts: the requests of one caller to one endpoint."""

    scope: str
    """The kind of caller: client, inbox, browser, or address."""
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


class CallerThrottle(BaseThrottle):
    """Limits a client's or an inbox's reads and writes of each endpoint.

    The same round trip finds out whether the address is blocked.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        """Count a request and return whether it's within the limit, which the headers show.

        Raises ApiError 429 for a blocked address.
        """
        status = view.rate_status
        if status is None:
            counter, limit = find_counter(request)
            status = view.failures.raise_if_blocked_or_consume(counter, limit=limit)
            view.rate_status = status
        self._status: RateLimitStatus | None = status
        if status is None:
            return True
        view.headers.update(limit_headers(status))
        return bool(status.is_allowed)

    def wait(self) -> float | None:
        """Return the seconds to wait before the next request."""
        return self._status.reset if self._status else None


@dataclass(slots=True)
class AuthenticationFailures:
    """Counts an IP address's requests without a valid credential, in web and stream processes."""

    counter: Counter
    is_checked: bool = False
    """Whether it was found out if the address is blocked."""

    @classmethod
    def of(cls, meta: Mapping[str, str]) -> "AuthenticationFailures":
        """Return the counter of the address that sent a request. ``meta`` is as in WSGI."""
        address = client_ip(meta, proxies=settings.TRUSTED_PROXIES)
        return cls(Counter(scope="address", identifier=address, endpoint="authentication"))

    def raise_if_blocked(self) -> None:
        """Raise ApiError 429 for an address over its limit."""
        self._check(peek(self.counter, limit=settings.RATE_LIMIT_FAILED))

    def raise_if_blocked_or_consume(
        self, counter: Counter, *, limit: int
    ) -> RateLimitStatus | None:
        """Raise ApiError 429 for an address over its limit, else count a request by ``counter``.

        Takes one round trip.
        """
        failed, found = peek_and_consume(
            self.counter, counter, peeked_limit=settings.RATE_LIMIT_FAILED, limit=limit
        )
        self._check(failed)
        return found

    def _check(self, rate_status: RateLimitStatus | None) -> None:
        self.is_checked = True
        if rate_status is None or rate_status.is_allowed:
            return
        log.warning("ip_rejected", reset_seconds=rate_status.reset)
        detail = "Too many failed authentications from this IP address."
        headers = limit_headers(rate_status)
        raise RATE_LIMITED.error(detail, headers=headers, retry_after=rate_status.reset)

    def count(self) -> None:
        """Count a failure."""
        consume(self.counter, limit=settings.RATE_LIMIT_FAILED)


def limit_headers(rate_status: RateLimitStatus) -> dict[str, str]:
    """Return the ``RateLimit-*`` headers."""
    return {
        "RateLimit-Limit": str(rate_status.limit),
        "RateLimit-Remaining": str(rate_status.remaining),
        "RateLimit-Reset": str(rate_status.reset),
    }


def find_counter(request: Request) -> tuple[Counter, int]:
    """Return the counter and the limit of an authenticated request."""
    match = request.resolver_match
    is_read = request.method in SAFE_METHODS
    user: Client | InboxUser | BrowserToken = request.user
    endpoint = f"{match.url_name}.{'read' if is_read else 'write'}"
    if isinstance(user, Client):
        counter = Counter(scope="client", identifier=str(user.id), endpoint=endpoint)
        return counter, settings.RATE_LIMIT_READ if is_read else settings.RATE_LIMIT_WRITE
    if isinstance(user, BrowserToken):
        counter = Counter(scope="browser", identifier=user.device_id, endpoint=endpoint)
        return counter, settings.RATE_LIMIT_INBOX
    # A digest, so that Valkey's keys hold no user ID.
    digest = hashlib.sha256(f"{user.client_id}|{user.user_id}".encode()).hexdigest()[:32]
    counter = Counter(scope="inbox", identifier=digest, endpoint=endpoint)
    return counter, settings.RATE_LIMIT_INBOX


def _run_script(wanted: Sequence[tuple[Counter, int, int]]) -> list[RateLimitStatus | None]:
    """Return the status of each counter with its limit and the cost of the request."""
    limited = [counted for counted in wanted if counted[1]]
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
