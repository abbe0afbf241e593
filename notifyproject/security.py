"""Headers that tell browsers what an answer may do, on every answer."""

from collections.abc import Callable
from types import MappingProxyType

from django.http import HttpRequest, HttpResponse

NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""An answer for programs: if a browser shows it all the same, it does nothing."""
PAGES = "; ".join(
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
WITH_PAGES = ("/admin/", "/api/docs")
UNCACHED = ("/admin/", "/api/v1/", "/webhooks/", "/u/")
ALWAYS = MappingProxyType(
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
        for name, value in ALWAYS.items():
            response.headers.setdefault(name, value)
        policy = PAGES if request.path.startswith(WITH_PAGES) else NOTHING
        response.headers.setdefault("Content-Security-Policy", policy)
        if request.path.startswith(UNCACHED):
            response.headers.setdefault("Cache-Control", "no-store")
        return response
