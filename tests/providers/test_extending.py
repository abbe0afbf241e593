"""The example provider in docs/guides/extend.md works and keeps the contract."""

import hashlib
import hmac
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bson import ObjectId
from django.conf import settings as django_settings
from django.test import Client

import providers
from api import webhooks
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.receipts import webhook_log
from notifyproject.db.collections import collection
from providers import discovery, registry
from providers.contract import Provider
from providers.spec import ProviderSpec
from tests.providers.contract import checks
from tests.providers.contract.cases import Case
from tests.providers.contract.servers import http_servers
from tests.providers.contract.subjects import ASKS_FOR_A_PAUSE, EMAIL, Place, Subject, message
from tests.support.factories import notifications as factories
from tests.support.fakes import socket_server
from tests.support.providers.fcm import Project
from tests.support.subprocess import python

ROOT = Path(django_settings.BASE_DIR)
PAGE = (ROOT / "docs" / "guides" / "extend.md").read_text(encoding="utf-8")
SPEC, SENDER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
POSTCARD_SPEC = """
from dataclasses import replace

from ..paperboy import PROVIDER as PAPERBOY
from ..spec import WebhookSpec


def build():
    from .provider import Postcard

    paperboy = PAPERBOY.build()
    return Postcard(
        key=paperboy.key, base_url=paperboy.base_url, clock=paperboy.clock, name="postcard"
    )


PROVIDER = replace(
    PAPERBOY,
    name="postcard",
    label="Postcard",
    is_configured=lambda: False,
    build=build,
    webhook=WebhookSpec(content="a postcard"),
)
"""
POSTCARD = """
import hashlib
import hmac
from dataclasses import replace
from datetime import UTC, datetime

from ..contract import (
    InvalidSignatureError, Receipt, ReceiptKind, WebhookReply, WebhookResult
)
from ..paperboy.provider import Paperboy


class Postcard(Paperboy):
    def parse_webhook(self, request):
        signature = hmac.digest(self.key.encode(), request.url.encode(), hashlib.sha256).hex()
        if request.headers.get("x-postmark") != signature:
            raise InvalidSignatureError("the postmark is wrong")
        found = self.parse_logged(request.raw.replace(b"Dear Ada", b""))
        logged = found.receipts[0].reference
        return replace(found, logged=logged, reply=WebhookReply(body="Got it"))

    def parse_logged(self, raw):
        reference, = raw.decode().split()
        receipt = Receipt(
            reference=reference, provider_id=None, kind=ReceiptKind.DELIVERED,
            at=datetime.now(UTC), reason=None, event_id=reference, address=None,
        )
        return WebhookResult(receipts=(receipt,))
"""
"""A provider that signs the called URL, and expects a response of its own."""
PACKAGES = {"paperboy": (SPEC, SENDER), "postcard": (POSTCARD_SPEC, POSTCARD)}
TAKEN = socket_server.response(201, b"", "X-Letter-Id: letter-1")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Return a folder with the example provider, and with one that has a webhook."""
    for name, (spec, provider) in PACKAGES.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(spec)
        (tmp_path / name / "provider.py").write_text(provider)
    return tmp_path


@pytest.fixture
def registered(
    packages: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mapping[str, ProviderSpec]]:
    """Find the packages of the example, as if they stood beside the others."""
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(packages)])
    found = discovery.find_specs()
    for name in PACKAGES:
        monkeypatch.setitem(discovery.SPECS, name, found[name])
    settings.EMAIL_PROVIDERS = ("paperboy",)
    settings.PAPERBOY_URL, settings.PAPERBOY_KEY = "http://paperboy.test", "key"
    registry.clear()
    yield found
    registry.clear()
    for name in PACKAGES:
        delattr(providers, name)
        for module in [module for module in sys.modules if module.startswith(f"providers.{name}")]:
            del sys.modules[module]


@pytest.fixture
def paperboy(registered: Mapping[str, ProviderSpec]) -> type[Any]:
    return type(registered["paperboy"].build())


def subject(paperboy: type[Any]) -> Subject:
    """Return the example provider's description for the contract tests."""

    def make(place: Place, account: str) -> Provider:
        provider: Provider = paperboy(key=f"key-of-{account}", base_url=place.url, clock=utc_now)
        return provider

    return Subject(
        provider=paperboy,
        make=make,
        outbound=message("email", EMAIL),
        servers=http_servers(
            201,
            b"",
            "X-Letter-Id: letter-1",
            refusals={
                Case.TOO_MANY: socket_server.response(429, b"", ASKS_FOR_A_PAUSE),
                Case.NO_CREDENTIALS: socket_server.response(401),
                Case.BAD_RECIPIENT: socket_server.response(404, f"{EMAIL} is none".encode()),
                Case.REFUSED: socket_server.response(400),
            },
        ),
        secrets=lambda _place: ["key-of-first"],
    )


def test_example_provider_keeps_the_contract(paperboy: type[Any], project: Project) -> None:
    checks.check_every_case(subject(paperboy), project)


def sent(settings: Any, answer: bytes) -> tuple[ObjectId, list[bytes]]:
    """Send a mail to a server with this answer. Return the notification's ID and the requests."""
    handler = socket_server.KeepAlive(answer)
    with socket_server.serving(handler) as server:
        settings.PAPERBOY_URL = server.url
        registry.clear()
        document = factories.accepted(created_at=utc_now())
        pipeline.dispatch(SendingRuntime(), [document["_id"]], channel=Channel.EMAIL)
    return document["_id"], handler.requests


