"""Middleware that requires the second factor for the console."""

from collections.abc import Callable
from functools import cache

from bson import ObjectId
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse

from . import second_factor
from .second_factor import Enrollment

SESSION_KEY = "second_factor"
PUBLIC_PAGES = ("admin:login", "admin:logout", "admin:jsi18n", "oidc-callback")
CHECK, SET_UP, RENEW = "second-factor", "second-factor-set-up", "second-factor-renew"


class SecondFactorMiddleware:
    """Redirects staff to the page that checks or sets up their second factor."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Redirect a request of an unverified session, or pass the request on."""
        if not is_console_page(request):
            return self.get_response(request)
        page = self._required_page(request)
        if page is None:
            return self.get_response(request)
        query = QueryDict(mutable=True)
        query["next"] = request.get_full_path()
        return HttpResponseRedirect(f"{reverse(page)}?{query.urlencode()}")

    def _required_page(self, request: HttpRequest) -> str | None:
        if not request.user.is_authenticated:
            return None
        if request.path in {reverse(name) for name in (*PUBLIC_PAGES, CHECK, SET_UP, RENEW)}:
            return None
        if is_vouched_for(request):
            return None
        enrollment = second_factor.enrollment_of(request.user.pk)
        if enrollment is None:
            return SET_UP if settings.ADMIN_REQUIRE_OTP else None
        return None if is_verified(request, enrollment) else CHECK


@cache
def _console_path() -> str:
    return reverse("admin:index")


def is_console_page(request: HttpRequest) -> bool:
    """Return whether a request is for a page of the console."""
    return request.path.startswith(_console_path())


def is_verified(request: HttpRequest, enrollment: Enrollment) -> bool:
    """Return whether this session has passed the user's current second factor."""
    passed = request.session.get(SESSION_KEY)
    return is_vouched_for(request) or passed == _session_value(request.user.pk, enrollment)


def is_vouched_for(request: HttpRequest) -> bool:
    """Return whether the OpenID provider checked a second factor at this session's sign-in."""
    return request.session.get(SESSION_KEY) == _vouched_value(request.user.pk)


def mark_vouched_for(request: HttpRequest) -> None:
    """Mark the session of the signed-in user as vouched for by the OpenID provider."""
    request.session[SESSION_KEY] = _vouched_value(request.user.pk)


def mark_verified(request: HttpRequest, enrollment: Enrollment) -> None:
    """Mark the session as verified and give it a new session key."""
    request.session.cycle_key()
    request.session[SESSION_KEY] = _session_value(request.user.pk, enrollment)


def _vouched_value(user_id: ObjectId) -> str:
    return f"{user_id}:provider"


def _session_value(user_id: ObjectId, enrollment: Enrollment) -> str:
    return f"{user_id}:{enrollment.enrolled_at.isoformat()}"
