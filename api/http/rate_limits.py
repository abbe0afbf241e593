"""Rate limits of clients, inboxes, and IP addresses, and the ``RateLimit-*`` headers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from rest_framework.throttling import BaseThrottle

from access.clients import rate_limits
from access.clients.inbox_tokens import InboxUser
from access.clients.rate_limits import Counter, RateLimitStatus
from access.clients.registry import Client

from .problems import RATE_LIMITED

log = structlog.get_logger(__name__)
API_PREFIX = "/api/v1/"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class ClientThrottle(BaseThrottle):
    """Limits a client's or an inbox's reads and writes of each endpoint."""

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count a request and return whether it's within the limit."""
        counter_and_limit = find_counter(request)
        if counter_and_limit is None:
            return True
        counter, limit = counter_and_limit
        # A request that starts again counts once.
        self.rate_status = request._request.rate_status or rate_limits.consume(counter, limit=limit)
        request._request.rate_status = self.rate_status
        return self.rate_status is None or self.rate_status.is_allowed

    def wait(self) -> float | None:
        """Return the seconds to wait before the next request."""
        return self.rate_status.reset if self.rate_status else None


@dataclass(frozen=True, slots=True)
class AuthenticationFailures:
    """Counts an IP address's requests without a valid credential, in web and stream processes."""

    counter: Counter

    @classmethod
    def of(cls, meta: Mapping[str, str]) -> "AuthenticationFailures":
        """Return the counter of the address that sent a request. ``meta`` is as in WSGI."""
        address = rate_limits.client_ip(meta, proxies=settings.TRUSTED_PROXIES)
        return cls(Counter(scope="address", identifier=address, endpoint="authentication"))

    def raise_if_blocked(self) -> None:
        """Raise ApiError 429 for an address over its limit."""
        self.check(rate_limits.peek(self.counter, limit=settings.RATE_LIMIT_FAILED))

    def raise_if_blocked_or_consume(
        self, counter: Counter, *, limit: int
    ) -> RateLimitStatus | None:
        """Raise ApiError 429 for an address over its limit, else count a request by ``counter``.

        Takes one round trip.
        """
        failed, found = rate_limits.peek_and_consume(
            self.counter, counter, peeked_limit=settings.RATE_LIMIT_FAILED, limit=limit
        )
        self.check(failed)
        return found

    @staticmethod
    def check(rate_status: RateLimitStatus | None) -> None:
        """Raise ApiError 429 if the status of an address doesn't allow a request."""
        if rate_status is None or rate_status.is_allowed:
            return
        log.warning("ip_rejected", reset_seconds=rate_status.reset)
        detail = "Too many failed authentications from this IP address."
        headers = limit_headers(rate_status)
        raise RATE_LIMITED.error(detail, headers=headers, retry_after=rate_status.reset)

    def count(self) -> None:
        """Count a failure."""
        rate_limits.consume(self.counter, limit=settings.RATE_LIMIT_FAILED)


def limit_headers(rate_status: RateLimitStatus) -> dict[str, str]:
    """Return the ``RateLimit-*`` headers."""
    return {
        "RateLimit-Limit": str(rate_status.limit),
        "RateLimit-Remaining": str(rate_status.remaining),
        "RateLimit-Reset": str(rate_status.reset),
    }


def find_counter(request: Any) -> tuple[Counter, int] | None:
    """Return the counter and the limit of a request; None if it isn't limited."""
    name = request.resolver_match.url_name
    is_read = request.method in SAFE_METHODS
    user, endpoint = request.user, f"{name}.{'read' if is_read else 'write'}"
    if isinstance(user, Client):
        counter = Counter(scope="client", identifier=str(user.id), endpoint=endpoint)
        return counter, settings.RATE_LIMIT_READ if is_read else settings.RATE_LIMIT_WRITE
    if isinstance(user, InboxUser):
        # A digest, so that Valkey's keys hold no user id.
        digest = hashlib.sha256(f"{user.client_id}|{user.user_id}".encode()).hexdigest()[:32]
        counter = Counter(scope="inbox", identifier=digest, endpoint=endpoint)
        return counter, settings.RATE_LIMIT_INBOX
    return None
