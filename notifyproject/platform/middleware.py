"""Middleware: request IDs, a deadline for the database, and security headers."""

import re
import secrets
from collections.abc import Callable
from types import MappingProxyType

import pymongo
import structlog
from django.http import HttpRequest, HttpResponse

from .unique import new_uuid

HEADER = "X-Request-Id"
DATABASE_SECONDS = 12
"""Limit after which the response is 503 with Retry-After. Electing a primary takes less."""
_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}", re.ASCII)
API_CONTENT_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""For API responses: a browser that shows one runs and loads nothing."""
PAGE_CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'nonce-{nonce}'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""For the console and the API documentation: resources of this origin, no inline script, and no
framing. The nonce is ``request.csp_nonce``, for the ``style`` elements of a page."""
PAGE_PATHS = ("/admin/", "/api/docs")
NO_STORE_PATHS = ("/admin/", "/api/v1/", "/webhooks/", "/u/")
SECURITY_HEADERS = MappingProxyType(
    {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
)


def request_id(given: str) -> str:
    """Return the client's request ID if it is valid, else a new one."""
    return given if _VALID_REQUEST_ID.fullmatch(given) else new_uuid().hex


class _Middleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response


class RequestIdMiddleware(_Middleware):
    """Set :func:`request_id` on the request, its response, and its log lines."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        request.request_id = request_id(request.headers.get(HEADER, ""))
        with structlog.contextvars.bound_contextvars(request_id=request.request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request.request_id
        return response


class DeadlineMiddleware(_Middleware):
    """Limit the database time of a request, so that the client gets a response."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        with pymongo.timeout(DATABASE_SECONDS):
            return self.get_response(request)


class SecurityHeadersMiddleware(_Middleware):
    """Add missing security headers. This middleware is outermost, so each response has them."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        is_page = request.path.startswith(PAGE_PATHS)
        if is_page:
            request.csp_nonce = secrets.token_urlsafe(16)
        response = self.get_response(request)
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        policy = (
            PAGE_CONTENT_POLICY.format(nonce=request.csp_nonce) if is_page else API_CONTENT_POLICY
        )
        response.headers.setdefault("Content-Security-Policy", policy)
        if request.path.startswith(NO_STORE_PATHS):
            response.headers.setdefault("Cache-Control", "no-store")
        return response
