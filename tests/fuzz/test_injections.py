"""Hostile text in each path, query, body field, form field, and header of the API and console.

A sample runs by default, and every case by ``make security``.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from api.http.problems import MEDIA_TYPE
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.bulk import runner
from notifications.store import leases
from notifyproject.db.collections import collection
from tests.fuzz.console_forms import every_form
from tests.fuzz.seed_data import Seeder
from tests.support.clients.api import App, new_app, request
from tests.support.clients.console import register_ada
from tests.support.clients.inbox import token
from tests.support.console_urls import addresses_with, page_paths
from tests.support.factories import notifications as factories
from tests.support.factories.one_of_each import store_one_of_each
from tests.support.mongo.taken_operators import MARKER, taken
from tests.support.openapi import api_operations
from tests.support.samples import IS_WHOLE, sampled

PRODUCT = str(7331 * 7907)
PAYLOADS: dict[str, Any] = {
    "operator as text": json.dumps({"$gt": MARKER}),
    "operator": {"$gt": MARKER},
    "operator in a list": [{"$ne": MARKER}],
    "operator of a string": f"$where: {MARKER}",
    "regular expression": "(" * 60 + "a+)+$",
    "Liquid": "{{ 7331 | times: 7907 }}{% include '../../settings' %}",
    "HTML": f"<script>{MARKER}</script>",
    "attribute": f"\"'><img src=x onerror={MARKER}>",
    "CRLF": f"a\r\nX-Injected: {MARKER}\r\n\r\n{MARKER}",
    "NUL": "a\x00b",
    "path traversal": "../../../../etc/passwd",
    "right to left": "\u202egnp.exe\u2066\u200b",
    "long": "x" * 70_000,
    "surrogate": "\ud800",
    "number": "9" * 400,
}
HTML = tuple(PAYLOADS[name] for name in ("HTML", "attribute"))
NEVER = (*HTML, PRODUCT, "root:x:0:")
"""Texts that no HTML page may contain."""
PLACES = ("path", "query")
NOT_ASKED = frozenset({"streamInbox"})
"""Answered by another process."""
TEMPLATE_FORM = "/templates/new/"
"""Ends the URL of the form whose fields are Liquid."""
HEADERS = (
    "Accept",
    "Accept-Language",
    "Authorization",
    "Content-Encoding",
    "Content-Language",
    "Content-Type",
    "Cookie",
    "Forwarded",
    "Host",
    "HX-Current-URL",
    "HX-Request",
    "Idempotency-Key",
    "If-Modified-Since",
    "If-None-Match",
    "Last-Event-ID",
    "Origin",
    "Range",
    "Referer",
    "Traceparent",
    "Transfer-Encoding",
    "User-Agent",
    "X-CSRFToken",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-HTTP-Method-Override",
    "X-Hub-Signature-256",
    "X-Request-ID",
    "X-Twilio-Email-Event-Webhook-Signature",
    "X-Twilio-Email-Event-Webhook-Timestamp",
)
ASKED = (
    "GET /api/v1/notifications",
    "POST /api/v1/notifications",
    "OPTIONS /api/v1/notifications",
    "GET /api/v1/inbox",
    "OPTIONS /api/v1/inbox",
    "GET /api/v1/nowhere",
    "GET /nowhere",
    "POST /webhooks/sendgrid",
    "POST /webhooks/whatsapp",
    "GET /healthz",
    "GET /metrics",
    "GET /admin/",
    "GET /admin/login/",
    "GET /admin/search/?s=ada",
    "POST /admin/login/",
    "POST /admin/notifications/notification/",
)
"""Requests that get a hostile header."""
FILTERS = ("q", "status", "p", "user_id")
"""A search, a choice, a number, and a field; a list without one ignores it or refuses it."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A valid request with hostile text in one place."""

    operation: str
    method: str
    path: str
    body: bytes = b""
    place: str
    payload: str
    is_inbox: bool = False


