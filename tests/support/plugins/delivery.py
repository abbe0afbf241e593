"""Fixtures for batches, broadcasts, and alerts."""

import smtplib
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from access.models import StaffUser
from delivery import pipeline
from delivery.runtime import SendingRuntime
from monitoring import alert_rules
from notifications.broadcasts import runner
from notifyproject.db.collections import collection
from notifyproject.platform import process, valkey
from tests.support.factories.alerts import NOW, swept
from tests.support.fakes.provider import ScriptedProvider


@pytest.fixture
def fcm(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """Return a scripted provider, which is the only provider of all channels."""
    provider = ScriptedProvider(name="fcm")
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (provider,))
    return provider


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> tuple[ScriptedProvider, ScriptedProvider]:
    """Return two scripted email providers, in order of priority."""
    providers = (ScriptedProvider(name="sendgrid"), ScriptedProvider(name="smtp"))
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: providers)
    return providers


@pytest.fixture
def runtime() -> SendingRuntime:
    """Return the runtime of a process that has just started."""
    return SendingRuntime()


@pytest.fixture
def first() -> ScriptedProvider:
    return ScriptedProvider(name="first")


@pytest.fixture
def second() -> ScriptedProvider:
    return ScriptedProvider(name="second")


@pytest.fixture
def calm(broker: redis.Redis, pauses_anew: None) -> None:
    """Restore the default alert rules, and record a recent sweep, so that no rule fires."""
    collection("alert_rules").delete_many({})
    alert_rules.add_missing_rules()
    swept(NOW)


@pytest.fixture
def maria() -> StaffUser:
    return StaffUser.objects.create_user(
        "maria", "maria@example.com", "s3cret-enough", is_staff=True, is_superuser=True
    )


@pytest.fixture
def pages_of_three(backlog_anew: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use small pages for broadcasts, and measure the backlog again."""
    monkeypatch.setattr(runner, "PAGE_SIZE", 3)
    yield
    process.clear_shutdown()


@pytest.fixture
def one_at_a_time(settings: Any) -> None:
    """Send one request at a time."""
    settings.MAX_IN_FLIGHT = dict.fromkeys(("fcm", "sendgrid", "smtp"), 1)


@pytest.fixture
def own_process() -> Iterator[None]:
    """Reset the shutdown flag and the Valkey client."""
    valkey.clear()
    process.clear_shutdown()
    yield
    process.clear_shutdown()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[smtplib.SMTP]]:
    """Record a test's SMTP connections, and close them at its end."""
    connections: list[smtplib.SMTP] = []
    make = smtplib.SMTP.__init__

    def remembering(self: smtplib.SMTP, *args: Any, **options: Any) -> None:
        connections.append(self)
        make(self, *args, **options)

    monkeypatch.setattr(smtplib.SMTP, "__init__", remembering)
    yield connections
    for connection in connections:
        connection.close()
