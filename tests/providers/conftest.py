"""Separate connections and access tokens per test."""

from collections.abc import Iterator

import pytest

from notifyproject.platform import event_loop
from providers import http_client
from providers.fcm import credentials
from sandbox.assembly import Sandbox
from sandbox.config import Config, Timings
from sandbox.server import run_in_thread
from tests.support.providers.fcm import Project


@pytest.fixture(autouse=True)
def _own_connections() -> Iterator[None]:
    credentials._shared.clear()
    yield
    event_loop.run(http_client.close_idle_connections())
    credentials._shared.clear()


@pytest.fixture(scope="session")
def _sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    config = Config(data=tmp_path_factory.mktemp("sandbox"), timings=Timings(slow=0.3, drip=0.003))
    with run_in_thread(config) as sandbox:
        yield sandbox


@pytest.fixture
def project(_sandbox: Sandbox) -> Iterator[Project]:
    project = Project(sandbox=_sandbox)
    project.control("POST", "/reset")
    yield project
    project.control("POST", "/reset")
