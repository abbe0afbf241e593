"""Which middleware a request passes."""

import sys
from types import FrameType
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

pytestmark = pytest.mark.usefixtures("db", "broker")
TRACING = "notifyproject.platform.tracing.middleware.TracingMiddleware"
MIDDLEWARE = [name for name in settings.MIDDLEWARE if name != TRACING]
"""Django leaves out the one for tracing, which is off."""
OUTER = MIDDLEWARE[: MIDDLEWARE.index("api.http.middleware.ApiMiddleware") + 1]
"""Middleware for all requests; what follows is for pages."""


def passed(method: str, path: str) -> list[str]:
    """Return the middleware that a request passes, in order."""
    found: list[str] = []
    client = Client(raise_request_exception=False)
    client.generic("GET", "/nowhere")  # Makes the chain of middleware.

    def record(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "__call__":
            kind = type(frame.f_locals.get("self"))
            found.append(f"{kind.__module__}.{kind.__qualname__}")

    sys.setprofile(record)
    try:
        client.generic(method, path, b"{}", content_type="application/json")
    finally:
        sys.setprofile(None)
    return [name for name in found if name in MIDDLEWARE]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/webhooks/sendgrid"),
        ("POST", "/webhooks/whatsapp"),
        ("GET", "/webhooks/whatsapp"),
        ("POST", "/webhooks/unknown"),
        ("GET", "/api/v1/notifications"),
        ("GET", "/api/v1/unknown"),
    ],
)
def test_request_of_a_program_passes_no_middleware_of_pages(method: str, path: str) -> None:
    assert passed(method, path) == OUTER


def test_page_passes_all_middleware() -> None:
    assert passed("GET", "/admin/login/") == MIDDLEWARE