@dataclass(kw_only=True)
class Sent:
    """The answers so far: how many, and what is wrong."""

    count: int = 0
    wrong: dict[str, str] | None = None

    def note(self, name: str, answer: Any) -> None:
        self.count += 1
        fault = _fault(answer)
        if taken.commands:
            fault = f"took an operator: {taken.commands[0]}"
            taken.commands.clear()
        if fault:
            self.wrong = {**(self.wrong or {}), name: fault}


def test_hostile_text_in_any_field_of_the_api_is_only_text(
    db: None, broker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    app = new_app("app")
    known = Seeder(app=app).everything()
    cases = list(_api_cases(known))
    checked = sampled(cases, each=47)
    client, sent = Client(raise_request_exception=False), Sent()
    inbox = token(app)
    taken.commands.clear()
    for case in checked:
        answer = client.generic(
            case.method,
            case.path,
            case.body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {inbox if case.is_inbox else app.key}"},
        )
        if answer.status_code == 401:
            # A former request has revoked it.
            inbox = token(app)
        sent.note(f"{case.method} {case.operation} {case.place}: {case.payload}", answer)
        if answer.status_code >= 400 and answer.content:
            assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert sent.wrong is None
    with capsys.disabled():
        print(f"\nAPI: {sent.count} of {len(cases)} requests with hostile text")


def test_hostile_text_in_any_address_of_the_console_is_only_text(
    console: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    register_ada()
    console.raise_request_exception = False
    texts = {name: text for name, text in PAYLOADS.items() if isinstance(text, str)}
    cases = [*_console_lists(texts), *_console_paths(texts)]
    checked = sampled(cases, each=47)
    sent = Sent()
    taken.commands.clear()
    for name, url in checked:
        sent.note(name, console.get(url))
    assert sent.wrong is None
    with capsys.disabled():
        print(f"\nconsole: {sent.count} of {len(cases)} requests with hostile text")


def test_hostile_text_in_any_form_of_the_console_is_only_text(
    console: Client, broker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    console.raise_request_exception = False
    cases = [
        (form, name, payload)
        for form in every_form(console, sampled([*page_paths(), *_store_pages()], each=4))
        for name in form.values
        for payload, text in PAYLOADS.items()
        if isinstance(text, str) and payload != "surrogate"
        if payload != "Liquid" or not form.action.endswith(TEMPLATE_FORM)
    ]
    checked = sampled(cases, each=13)
    sent = Sent()
    taken.commands.clear()
    for form, name, payload in checked:
        answer = console.post(form.action, {**form.values, name: PAYLOADS[payload]}, follow=True)
        sent.note(f"{form.action} {name}: {payload}", answer)
    assert sent.wrong is None
    assert len({form.action for form, _, _ in cases}) > (50 if IS_WHOLE else 3)
    assert console.get("/admin/").status_code == 200, "the session goes on"
    with capsys.disabled():
        print(f"\nforms: {sent.count} of {len(cases)} requests with hostile text")


def test_hostile_text_in_any_header_is_only_text(
    app: App, console: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [
        (place, header, payload, text)
        for place in ASKED
        for header in HEADERS
        for payload, text in PAYLOADS.items()
        if isinstance(text, str)
    ]
    checked = sampled(cases, each=101)
    console.raise_request_exception = False
    sent = Sent()
    taken.commands.clear()
    for place, header, payload, text in checked:
        method, path = place.split()
        # A server reads the bytes of a header as Latin-1.
        hostile = text.encode("utf-8", "surrogatepass").decode("latin-1")
        client, headers = console, {header: hostile}
        if not path.startswith("/admin/"):
            client, headers = app.http, {"Authorization": f"Bearer {app.key}", **headers}
        body = json.dumps(request()).encode() if method == "POST" else b""
        answer = client.generic(
            method, path, body, content_type="application/json", headers=headers
        )
        sent.note(f"{place} {header}: {payload}", answer)
    assert sent.wrong is None
    with capsys.disabled():
        print(f"\nheaders: {sent.count} of {len(cases)} requests with hostile text")


def test_operator_from_a_request_is_found(db: None) -> None:
    taken.commands.clear()
    collection("recipients").find_one({"_id": {"$gt": MARKER}})
    collection("recipients").update_one({"a": {"$ne": MARKER}}, {"$set": {"b": 1}})
    list(collection("recipients").aggregate([{"$match": {"a": {"$gt": MARKER}}}]))
    collection("recipients").find_one({"_id": MARKER})
    assert [command.partition(":")[0] for command in taken.commands] == [
        "find",
        "update",
        "aggregate",
    ]
    taken.commands.clear()


def _fault(answer: Any) -> str:
    if answer.status_code >= 500:
        return f"{answer.status_code}"
    if "X-Injected" in answer.headers:
        return "a header of the request's"
    if answer.headers.get("X-Content-Type-Options") != "nosniff":
        return "the browser may guess the content type"
    if answer.headers.get("Content-Type", "").startswith("text/html"):
        text = answer.content.decode()
        return next((f"contains {forbidden}" for forbidden in NEVER if forbidden in text), "")
    return ""


def _api_cases(known: dict[str, str]) -> Iterator[Case]:
    operations = [api_operations()[name] for name in api_operations() if name not in NOT_ASKED]
    # Requests that delete come last, because others need the objects.
    for operation in sorted(operations, key=lambda operation: operation["method"] == "DELETE"):
        path, parameters = operation["path"], operation["parameters"]
        names = {place: [p["name"] for p in parameters if p["in"] == place] for place in PLACES}
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        value = body["examples"]["request"]["value"] if body else None
        common = {
            "operation": operation["operationId"],
            "method": operation["method"],
            "is_inbox": path.startswith("/api/v1/inbox") and "tokens" not in path,
        }
        valid = _filled(path, known)
        raw = json.dumps(value).encode() if body else b""
        for payload, hostile in PAYLOADS.items():
            text = hostile if isinstance(hostile, str) else json.dumps(hostile)
            encoded = text.encode("utf-8", "surrogatepass")
            for name in names["path"]:
                address = _filled(path, {**known, name: quote(encoded, safe="")})
                yield Case(**common, path=address, body=raw, place=name, payload=payload)
            for name in names["query"]:
                address = f"{valid}?{urlencode({name: encoded})}"
                yield Case(**common, path=address, body=raw, place=name, payload=payload)
                if isinstance(hostile, dict):
                    address = f"{valid}?{urlencode({f'{name}[$gt]': MARKER})}"
                    yield Case(**common, path=address, body=raw, place=f"{name}[$gt]", payload="")
            for place in _texts(value):
                changed = json.dumps(_replaced(value, place, hostile)).encode()
                where = "/".join(map(str, place))
                yield Case(**common, path=valid, body=changed, place=where, payload=payload)


def _filled(path: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _texts(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each text of a JSON value."""
    if isinstance(value, str):
        yield above
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from _texts(child, (*above, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, (*above, index))


def _replaced(value: Any, place: tuple[Any, ...], hostile: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = hostile
    return changed


def _store_pages() -> list[str]:
    """Store a document for every page. Return paths of further pages with forms."""
    now = utc_now()
    store_one_of_each(now=now)
    for operation in collection("operations").find({}, {"_id": 1}):
        runner.run(operation["_id"])
    at = now + timedelta(days=1)
    scheduled = factories.accepted(created_at=now, send_at=at, scheduled_at=at)
    bounced = factories.started(at=now, created_at=now)
    failure = factories.settlement(bounced, DeliveryStatus.FAILED, at=now, code=FailureCode.BOUNCED)
    leases.settle([failure], now=now)
    shown = (scheduled["_id"], bounced.notification_id)
    return [
        f"{reverse('admin:notifications_bulkoperation_new')}?list=failednotification",
        *(
            reverse("admin:notifications_notification_change", args=[notification_id])
            for notification_id in shown
        ),
    ]


def _console_lists(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    for model, page in admin.site._registry.items():
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for field in FILTERS:
            for name, text in texts.items():
                query = urlencode({field: text.encode("utf-8", "surrogatepass")})
                yield f"{type(page).__name__}?{field}: {name}", f"{url}?{query}"


def _console_paths(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in texts.items():
        if name != "surrogate":
            for address in addresses_with(text):
                yield f"{address[:80]}: {name}", address
