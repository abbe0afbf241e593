"""The console lets nobody in who has not given their second factor in this session."""

from collections.abc import Callable

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
    """Lead staff to the page that asks for a code, or to the one where their phone is set up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        page = self._required_page(request)
        if page is None:
            return self.get_response(request)
        query = QueryDict(mutable=True)
        query["next"] = request.get_full_path()
        return HttpResponseRedirect(f"{reverse(page)}?{query.urlencode()}")

    def _required_page(self, request: HttpRequest) -> str | None:
        """Return the page that comes first; None if there is none."""
        if not request.path.startswith(reverse("admin:index")) or not request.user.is_authenticated:
            return None
        if request.path in {reverse(name) for name in (*PUBLIC_PAGES, CHECK, SET_UP, RENEW)}:
            return None
        enrollment = second_factor.enrollment_of(request.user.pk)
        if enrollment is None:
            return SET_UP if settings.ADMIN_REQUIRE_OTP else None
        return None if is_verified(request, enrollment) else CHECK


def is_verified(request: HttpRequest, enrollment: Enrollment) -> bool:
    """Return whether it was given in this session, by the phone that is set up now."""
    return request.session.get(SESSION_KEY) == _session_value(request.user.pk, enrollment)


def mark_verified(request: HttpRequest, enrollment: Enrollment) -> None:
    """Note in the session that it was given; the session's key is another one from now on."""
    request.session.cycle_key()
    request.session[SESSION_KEY] = _session_value(request.user.pk, enrollment)


def _session_value(user_id: ObjectId, enrollment: Enrollment) -> str:
    return f"{user_id}:{enrollment.enrolled_at.isoformat()}"
