"""``/metrics`` for Prometheus. Requires ``METRICS_TOKEN`` or, if not set, a local request."""

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseNotAllowed
from prometheus_client import CONTENT_TYPE_LATEST

from domain.time import utc_now
from monitoring import prometheus


def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics; 403 without permission."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    if not _is_allowed(request):
        return HttpResponseForbidden("Bearer token required (METRICS_TOKEN).\n")
    return HttpResponse(prometheus.render_metrics(now=utc_now()), content_type=CONTENT_TYPE_LATEST)


def _is_allowed(request: HttpRequest) -> bool:
    """Return whether the token is valid or, if none is set, the request comes from this machine."""
    # A proxied request counts as remote.
    if settings.METRICS_TOKEN:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
