"""Security and cache headers of every response."""

import re

from django.test import Client as DjangoClient

from notifyproject.platform import middleware
from tests.support.clients.api import App
from tests.support.tables import each_case

API_PATHS = [
    "/healthz",
    "/readyz",
    "/api/schema",
    "/api/v1/notifications",
    "/api/v1/notifications/unknown",
    "/api/v1/inbox",
    "/api/v1/nowhere",
    "/webhooks/sendgrid",
    "/nowhere",
    "/",
]
PAGES = ["/admin/", "/admin/login/", "/admin/nowhere/", "/api/docs"]
PRIVATE = ["/api/v1/notifications", "/api/v1/inbox", "/webhooks/sendgrid", "/admin/login/"]


@each_case("path", [*API_PATHS, *PAGES, "/u/nonsense", "/static/admin/css/base.css"])
def test_every_response_has_security_headers(app: App, path: str) -> None:
    answer = app.http.get(path)
    answer.close()
    headers = answer.headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] in ("same-origin", "no-referrer")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@each_case("path", API_PATHS)
def test_api_response_has_the_api_policy(app: App, path: str) -> None:
    headers = app.http.get(path).headers
    assert headers["Content-Security-Policy"] == middleware.API_CONTENT_POLICY
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


@each_case("path", PAGES)
def test_page_loads_scripts_from_its_own_origin_only(app: App, path: str) -> None:
    policy = app.http.get(path).headers["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for kind in ("default-src", "script-src", "connect-src", "form-action"):
        assert rules[kind] == "'self'"
    assert "unsafe" not in policy


def test_style_element_has_the_nonce_of_its_response(app: App) -> None:
    nonces = set()
    for _ in range(2):
        answer = app.http.get("/admin/login/")
        (nonce,) = re.findall("'nonce-([^']+)'", answer.headers["Content-Security-Policy"])
        assert re.findall("<style[^>]*>", answer.text) == [
            f'<style id="unfold-theme-colors" nonce="{nonce}">'
        ]
        nonces.add(nonce)
    assert len(nonces) == 2


def test_page_with_its_own_policy_keeps_it(app: App) -> None:
    policy = app.http.get("/u/nonsense").headers["Content-Security-Policy"]
    assert policy != middleware.API_CONTENT_POLICY
    assert policy.startswith("default-src 'none'")


@each_case("path", PRIVATE)
def test_private_response_is_not_cached(app: App, path: str) -> None:
    assert "no-store" in app.http.get(path).headers["Cache-Control"]


def test_client_response_is_not_cached(app: App) -> None:
    for answer in (app.get("/notifications"), app.notify(), app.get("/notifications/unknown")):
        assert answer.headers["Cache-Control"] == "no-store"


def test_preflight_response_has_security_headers(db: None) -> None:
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    answer = DjangoClient().options("/api/v1/inbox", headers=preflight)
    assert answer.status_code == 204
    assert answer.headers["Content-Security-Policy"] == middleware.API_CONTENT_POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
