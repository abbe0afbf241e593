"""Middleware: request ids, a deadline for the database, the clock, and security headers."""

import re
import uuid
from collections.abc import Callable
from types import MappingProxyType

import pymongo
import structlog
from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-Id"
DATABASE_SECONDS = 12
"""A primary is elected within this time, or the caller is told to come again."""
_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}", re.ASCII)


def request_id(given: str) -> str:
    """Return the caller's request id if it is a sane one, or else a new one."""
    return given if _VALID_REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


class RequestIdMiddleware:
    """Take the caller's request id if it is a sane one, make one if not.

    It is in the answer, in its problem, and in every log line the request causes.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        request.request_id = request_id(request.headers.get(HEADER, ""))
        with structlog.contextvars.bound_contextvars(request_id=request.request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request.request_id
        return response


class DeadlineMiddleware:
    """Give up on the database after some seconds: a caller is told, not left hanging."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        with pymongo.timeout(DATABASE_SECONDS):
            return self.get_response(request)


API_CONTENT_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""An answer for programs: if a browser shows it all the same, it does nothing."""
PAGE_CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        # The console's own framework evaluates what stands in its attributes.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        # A preview of a mail shows the images it links to.
        "img-src 'self' data: https: http:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""The console and the API's description: all of it from here, and inside nobody's frame."""
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


class SecurityHeadersMiddleware:
    """Add what an answer does not say by itself. It is outermost: no answer goes past it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        response = self.get_response(request)
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        policy = PAGE_CONTENT_POLICY if request.path.startswith(PAGE_PATHS) else API_CONTENT_POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        if request.path.startswith(NO_STORE_PATHS):
            response.headers.setdefault("Cache-Control", "no-store")
        return response
