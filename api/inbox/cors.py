"""CORS for web pages of ``INBOX_ORIGINS`` and their service workers.

They may use an inbox but not issue tokens, and report what became of a push.
"""

import re
from collections.abc import Callable, Mapping

from django.conf import settings
from django.http import HttpRequest, HttpResponse

BROWSER_PATHS = re.compile(
    r"/api/v1/(?:inbox(?!/tokens(?:/|$))(?:/.*)?|devices/[0-9a-f]{64}/(?:receipts|subscription))",
    re.DOTALL,
)
ALLOWED_METHODS = "DELETE, GET, POST, PUT"
ALLOWED_HEADERS = "authorization, content-type, last-event-id, x-request-id"
EXPOSED_HEADERS = "Retry-After, X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"
PREFLIGHT_MAX_AGE = 3600  # Seconds for which a browser caches a preflight


class InboxCorsMiddleware:
    """Adds the CORS headers of the inbox, and answers preflights without authentication."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a preflight, or respond and add the headers."""
        if not BROWSER_PATHS.fullmatch(request.path):
            return self.get_response(request)
        if is_preflight(request.method, request.headers):
            response = HttpResponse(status=204)
        else:
            response = self.get_response(request)
        for name, value in response_headers(request.method, request.headers).items():
            response.headers[name] = value
        return response


def is_preflight(method: str | None, request_headers: Mapping[str, str]) -> bool:
    """Return whether a request is a CORS preflight."""
    return method == "OPTIONS" and "Access-Control-Request-Method" in request_headers


def response_headers(method: str | None, request_headers: Mapping[str, str]) -> dict[str, str]:
    """Return the CORS headers of a response; only ``Vary`` for an origin that isn't allowed."""
    origin = request_headers.get("Origin", "")
    if origin not in settings.INBOX_ORIGINS:
        return {"Vary": "Origin"}
    allowed = {"Vary": "Origin", "Access-Control-Allow-Origin": origin}
    if not is_preflight(method, request_headers):
        return {**allowed, "Access-Control-Expose-Headers": EXPOSED_HEADERS}
    return {
        **allowed,
        "Access-Control-Allow-Methods": ALLOWED_METHODS,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": str(PREFLIGHT_MAX_AGE),
    }
