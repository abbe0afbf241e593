"""Middleware that ends a console session after 8 hours without a page.

A second one says on the sign-in page that a form was lost because the session had ended.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from domain.time import utc_now
from notifyproject.db.collections import collection

from .second_factor_middleware import is_console_page

MAX_REMOVED = 10_000
"""Sessions that one call removes. A task calls it each minute."""


class IdleLimitMiddleware:
    """Extends the session with each page that staff open.

    A request with the header ``HX-Request`` refreshes part of a page and doesn't extend it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        if not is_console_page(request):
            return self.get_response(request)
        response = self.get_response(request)
        key = request.session.session_key if request.user.is_authenticated else None
        if key and "HX-Request" not in request.headers:
            extend(key, now=utc_now())
        return response


class LostFormMiddleware:
    """Says on the sign-in page that what was sent without a session isn't saved."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        response = self.get_response(request)
        if request.method == "POST" and is_console_page(request) and _leads_to_sign_in(response):
            messages.warning(
                request, "You were signed out, so nothing was saved. Sign in, and enter it again."
            )
        return response


def _leads_to_sign_in(response: HttpResponse) -> bool:
    target = urlsplit(response.get("Location", ""))
    # A sign-out leads there, too, but without the page to go on at.
    return target.path == reverse("admin:login") and "next=" in target.query


def remove_expired(*, now: datetime) -> int:
    """Remove sessions that have ended, up to MAX_REMOVED. Return how many."""
    ended = collection("django_session").find({"expire_date": {"$lt": now}}, {"_id": 1})
    ids = [session["_id"] for session in ended.limit(MAX_REMOVED)]
    if not ids:
        return 0
    return collection("django_session").delete_many({"_id": {"$in": ids}}).deleted_count


def extend(session_key: str, *, now: datetime) -> None:
    """Let a session end ``SESSION_COOKIE_AGE`` seconds from now, unless it has ended.

    Only the time is written: saving the session would undo concurrent changes of it.
    """
    end = now + timedelta(seconds=settings.SESSION_COOKIE_AGE)
    Session.objects.filter(session_key=session_key, expire_date__gt=now).update(expire_date=end)
