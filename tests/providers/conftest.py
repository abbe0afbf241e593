"""Providers to send to. Every test has connections and access tokens of its own."""

import smtplib
from collections.abc import Iterator
from typing import Any

import pytest

from providers import http_client
from providers.fcm import credentials
from sandbox.config import Config, Timings
from sandbox.server import Sandbox, run_in_thread
from tests.support.providers.fcm import Project


@pytest.fixture(autouse=True)
def _own_connections() -> Iterator[None]:
    credentials._shared.clear()
    yield
    http_client.close_idle_connections()
    credentials._shared.clear()


@pytest.fixture(scope="session")
def _sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    config = Config(data=tmp_path_factory.mktemp("sandbox"), timings=Timings(slow=0.3, drip=0.003))
    with run_in_thread(config) as sandbox:
        yield sandbox


@pytest.fixture
def project(_sandbox: Sandbox) -> Iterator[Project]:
    """Give a test a Firebase project of its own, in a sandbox that has forgotten the others."""
    project = Project(sandbox=_sandbox)
    project.control("POST", "/reset")
    yield project
    project.control("POST", "/reset")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[smtplib.SMTP]]:
    """Keep every connection a test opens to a mail server, and close what is left of them."""
    connections: list[smtplib.SMTP] = []
    make = smtplib.SMTP.__init__

    def remembering(self: smtplib.SMTP, *args: Any, **options: Any) -> None:
        connections.append(self)
        make(self, *args, **options)

    monkeypatch.setattr(smtplib.SMTP, "__init__", remembering)
    yield connections
    for connection in connections:
        connection.close()
