"""Every route authenticates its caller, or is listed with a reason."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.views import APIView

from access.clients.authentication import (
    HasScope,
    InboxAuthentication,
    KeyAuthentication,
    OwnsInbox,
)
from access.models import Scope
from api.devices.browsers import BrowserAuthentication, BrowserEndpoint, HasScopeOrToken
from tests.support.tables import each_case

OPEN = {
    "": "redirects to the console, which requires a login",
    "healthz": "for load balancers: liveness",
    "readyz": "for load balancers: readiness",
    "metrics": "for Prometheus: a token of its own, or this machine only",
    "api/schema": "the description of the API holds no data",
    "api/docs": "a page that shows the description",
    "webhooks/sendgrid": "the signature is the authentication",
    "webhooks/postmark": "a password in the URL is the authentication",
    "webhooks/brevo": "a password in the URL is the authentication",
    "webhooks/mailjet": "a password in the URL is the authentication",
    "webhooks/sparkpost": "a password in the URL is the authentication",
    "webhooks/mailtrap": "a password in the URL is the authentication",
    "webhooks/resend": "the signature is the authentication",
    "webhooks/mailgun": "the signature and a password are the authentication",
    "webhooks/whatsapp": "the signature is the authentication, and a token for the handshake",
    "webhooks/ses": "the signature is the authentication",
    "webhooks/aws_sms": "the signature is the authentication",
    "webhooks/twilio": "the signature is the authentication",
    "u/<str:token>": "the token authenticates the recipient",
    "u/<str:token>/undo": "the same link",
    "admin/login/": "where one logs in",
    "admin/oidc/sign-in/": "sends the browser to the provider, where one logs in",
    "admin/oidc/callback/": "the code from the provider is the authentication",
    "admin/oidc/back-channel-logout/": "the signature of the provider's token",
    "admin/jsi18n/": "words for the admin's scripts",
}
METHODS = ("get", "post", "put", "patch", "delete")


def routes(patterns: list[Any] | None = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns if patterns is not None else get_resolver().url_patterns:
        here = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, here)
        else:
            yield here, pattern


ROUTES = dict(routes())
API = {
    address: pattern.callback.view_class
    for address, pattern in ROUTES.items()
    if issubclass(getattr(pattern.callback, "view_class", object), APIView)
}
INBOX = {address for address, view in API.items() if address.startswith(r"api/v1/^inbox")}
INBOX -= {address for address in INBOX if address.startswith(r"api/v1/^inbox/tokens")}
"""Routes for recipients with an inbox token. Clients request these tokens with a key."""
BROWSER = {address for address, view in API.items() if issubclass(view, BrowserEndpoint)}
"""Routes for clients with a key, and for a browser with the token of its own device."""
ADMIN = {address: p for address, p in ROUTES.items() if address.startswith("admin/")}


def test_there_are_routes_of_every_kind() -> None:
    assert len([address for address in API if address.startswith("api/v1/")]) >= 8
    assert len(INBOX) >= 8
    assert len(ADMIN) > 20


@each_case("address", sorted(INBOX))
def test_inbox_route_requires_an_inbox_token(address: str) -> None:
    assert list(API[address].authentication_classes) == [InboxAuthentication]
    assert list(API[address].permission_classes) == [OwnsInbox]


def test_browsers_have_two_routes() -> None:
    routes_of_devices = r"api/v1/^devices/(?P<device_id>[^/]{1,64})"
    assert {f"{routes_of_devices}/{name}\\Z" for name in ("receipts", "subscription")} == BROWSER


@each_case("address", [address for address in API if address not in OPEN and address not in INBOX])
def test_api_route_requires_a_key_and_a_scope_per_method(address: str) -> None:
    view = API[address]
    if address in BROWSER:
        assert list(view.authentication_classes) == [BrowserAuthentication, KeyAuthentication]
        assert list(view.permission_classes) == [HasScopeOrToken]
    else:
        assert view.authentication_classes == [KeyAuthentication]
        assert view.permission_classes == [HasScope]
    methods = {method.upper() for method in METHODS if hasattr(view, method)}
    assert methods
    assert set(view.scopes) == methods | ({"HEAD"} if "GET" in methods else set())
    assert all(isinstance(scope, Scope) for scope in view.scopes.values())


@each_case("address", [address for address in ADMIN if address not in OPEN])
def test_console_page_requires_a_login(address: str) -> None:
    pattern = ADMIN[address]
    words = dict.fromkeys(pattern.pattern.regex.groupindex, "x")
    for method in ("get", "post"):
        request = getattr(RequestFactory(), method)("/admin/x/")
        request.user = AnonymousUser()
        request._dont_enforce_csrf_checks = True
        response = pattern.callback(request, **words)
        assert response.status_code in (302, 403, 404, 405), method
        if response.status_code == 302:
            assert response["Location"].startswith(("/admin/login/", "/admin/")), method


@each_case(
    "address", [address for address in ROUTES if address not in API and address not in ADMIN]
)
def test_open_route_has_a_reason(address: str) -> None:
    assert OPEN[address]


def test_open_routes_exist() -> None:
    assert OPEN.keys() <= ROUTES.keys()


@pytest.mark.parametrize("address", sorted(OPEN.keys() & API.keys()))
def test_open_api_route_has_no_authentication(address: str) -> None:
    assert list(API[address].authentication_classes) == []
