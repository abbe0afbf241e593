"""The example provider in docs/guides/extend.md works and keeps the contract."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bson import ObjectId
from django.conf import settings as django_settings

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from providers import registry
from providers.contract import Provider
from tests.providers.contract import checks
from tests.providers.contract.cases import Case
from tests.providers.contract.servers import http_servers
from tests.providers.contract.subjects import ASKS_FOR_A_PAUSE, EMAIL, Place, Subject, message
from tests.support.factories import notifications as factories
from tests.support.fakes import socket_server
from tests.support.providers.fcm import Project

ROOT = Path(django_settings.BASE_DIR)
PAGE = (ROOT / "docs" / "guides" / "extend.md").read_text(encoding="utf-8")
MODULE, MAKER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NAME = "providers.paperboy"
TAKEN = socket_server.response(201, b"", "X-Letter-Id: letter-1")


@pytest.fixture
def paperboy(monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    module = ModuleType(NAME)
    module.__package__ = NAME.rpartition(".")[0]
    monkeypatch.setitem(sys.modules, NAME, module)
    exec(compile(MODULE, NAME, "exec"), module.__dict__)
    found: type[Any] = module.__dict__["Paperboy"]
    return found


@pytest.fixture
def registered(paperboy: type[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the example provider as the page says."""
    own = {**vars(registry), "Paperboy": paperboy}
    exec(compile(MAKER, "registry", "exec"), own)
    monkeypatch.setattr(registry, "_factories", lambda _channel, test: [own["paperboy"]])
    registry.clear()
    yield
    registry.clear()


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
        settings.PAPERBOY_URL, settings.PAPERBOY_KEY = server.url, "key"
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


def test_every_listed_place_exists() -> None:
    for place in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert (ROOT / place).exists() or place == "providers/paperboy.py", place
