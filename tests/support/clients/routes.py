"""Every route and method of the API, and the request for each."""

import json
from collections.abc import Mapping
from typing import Any

from django.test import Client as DjangoClient

from api.http.views import InboxView
from api.urls import version_1
from tests.support.clients.isolation_requests import SAMPLES, IsolationRequest

Route = tuple[str, str]
METHODS = ("get", "post", "put", "patch", "delete")
PATTERNS = {pattern.name: pattern.pattern for pattern in version_1}
VIEWS = {pattern.name: pattern.callback.view_class for pattern in version_1}
ROUTES = [
    (name, method.upper())
    for name, view in VIEWS.items()
    for method in METHODS
    if hasattr(view, method)
]
INBOX = [route for route in ROUTES if issubclass(VIEWS[route[0]], InboxView)]
APPS = [route for route in ROUTES if route not in INBOX]


def ask(
    http: DjangoClient,
    route: Route,
    credential: str | None,
    *,
    named: Mapping[str, str],
    method: str | None = None,
    idempotency_key: str | None = None,
    path: str | None = None,
) -> Any:
    """Send a route's request, as gunicorn passes it on. ``named`` fills its braces."""
    sample = sample_of(route)
    raw = json.dumps(sample.body) if sample.body is not None else ""
    url = path or f"/api/v1{filled(sample.path, named)}"
    return http.generic(
        method or route[1],
        url,
        filled(raw, named).encode(),
        content_type="application/json",
        headers={"Idempotency-Key": idempotency_key or f"key-of-{route[0]}"}
        | ({} if credential is None else {"Authorization": f"Bearer {credential}"}),
        RAW_URI=url,
    )


def filled(text: str, named: Mapping[str, str]) -> str:
    for name, value in named.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def sample_of(route: Route) -> IsolationRequest:
    """Return the request for a route. Every route must have one."""
    assert route in SAMPLES, (
        f"{route[1]} {route[0]}: say in isolation_requests.py what to ask of it"
    )
    return SAMPLES[route]


def name_of(route: Route) -> str:
    return " ".join(reversed(route))
