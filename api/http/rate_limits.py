"""How often apps and people may call the API, and how often an address may fail to say who it is.

A limit is for one caller and one endpoint, reading and writing apart. Every answer that was counted
says what is left of it: ``RateLimit-Limit``, ``RateLimit-Remaining``, ``RateLimit-Reset``.
"""

import hashlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.throttling import BaseThrottle

from access.clients import rate_limits
from access.clients.inbox_tokens import InboxUser
from access.clients.rate_limits import Counter, RateLimitStatus
from access.clients.registry import Client

from .problems import MEDIA_TYPE, ApiError

log = structlog.get_logger(__name__)
API = "/api/v1/"
READING = frozenset({"GET", "HEAD", "OPTIONS"})


class ClientThrottle(BaseThrottle):
    """An app's, or a person's with an inbox token; for ``DEFAULT_THROTTLE_CLASSES``."""

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count a request, and return whether it may go on."""
        counted = _counted(request)
        if counted is None:
            return True
        counter, limit = counted
        self.standing = request._request.standing = rate_limits.consume(counter, limit=limit)
        return self.standing is None or self.standing.is_allowed

    def wait(self) -> float | None:
        """Return in how many seconds to come again."""
        return self.standing.reset if self.standing else None


class RateLimitMiddleware:
    """Turn away addresses that keep failing, before a key is looked up; say what is left."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        if not request.path.startswith(API):
            return self.get_response(request)
        request.standing = None
        failures = Counter(
            scope="address",
            identifier=rate_limits.client_ip(request.META, proxies=settings.TRUSTED_PROXIES),
            endpoint="authentication",
        )
        limit = settings.RATE_LIMIT_FAILED
        standing = rate_limits.peek(failures, limit=limit)
        if standing is not None and not standing.is_allowed:
            response = _reject_ip(request, standing)
        else:
            response = self.get_response(request)
            standing = request.standing
            if response.status_code == HTTPStatus.UNAUTHORIZED:
                rate_limits.consume(failures, limit=limit)
        if standing is not None:
            response.headers["RateLimit-Limit"] = str(standing.limit)
            response.headers["RateLimit-Remaining"] = str(standing.remaining)
            response.headers["RateLimit-Reset"] = str(standing.reset)
        return response


def _counted(request: Any) -> tuple[Counter, int] | None:
    """Return what counts a request, and how many there may be; None if nobody does."""
    name = request.resolver_match.url_name
    reads = request.method in READING
    user, endpoint = request.user, f"{name}.{'read' if reads else 'write'}"
    if isinstance(user, Client):
        counter = Counter(scope="client", identifier=str(user.id), endpoint=endpoint)
        return counter, settings.RATE_LIMIT_READ if reads else settings.RATE_LIMIT_WRITE
    if isinstance(user, InboxUser):
        # Not by name: who reads keys in Valkey need not learn who reads their inbox.
        person = hashlib.sha256(f"{user.client_id}|{user.user_id}".encode()).hexdigest()[:32]
        return Counter(scope="inbox", identifier=person, endpoint=endpoint), (
            settings.RATE_LIMIT_INBOX
        )
    return None


def _reject_ip(request: HttpRequest, standing: RateLimitStatus) -> HttpResponse:
    log.warning("address_turned_away", reset_seconds=standing.reset)
    problem = ApiError(
        status=429,
        code="rate_limited",
        detail="Too many requests without a valid key or token came from this address.",
    )
    return HttpResponse(
        msgspec.json.encode(problem.body(request)),
        status=problem.status,
        content_type=MEDIA_TYPE,
        headers={"Retry-After": str(standing.reset)},
    )
