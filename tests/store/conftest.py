"""Fixtures for tests of batches: who the providers are, and how many threads send."""

from collections.abc import Iterator
from typing import Any

import pytest

from notifications import dispatch, sending
from tests.scripted import Scripted


@pytest.fixture
def fcm(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Give a test the only provider there is."""
    provider = Scripted(name="fcm")
    monkeypatch.setattr(dispatch, "providers_for", lambda _channel, **_: (provider,))
    return provider


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> tuple[Scripted, Scripted]:
    """Give a test two providers, the first to be used first."""
    providers = (Scripted(name="sendgrid"), Scripted(name="smtp"))
    monkeypatch.setattr(dispatch, "providers_for", lambda _channel, **_: providers)
    return providers


@pytest.fixture
def first() -> Scripted:
    """Give a test a provider to be used first."""
    return Scripted(name="first")


@pytest.fixture
def second() -> Scripted:
    """Give a test a provider to be used if the first takes nothing."""
    return Scripted(name="second")


@pytest.fixture
def one_thread(settings: Any) -> Iterator[None]:
    """Have everything sent one after the other."""
    settings.WORKER_THREADS = 1
    sending._senders.cache_clear()
    yield
    sending._senders.cache_clear()
