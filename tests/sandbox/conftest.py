"""A running sandbox, and a receiver for its webhooks."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from sandbox import webhooks
from sandbox.config import Config
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import (
    QUICK,
    SEPARATE_REPORTS,
    Box,
    Receiver,
    RunSandbox,
    receiving,
)


@pytest.fixture(autouse=True)
def _one_webhook_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Post one webhook at a time, so that webhooks arrive in the order of their due times."""
    monkeypatch.setattr(webhooks, "MAX_CONCURRENT_POSTS", 1)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as state:
        yield state


@pytest.fixture
def http() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(retries=False, maxsize=40) as pool:
        yield pool


@pytest.fixture
def data(tmp_path: Path, google_account_file: Path) -> Path:
    folder = tmp_path / "sandbox"
    folder.mkdir(mode=0o700)
    shutil.copy(google_account_file, folder)
    return folder


@pytest.fixture
def run(data: Path, http: urllib3.PoolManager) -> RunSandbox:
    @contextmanager
    def run(**options: Any) -> Iterator[Box]:
        with run_in_thread(Config(**{"data": data, "timings": QUICK, **options})) as sandbox:
            yield Box(sandbox=sandbox, http=http)

    return run


@pytest.fixture
def box(run: RunSandbox, receiver: Receiver) -> Iterator[Box]:
    with run(webhook_url=receiver.url) as box:
        yield box


@pytest.fixture(scope="module")
def shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """Start one sandbox for all tests of a file; use ``shared_box``, which resets it."""
    config = Config(data=tmp_path_factory.mktemp("sandbox"), timings=QUICK)
    with run_in_thread(config) as sandbox, urllib3.PoolManager(retries=False) as http:
        yield Box(sandbox=sandbox, http=http)


@pytest.fixture
def shared_box(shared_sandbox: Box) -> Box:
    """Return the sandbox of the test's file after a reset."""
    shared_sandbox.control("POST", "/reset")
    return shared_sandbox


@pytest.fixture
def meta_receiver() -> Iterator[Receiver]:
    with receiving() as state:
        yield state


@pytest.fixture
def chat_box(run: RunSandbox, meta_receiver: Receiver) -> Iterator[Box]:
    """Run a sandbox that sends WhatsApp webhooks."""
    with run(whatsapp_webhook_url=meta_receiver.url, timings=SEPARATE_REPORTS) as box:
        yield box
