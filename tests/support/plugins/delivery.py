"""Fixtures of batches, broadcasts and alerts: who the providers are, and what went before."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from access.models import StaffUser
from delivery import dispatcher, sending
from monitoring import alert_rules
from notifications.broadcasts import runner
from notifyproject.db.collections import collection
from notifyproject.platform import process, valkey
from tests.support.factories.alerts import NOW, swept
from tests.support.fakes.provider import ScriptedProvider


@pytest.fixture
def fcm(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """Give a test the only provider there is."""
    provider = ScriptedProvider(name="fcm")
    monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: (provider,))
    return provider


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> tuple[ScriptedProvider, ScriptedProvider]:
    """Give a test two providers, the first to be used first."""
    providers = (ScriptedProvider(name="sendgrid"), ScriptedProvider(name="smtp"))
    monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: providers)
    return providers


@pytest.fixture
def first() -> ScriptedProvider:
    """Give a test a provider to be used first."""
    return ScriptedProvider(name="first")


@pytest.fixture
def second() -> ScriptedProvider:
    """Give a test a provider to be used if the first takes nothing."""
    return ScriptedProvider(name="second")


@pytest.fixture
def calm(broker: redis.Redis, pauses_anew: None) -> None:
    """Give a test of alerts the shipped rules, a sweep a moment ago, and nothing remembered."""
    collection("alert_rules").delete_many({})
    alert_rules.add_missing_rules()
    swept(NOW)


@pytest.fixture
def maria() -> StaffUser:
    """Give an operator."""
    return StaffUser.objects.create_user(
        "maria", "maria@example.com", "s3cret-enough", is_staff=True, is_superuser=True
    )


@pytest.fixture
def pages_of_three(backlog_anew: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make every page of a broadcast a small one, and measure what waits anew."""
    monkeypatch.setattr(runner, "PAGE_SIZE", 3)
    yield
    process.clear_shutdown()


@pytest.fixture
def one_thread(settings: Any) -> Iterator[None]:
    """Have everything sent one after the other."""
    settings.WORKER_THREADS = 1
    sending._thread_pool.cache_clear()
    yield
    sending._thread_pool.cache_clear()


@pytest.fixture
def own_process() -> Iterator[None]:
    """Give a test a process that has not been asked to stop and remembers nothing of Valkey."""
    valkey.clear()
    process.clear_shutdown()
    yield
    process.clear_shutdown()
