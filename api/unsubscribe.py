"""The pages behind an unsubscribe link in marketing email (RFC 8058)."""

# Opening the link changes nothing, because link scanners open it, too.

import secrets
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import select_template
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import get_language_from_request
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from pymongo.errors import PyMongoError

from domain.languages import find_nearest
from domain.time import utc_now
from privacy import unsubscribe
from privacy.unsubscribe import Subscriber, UnknownLinkError
from providers import senders
from recipients.masking import mask_address

from .http.problems import RETRY_SECONDS

log = structlog.get_logger(__name__)
FOLDER = "unsubscribe"  # Templates, with a subfolder for each language other than English
LANGUAGES = ("pt",)
"""Languages of the pages besides English."""


# The one-click POST comes without a cookie or a form. The link's token authorizes the change of one
# subscription.
@method_decorator(csrf_exempt, name="dispatch")
class Unsubscribe(View):
    """Asks whether to unsubscribe (GET) and unsubscribes (POST, whose body isn't read)."""

    http_method_names = ("get", "head", "post")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show a page, also for an invalid link or while the database is unavailable."""
        token = kwargs["token"]
        try:
            subscriber = unsubscribe.parse_link(token)
        except UnknownLinkError:
            return _page(request, "unknown", status=404)
        try:
            return super().dispatch(request, subscriber=subscriber, token=token)
        except PyMongoError as error:
            log.warning("unsubscribe_failed", reason=type(error).__name__)
            response = _page(request, "later", subscriber=subscriber, token=token, status=503)
            response["Retry-After"] = str(RETRY_SECONDS)
            return response

    def get(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Show the button, or that the address is unsubscribed."""
        state = "ask" if unsubscribe.is_subscribed(subscriber, now=utc_now()) else "done"
        return _page(request, state, subscriber=subscriber, token=token)

    def post(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Unsubscribe."""
        unsubscribe.unsubscribe(subscriber, now=utc_now())
        state = "test" if subscriber.is_test else "done"
        return _page(request, state, subscriber=subscriber, token=token)


class Resubscribe(Unsubscribe):
    """Undoes an unsubscribe."""

    def get(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Redirect to the unsubscribe page. Browsers get this URL when they reopen the result."""
        return HttpResponseRedirect(_link(token))

    def post(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Lift the unsubscribe. Other suppressions of the address remain."""
        unsubscribe.resubscribe(subscriber)
        if subscriber.is_test:
            return _page(request, "test", subscriber=subscriber, token=token)
        state = "undone" if unsubscribe.is_subscribed(subscriber, now=utc_now()) else "done"
        return _page(request, state, subscriber=subscriber, token=token)


def _link(token: str) -> str:
    return str(reverse("unsubscribe", kwargs={"token": token}))


def _page(
    request: HttpRequest,
    state: str,
    *,
    subscriber: Subscriber | None = None,
    token: str = "",
    status: int = 200,
) -> HttpResponse:
    """Return a page in the recipient's language or, if that is unknown, the browser's."""
    nonce = secrets.token_urlsafe(16)
    locale = subscriber.locale if subscriber else None
    context = {
        "nonce": nonce,
        "sender": senders.own_sender().label,
        "address": mask_address(subscriber.address) if subscriber else "",
        "link": _link(token) if subscriber else "",
        "undo": reverse("resubscribe", kwargs={"token": token}) if subscriber else "",
    }
    nearest = find_nearest(locale or get_language_from_request(request), LANGUAGES)
    files = [
        *(f"{FOLDER}/{language}/{state}.html" for language in nearest),
        f"{FOLDER}/{state}.html",
    ]
    response = HttpResponse(select_template(files).render(context), status=status)
    response["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    # The page's URL authorizes the change, so it must not leak.
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
