"""``/metrics``: figures for Prometheus, for whoever has the token or sits on this machine."""

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseNotAllowed
from prometheus_client import CONTENT_TYPE_LATEST

from domain.time import utc_now
from monitoring import prometheus


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the exposition, or 403 to whoever may not have it."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    if not _is_allowed(request):
        return HttpResponseForbidden("A bearer token is needed: METRICS_TOKEN.\n")
    return HttpResponse(prometheus.render_metrics(now=utc_now()), content_type=CONTENT_TYPE_LATEST)


def _is_allowed(request: HttpRequest) -> bool:
    """Return whether the token is right or, if none is set, the caller is on this machine.

    What a proxy passes on comes from somewhere else.
    """
    if settings.METRICS_TOKEN:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