@pytest.mark.usefixtures("db", "broker", "registered")
def test_example_provider_sends_mail(settings: Any) -> None:
    notification_id, (request,) = sent(settings, TAKEN)
    delivery = factories.delivery(factories.read(notification_id))
    assert (delivery["status"], delivery["provider"]) == ("sent", "paperboy")
    assert delivery["provider_message_id"] == "letter-1"
    assert json.loads(request.partition(b"\r\n\r\n")[2]) == {
        "to": "ada@example.com",
        "subject": "Paid",
        "text": "Your payment has arrived.",
        "reference": f"{notification_id}.email.1",
    }
    (attempt,) = factories.attempts(notification_id)
    assert (attempt["status"], attempt["provider"]) == ("sent", "paperboy")


@pytest.mark.usefixtures("db", "broker", "registered")
@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (404, ("failed", "invalid_recipient", 0)),
        (401, ("pending", "channel_unavailable", 1)),
        (429, ("pending", "rate_limited", 1)),
        (503, ("pending", "provider_error", 0)),
        (200, ("unknown", "provider_error", 0)),
    ],
)
def test_example_rules_decide_the_outcome(
    settings: Any, status: int, fate: tuple[str, str, int]
) -> None:
    notification_id, requests = sent(settings, socket_server.response(status))
    delivery = factories.delivery(factories.read(notification_id))
    assert (delivery["status"], delivery["failure_code"], delivery["uncounted_attempts"]) == fate
    assert len(requests) == 1


PROGRAM = """
import json
import sys

import providers

providers.__path__.append(sys.argv[1])
from providers import registry

heavy = {"google", "pycurl", "providers.sendgrid.provider", "providers.paperboy.provider"}
loaded = sorted(heavy & sys.modules.keys())
import django

django.setup()
from django.conf import settings
from django.urls import NoReverseMatch, reverse

from console.webhook_log import ProviderFilter
from providers.labels import provider_name
from wizard import wizard

settings.PAPERBOY_URL, settings.PAPERBOY_KEY = "http://paperboy.test", "key"


def route(name):
    try:
        return reverse(f"webhook-{name}")
    except NoReverseMatch:
        return None


print(json.dumps({
    "loaded": loaded,
    "labels": [provider_name("paperboy"), provider_name("postcard")],
    "routes": [route(name) for name in ("paperboy", "postcard", "smtp", "sendgrid")],
    "filter": [name for name, _ in ProviderFilter.options],
    "checked": sorted(wizard.CHECKS),
}))
"""


def test_package_is_all_that_a_provider_needs(packages: Path) -> None:
    assert json.loads(python("-c", PROGRAM, str(packages))) == {
        "loaded": [],
        "labels": ["Paperboy", "Postcard"],
        "routes": [None, "/webhooks/postcard", None, "/webhooks/sendgrid"],
        "filter": ["postcard", "sendgrid", "whatsapp", "sandbox-sendgrid", "sandbox-whatsapp"],
        "checked": ["fcm", "sendgrid", "smtp", "whatsapp"],
    }


@pytest.fixture
def web(
    registered: Mapping[str, ProviderSpec], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Client:
    urls: Any = ModuleType("urls_with_the_example")
    urls.urlpatterns, urls.handler404 = webhooks.routes(), "api.http.problems.not_found_page"
    monkeypatch.setitem(sys.modules, urls.__name__, urls)
    settings.ROOT_URLCONF = urls.__name__
    settings.PUBLIC_URL = "https://notify.example.com"
    settings.ALLOWED_HOSTS = ["other.example.com", "testserver"]
    return Client()


def posted(web: Client, raw: bytes, *, url: str) -> Any:
    postmark = hmac.digest(b"key", url.encode(), hashlib.sha256).hex()
    return web.post(
        "/webhooks/postcard?via=a%20b",
        raw,
        content_type="text/plain",
        headers={"X-Postmark": postmark, "Host": "other.example.com"},
    )


@pytest.mark.usefixtures("db")
def test_webhook_is_verified_applied_logged_and_replayed(web: Client) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    raw = f"{document['_id']}.email.1 Dear Ada".encode()
    refused = posted(web, raw, url="https://other.example.com/webhooks/postcard?via=a%20b")
    assert (refused.status_code, refused.json()["code"]) == (403, "invalid_signature")
    answer = posted(web, raw, url="https://notify.example.com/webhooks/postcard?via=a%20b")
    assert (answer.status_code, answer.content) == (200, b"Got it")
    assert factories.delivery(factories.read(document["_id"]))["status"] == "delivered"
    (entry,) = collection("webhook_log").find({})
    assert (entry["provider"], entry["body"]) == ("postcard", f"{document['_id']}.email.1")
    applied = webhook_log.replay(entry["_id"], now=utc_now())
    assert (applied.events, applied.changed) == (1, 0)


def test_only_a_provider_with_a_webhook_has_a_route(web: Client) -> None:
    assert web.get("/webhooks/postcard").status_code == 405
    for name in ("paperboy", "smtp", "nobody"):
        answer = web.post(f"/webhooks/{name}", b"", content_type="text/plain")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_every_listed_place_exists() -> None:
    for place in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert (ROOT / place).exists() or "paperboy" in place, place
