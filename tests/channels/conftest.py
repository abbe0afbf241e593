"""Providers to send to. Every test has connections and access tokens of its own."""

from collections.abc import Iterator

import pytest

from notifications.channels import fcm_tokens, transfers
from sandbox.config import Config, Timings
from sandbox.server import Sandbox, running

from .fcm_project import Project


@pytest.fixture(autouse=True)
def _own_connections() -> Iterator[None]:
    fcm_tokens._shared.clear()
    yield
    transfers.close_all()
    fcm_tokens._shared.clear()


@pytest.fixture(scope="session")
def _sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    config = Config(data=tmp_path_factory.mktemp("sandbox"), timings=Timings(slow=0.3, drip=0.003))
    with running(config) as sandbox:
        yield sandbox


@pytest.fixture
def project(_sandbox: Sandbox) -> Iterator[Project]:
    """Give a test a Firebase project of its own, in a sandbox that has forgotten the others."""
    project = Project(sandbox=_sandbox)
    project.control("POST", "/reset")
    yield project
    project.control("POST", "/reset")
