"""Text fields: one line, except for longer texts; those with fixed values are described so."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from django.contrib.admindocs.views import simplify_regex

from api.urls import version_1
from devices.push_keys import new_key
from notifications.validation import FREE_FORM
from tests.support.clients.api import App, pointers
from tests.support.clients.inbox import credential_for
from tests.support.clients.isolation_requests import BROADCAST, BROWSER, FILE
from tests.support.clients.routes import ROUTES, Route, filled, sample_of
from tests.support.openapi import api_document, resolved
from tests.support.tables import each_case

MULTILINE = {"body", "description", "footer", "html", "parts"}


def texts(schema: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the path to each text of a schema. List items have the path segment 0."""
    schema = resolved(schema)
    if schema.get("type") == "string" and not {"format", "enum"} & schema.keys():
        yield []
    for option in schema.get("anyOf", ()):
        yield from texts(option)
    if "items" in schema:
        yield from (["0", *path] for path in texts(schema["items"]))
    for name, inner in schema.get("properties", {}).items():
        if name not in FREE_FORM | MULTILINE:
            yield from ([name, *path] for path in texts(inner))


def schema_of(route: Route) -> Mapping[str, Any]:
    """Return the schema of a route's body."""
    name, method = route
    (pattern,) = (str(rule.pattern) for rule in version_1 if rule.name == name)
    path = simplify_regex(pattern).replace("<", "{").replace(">", "}")
    operation = api_document()["paths"][f"/api/v1{path}"][method.lower()]
    content = operation.get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] = content.get("application/json", {}).get("schema", {})
    return schema


def fields() -> list[tuple[Route, tuple[str, ...]]]:
    found = [
        (route, tuple(path))
        for route in ROUTES
        if sample_of(route).body is not None
        for path in texts(schema_of(route))
    ]
    assert len(found) > 60
    return found


BESIDE: Mapping[str, Mapping[str, Any]] = {
    "attachments": {"url": "https://files.example.com/a.pdf", "filename": "a.pdf"},
    "scheduled_local": {"at": "2027-01-01T09:00"},
    "quiet_hours": {"enabled": True},
    "actions": {"id": "approve", "label": "Approve"},
    "digest": {"window": {"every": "day"}},
    "approved_templates": {"locale": "pt", "name": "lost", "language": "pt_PT"},
    "subscription": BROWSER,
    "partials": [{"name": "footer", "texts": {}}],
    "layouts": [{"name": "plain"}],
    "brands": [{"name": "acme"}],
    "brand": {"name": "Acme"},
    "limits": [{"name": "weekly", "limit": {"max": 3, "period_seconds": 600}}],
    "logo": {"url": "https://cdn.example.com/acme.png"},
}
"""Required fields of objects that are optional themselves."""


def replaced(value: Any, path: Sequence[str], text: str) -> Any:
    """Return a body with the text at a path replaced, and required sibling fields added."""
    if not path:
        return text
    first, *rest = path
    if first == "0":
        items = value if isinstance(value, list) else []
        return [replaced(items[0] if items else value, rest, text), *items[1:]]
    fields = value if isinstance(value, Mapping) else {}
    if first == "user_ids":
        fields = {}  # A broadcast has exactly one audience.
    if first == "subscription":  # A device has a token or a subscription.
        fields = {name: value for name, value in fields.items() if name != "device_token"}
    return {**fields, first: replaced(fields.get(first) or BESIDE.get(first), rest, text)}


@pytest.fixture
def url_of(app: App, settings: Any) -> Callable[[Route], str]:
    """Return a function that fills a route's path with IDs of the client's objects."""
    settings.WEBPUSH_KEYS = (new_key().private_text,)
    device = {"user_id": "ada", "device_token": "adas-phone", "platform": "android"}
    browser = {"user_id": "ada", "subscription": BROWSER, "platform": "web"}
    at = "2027-01-01T00:00:00Z"
    app.put("/recipients/ada", {"email": "ada@example.com"})
    objects = {
        "device": app.put("/devices", device).json()["id"],
        "browser": app.put("/devices", browser).json()["id"],
        "type": "marketing",
        "broadcast": app.post("/broadcasts", {**BROADCAST, "scheduled_at": at}).json()["id"],
        "notification": app.notify(scheduled_at=at).json()["id"],
        "file": app.post("/files", FILE).json()["id"],
    }

    def url(route: Route) -> str:
        return filled(sample_of(route).path, objects)

    return url


def test_every_text_field_takes_one_line(
    app: App, url_of: Callable[[Route], str], settings: Any
) -> None:
    settings.ATTACHMENT_HOSTS = ["files.example.com"]
    accepted = [
        (route, path)
        for route, path in fields()
        if not errors_at(app, url_of, route, path, "a\r\nb")
    ]
    assert accepted == [], "\n".join(map(str, accepted))


def test_text_with_fixed_values_is_described_as_an_enum(
    app: App, url_of: Callable[[Route], str], settings: Any
) -> None:
    settings.ATTACHMENT_HOSTS = ["files.example.com"]
    undescribed = [
        (route, path)
        for route, path in fields()
        for error in errors_at(app, url_of, route, path, "no-such-value")
        if error["detail"].startswith("Expected one of")
    ]
    assert undescribed == [], "\n".join(map(str, undescribed))


def errors_at(
    app: App, url_of: Callable[[Route], str], route: Route, path: Sequence[str], text: str
) -> list[dict[str, str]]:
    """Return the errors at a field of a route's body if it is ``text``."""
    raw = json.dumps(replaced(sample_of(route).body, path, text)).encode()
    key = {"Idempotency-Key": f"{len(text)}-{'/'.join(path)}"}
    url = url_of(route)
    answer = app.send(url, raw, method=route[1], headers=key | credential_for(app, url))
    body = answer.json() if answer.content else {}
    found = body.get("errors") or []
    for result in body.get("results") or []:
        found += result.get("error", {}).get("errors") or []
    found += body.get("findings") or []
    pointer = "/" + "/".join(path)
    return [error for error in found if error["pointer"] and pointer.endswith(error["pointer"])]


@each_case("locale", ["pt-BR", "pt-PT", "sr-Latn-RS", "en", "C", "tlh"])
def test_language_is_accepted(app: App, locale: str) -> None:
    answer = app.notify(recipient={"email": "ada@example.com", "locale": locale})
    assert answer.json()["recipient"]["locale"] == locale


@each_case(
    "locale",
    [
        "",
        "p",
        "pt BR",
        "pt;q=1",
        "../pt",
        "<b>",
        "português",
        # No registry knows the first word: a language's name, a country, a private tag
        "p-BR",
        "b+p",
        "x-own",
        "c_US",
        "english",
        "Português",
        "port",
        "jp",
        "us-EN",
        "xx",
    ],
)
def test_other_text_is_no_language(app: App, locale: str) -> None:
    answer = app.notify(recipient={"email": "ada@example.com", "locale": locale})
    assert pointers(answer) == {"/recipient/locale": "invalid_language"}
