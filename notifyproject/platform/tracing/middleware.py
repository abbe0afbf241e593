"""A span for each POST to the API and each webhook."""

from collections.abc import Callable
from functools import lru_cache

import structlog
from django.contrib.admindocs.views import simplify_regex
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from .. import tracing

HEADER = "traceparent"
TRACED = ("/api/", "/webhooks/")
SERVER_ERROR = 500


class TracingMiddleware:
    """Trace POST requests, in the trace of the client's traceparent if it sends one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not tracing.is_on():
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        if request.method != "POST" or not request.path.startswith(TRACED):
            return self.get_response(request)
        with tracing.request_span(parent=request.headers.get(HEADER)):
            trace_id = tracing.trace_id(tracing.traceparent())
            with structlog.contextvars.bound_contextvars(
                **({"trace_id": trace_id} if trace_id else {})
            ):
                response = self.get_response(request)
            _annotate(request, response.status_code)
        return response


def _annotate(request: HttpRequest, status: int) -> None:
    """Add route and status. The path is left out, because it may contain a user ID."""
    match = request.resolver_match
    route = _readable_route(match.route) if match else None
    tracing.annotate(
        {
            "http.request.method": "POST",
            "http.response.status_code": status,
            "notify.request.id": request.request_id,
            **({"http.route": route} if route else {}),
        },
        name=f"POST {route}" if route else "POST",
        error=str(status) if status >= SERVER_ERROR else None,
    )


@lru_cache(maxsize=200)
def _readable_route(route: str) -> str:
    return simplify_regex(route.removesuffix("/?$"))
