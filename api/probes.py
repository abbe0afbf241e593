"""Answers probes and metrics before the host name and the protocol are checked."""

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse

from .health import healthz, readyz
from .metrics import metrics

View = Callable[[HttpRequest], HttpResponse]
VIEWS: Mapping[str, View] = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
"""Views whose responses don't depend on the host name."""


class ProbeMiddleware:
    """Answer :data:`VIEWS` on any host name, and without TLS.

    A kubelet, a load balancer, or Prometheus calls each process by its own address, which isn't in
    ``ALLOWED_HOSTS``.
    """

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        view = VIEWS.get(request.path)
        if view is None:
            return self.get_response(request)
        response = view(request)
        # CommonMiddleware sets it for other paths. Without it, the server uses chunks.
        response.headers["Content-Length"] = str(len(response.content))
        return response
