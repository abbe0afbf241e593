"""The console lets nobody in who has not given their second factor in this session."""

from collections.abc import Callable

from bson import ObjectId
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse

from . import second_factor
from .second_factor import Enrollment

MARK = "second_factor"
OPEN = ("admin:login", "admin:logout", "admin:jsi18n")
CHECK, SET_UP, RENEW = "second-factor", "second-factor-set-up", "second-factor-renew"


class SecondFactorMiddleware:
    """Lead staff to the page that asks for a code, or to the one where their phone is set up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        page = self._instead(request)
        if page is None:
            return self.get_response(request)
        query = QueryDict(mutable=True)
        query["next"] = request.get_full_path()
        return HttpResponseRedirect(f"{reverse(page)}?{query.urlencode()}")

    def _instead(self, request: HttpRequest) -> str | None:
        """Return the page that comes first; None if there is none."""
        if not request.path.startswith(reverse("admin:index")) or not request.user.is_authenticated:
            return None
        if request.path in {reverse(name) for name in (*OPEN, CHECK, SET_UP, RENEW)}:
            return None
        standing = second_factor.enrollment_of(request.user.pk)
        if standing is None:
            return SET_UP if settings.ADMIN_REQUIRE_OTP else None
        return None if is_given(request, standing) else CHECK


def is_given(request: HttpRequest, standing: Enrollment) -> bool:
    """Return whether it was given in this session, by the phone that is set up now."""
    return request.session.get(MARK) == _mark(request.user.pk, standing)


def note_given(request: HttpRequest, standing: Enrollment) -> None:
    """Note in the session that it was given; the session's key is another one from now on."""
    request.session.cycle_key()
    request.session[MARK] = _mark(request.user.pk, standing)


def _mark(user_id: ObjectId, standing: Enrollment) -> str:
    return f"{user_id}:{standing.enrolled_at.isoformat()}"
