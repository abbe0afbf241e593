"""The pages behind the unsubscribe link of a marketing mail, for people and for mail programs.

Opening the link changes nothing: programs that look for harmful links open it, too. The button does
it, and so does the POST of a mail program whose own button was pressed (RFC 8058).
"""

import secrets
from email.utils import parseaddr
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import select_template
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import get_language_from_request
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from pymongo.errors import PyMongoError

from domain.time import utc_now
from notifications.content.templates import language_chain
from privacy import unsubscribe
from privacy.unsubscribe import Subscriber, UnknownLinkError
from recipients.masking import mask_address

from .http.problems import RETRY_SECONDS

log = structlog.get_logger(__name__)
FOLDER = "unsubscribe"
"""Of the templates; each language but English has its own below it."""


# A mail program that posts has no cookie and has seen no form. The link itself says whose
# subscription it is about, and nobody else's can be changed by it.
@method_decorator(csrf_exempt, name="dispatch")
class Unsubscribe(View):
    """Whether to unsubscribe, and doing it. What a POST says does not matter: it is not read."""

    http_method_names = ("get", "head", "post")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer a request, also when the link is none or the database is away."""
        token = kwargs["token"]
        try:
            subscriber = unsubscribe.parse_link(token)
        except UnknownLinkError:
            return _page(request, "unknown", status=404)
        try:
            return super().dispatch(request, subscriber=subscriber, token=token)
        except PyMongoError as error:
            log.warning("unsubscribing_failed", reason=type(error).__name__)
            response = _page(request, "later", subscriber=subscriber, token=token, status=503)
            response["Retry-After"] = str(RETRY_SECONDS)
            return response

    def get(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Ask, or say that it is done."""
        is_subscribed = unsubscribe.is_subscribed(subscriber, now=utc_now())
        state = "ask" if is_subscribed else "done"
        return _page(request, state, subscriber=subscriber, token=token)

    def post(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Unsubscribe."""
        unsubscribe.unsubscribe(subscriber, now=utc_now())
        state = "test" if subscriber.is_test else "done"
        return _page(request, state, subscriber=subscriber, token=token)


class Resubscribe(Unsubscribe):
    """Undoing it."""

    def get(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Lead to the page that asks: somebody has opened the address of the answer."""
        return HttpResponseRedirect(_link(token))

    def post(self, request: HttpRequest, subscriber: Subscriber, token: str) -> HttpResponse:
        """Subscribe again, unless something else than the person's wish holds the address back."""
        unsubscribe.resubscribe(subscriber)
        if subscriber.is_test:
            return _page(request, "test", subscriber=subscriber, token=token)
        is_subscribed = unsubscribe.is_subscribed(subscriber, now=utc_now())
        state = "undone" if is_subscribed else "done"
        return _page(request, state, subscriber=subscriber, token=token)


def _link(token: str) -> str:
    return reverse("unsubscribe", kwargs={"token": token})


def _page(
    request: HttpRequest,
    state: str,
    *,
    subscriber: Subscriber | None = None,
    token: str = "",
    status: int = 200,
) -> HttpResponse:
    """Return a page in the person's language, or the browser's if nothing is known of them."""
    nonce = secrets.token_urlsafe(16)
    name, address = parseaddr(settings.EMAIL_FROM)
    locale = subscriber.locale if subscriber else None
    context = {
        "nonce": nonce,
        "sender": name or address,
        "address": mask_address(subscriber.address) if subscriber else "",
        "link": _link(token) if subscriber else "",
        "undo": reverse("resubscribe", kwargs={"token": token}) if subscriber else "",
    }
    chain = language_chain(locale or get_language_from_request(request))
    files = [*(f"{FOLDER}/{language}/{state}.html" for language in chain), f"{FOLDER}/{state}.html"]
    response = HttpResponse(select_template(files).render(context), status=status)
    response["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    # The address of the page is all that it takes to change a subscription: it goes nowhere.
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
