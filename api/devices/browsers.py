"""Browsers: their subscriptions in requests, and the tokens with which service workers report."""

from collections.abc import Callable, Collection
from typing import Annotated, Any, TypeVar

import msgspec
from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from msgspec import Meta
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from access.clients.authentication import HasScope, KeyAuthentication
from devices import browser_tokens, push_keys
from devices.browser_tokens import BrowserToken
from devices.documents import DeviceDocument
from domain.web_push import (
    MAX_ENDPOINT_LENGTH,
    Fingerprint,
    Subscription,
    endpoint_host,
    fingerprint,
    read_auth,
    read_point,
)
from notifications.validation import ProblemCollector

from ..http.fields import DeviceId
from ..http.requests import ClientRequest
from ..http.views import ApiView

EXAMPLE_KEY = (
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
)
T = TypeVar("T")
NOT_CONFIGURED = "Web push isn't configured: WEBPUSH_KEYS has no key."


class SubscriptionKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The browser's keys."""

    p256dh: Annotated[
        str,
        Meta(
            description="Its public key: 65 bytes in base64url.",
            examples=[EXAMPLE_KEY],
        ),
    ]
    auth: Annotated[
        str,
        Meta(description="Its secret: 16 bytes in base64url.", examples=["BTBZMqHH6r4Tts7J_aSIgg"]),
    ]


class PushSubscriptionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A browser's subscription, as `JSON.stringify(subscription)` gives it. Others are ignored."""

    endpoint: Annotated[
        str,
        Meta(
            max_length=MAX_ENDPOINT_LENGTH,
            description="https, of a push service of `WEBPUSH_HOSTS`.",
            examples=["https://updates.push.services.mozilla.com/wpush/v2/gAAAAABn"],
        ),
    ]
    keys: SubscriptionKeys
    application_server_key: Annotated[
        str | None,
        Meta(
            description="The key that the browser subscribed with, in base64url: "
            "`subscription.options.applicationServerKey`. Omitted: the service's newest."
        ),
    ] = None


class RegisteredBrowser(msgspec.Struct, kw_only=True, frozen=True):
    """A browser's device, with the token by which its service worker replaces the subscription."""

    id: DeviceId
    token: Annotated[str, Meta(examples=["ntfb_mEkWm0v0nX2yQ0fH"])]


def registered_browser(document: DeviceDocument) -> RegisteredBrowser:
    """Return a browser's device as its registration returns it."""
    device_id = document["_id"]
    token = browser_tokens.issue_for_renewal(device_id=device_id, user_id=document["user_id"])
    return RegisteredBrowser(id=device_id, token=token)


class PushSubscriptionView(msgspec.Struct, kw_only=True, frozen=True):
    """A browser's subscription, without what would suffice to push to it."""

    host: Annotated[str, Meta(examples=["updates.push.services.mozilla.com"])]
    fingerprint: Annotated[str, Meta(examples=["3f1c9a0be2d47715"])]
    """Of the key that it subscribed with."""


class BrowserRequest(ClientRequest):
    """A request with an API key, or with the token of a browser."""

    @property
    def browser(self) -> BrowserToken | None:
        """What the browser's token allows. None: the caller has an API key."""
        return self.user if isinstance(self.user, BrowserToken) else None


def parse_subscription(
    body: PushSubscriptionRequest, problems: ProblemCollector, *, at: str
) -> Subscription | None:
    """Return the subscription in a body, or None and its problems. ``at`` is its JSON Pointer."""
    known = push_keys.public_keys()
    if not known:
        problems.add(at, "not_configured", NOT_CONFIGURED)
        return None

    def read(name: str, code: str, reader: Callable[[], T]) -> T | None:
        try:
            return reader()
        except ValueError as error:
            problems.add(f"{at}/{name}", code, f"{str(error)[:1].upper()}{str(error)[1:]}.")
            return None

    keys, key_text = body.keys, body.application_server_key
    services, sandbox = settings.WEBPUSH_HOSTS, settings.SANDBOX_URL
    host = read(
        "endpoint",
        "invalid_endpoint",
        lambda: endpoint_host(body.endpoint, services=services, stand_in=sandbox),
    )
    p256dh = read("keys/p256dh", "invalid_key", lambda: read_point(keys.p256dh))
    auth = read("keys/auth", "invalid_key", lambda: read_auth(keys.auth))
    own: Fingerprint | None = next(iter(known))
    if key_text is not None:
        own = read("application_server_key", "other_key", lambda: _known_key(key_text, known))
    if host is None or p256dh is None or auth is None or own is None:
        return None
    return Subscription(
        endpoint=body.endpoint, host=host, p256dh=p256dh, auth=auth, fingerprint=own
    )


def subscription_in(body: PushSubscriptionRequest, *, at: str = "") -> Subscription:
    """Return the subscription in a body. Raises InvalidRequestError."""
    problems = ProblemCollector()
    found = parse_subscription(body, problems, at=at)
    problems.raise_if_any()
    if found is None:
        raise AssertionError("a body without a subscription has a problem")
    return found


def _known_key(text: str, known: Collection[Fingerprint]) -> Fingerprint:
    own = fingerprint(read_point(text))
    if own not in known:
        raise ValueError("the service has another key: subscribe again with its newest")
    return own


class BrowserAuthentication(BaseAuthentication):
    """Authentication by a token that a push, or the registration of a browser, had in it."""

    def authenticate(self, request: Request) -> tuple[BrowserToken, None] | None:
        """Return what the token allows, or None for another. Raises AuthenticationFailed."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not text.startswith(browser_tokens.PREFIX):
            return None
        if (token := browser_tokens.read(text)) is None:
            raise AuthenticationFailed
        return token, None

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate header of a 401 response."""
        return KeyAuthentication().authenticate_header(request)


class BrowserTokenScheme(OpenApiAuthenticationExtension):
    """Security scheme of browsers' tokens."""

    target_class = f"{__name__}.{BrowserAuthentication.__name__}"
    name = "browserToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        form = f"{browser_tokens.PREFIX}<token>"
        return {"type": "http", "scheme": "bearer", "bearerFormat": form}


class HasScopeOrToken(HasScope):
    """Requires the scope, or a token of the device in the path."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return whether the caller may do this to the device. Raises as HasScope does."""
        if not isinstance(request.user, BrowserToken):
            return super().has_permission(request, view)
        return bool(request.user.device_id == view.kwargs.get("device_id"))


class BrowserEndpoint(ApiView):
    """Base of the views that take an API key, or the token of a browser for its own device."""

    request_class = BrowserRequest
    authentication_classes = (BrowserAuthentication, KeyAuthentication)
    permission_classes = (HasScopeOrToken,)
