"""Middleware that ends a console session when the provider does, or takes the last role away."""

from collections.abc import Callable

import structlog
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from domain.time import utc_now

from ..second_factor_middleware import is_console_page
from . import sessions
from .errors import Refusal, RefusedError

log = structlog.get_logger(__name__)
STATUS = 403
REASONS = {
    Refusal.NO_GROUP: "None of your groups at the provider has a role here any more.",
    Refusal.PROVIDER_LOGOUT: "You signed out at the provider, or an administrator ended this "
    "session.",
    Refusal.CODE: "The provider ended your session.",
    Refusal.UNREACHABLE: "The provider didn't confirm your access for 10 minutes, because it is "
    "unavailable.",
    Refusal.LOCAL: "Accounts with a password are for emergencies now. Sign in by the provider.",
}
OTHER_REASON = "The provider didn't confirm your access."


class OidcSessionMiddleware:
    """Checks each request for a page of the console, before its view."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on, or end its session and say why."""
        # Everybody may read the words of scripts: ending a session there would hide the reason.
        if not is_console_page(request) or request.path == reverse("admin:jsi18n"):
            return self.get_response(request)
        try:
            sessions.check(request, now=utc_now())
        except RefusedError as error:
            target = request.get_full_path() if request.method == "GET" else ""
            return end_session(request, error, target=target)
        return self.get_response(request)


def end_session(request: HttpRequest, error: RefusedError, *, target: str) -> HttpResponse:
    """Sign the person out and return the page that says why; ``target`` is where to go on."""
    reason, user = error.reason, request.user
    log.warning(
        "oidc_session_ended", user_id=str(user.pk), reason=reason.value, detail=error.detail
    )
    # A logout by the provider has recorded itself.
    if user.is_authenticated and reason is not Refusal.PROVIDER_LOGOUT:
        sessions.record(user.pk, f"Session ended: {reason.value}.")
    logout(request)
    context = {
        "title": "Your session ended",
        "reason": REASONS.get(reason, OTHER_REASON),
        "target": target,
    }
    response = render(request, "console/sign_in/session_ended.html", context, status=STATUS)
    if "HX-Request" in request.headers:
        # A part of a page would show this one within it.
        response.headers["HX-Refresh"] = "true"
    return response
