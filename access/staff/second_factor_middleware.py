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
PUBLIC_PAGES = ("admin:login", "admin:logout", "admin:jsi18n")
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
    return request.session.get(SESSION_KEY) == _session_value(request.user.pk, enrollment)


def mark_verified(request: HttpRequest, enrollment: Enrollment) -> None:
    """Mark the session as verified and give it a new session key."""
    request.session.cycle_key()
    request.session[SESSION_KEY] = _session_value(request.user.pk, enrollment)


def _session_value(user_id: ObjectId, enrollment: Enrollment) -> str:
    return f"{user_id}:{enrollment.enrolled_at.isoformat()}"
