"""Real worker processes to kill, on the test's database and broker."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notifyproject.settings.environment import BASE_DIR
from notifyproject.supervision.forking import die_with_parent
from providers import registry
from sandbox.assembly import Sandbox
from sandbox.config import Config, Timings
from sandbox.log import REQUESTS_FILE
from sandbox.server import run_in_thread
from tests.support import live_requests
from tests.support.providers import fcm_schema
from tests.support.subprocess import environment
from tests.support.waiting import until

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(autouse=True)
def _every_push_is_looked_at(tmp_path: Path) -> Iterator[None]:
    """Check the pushes of other processes, from the sandbox's log, against FCM's schema."""
    yield
    for requests in tmp_path.rglob(REQUESTS_FILE):
        fcm_schema.look_into(requests)


@pytest.fixture
def provider(
    live_server: Any, settings: Any, tmp_path: Path, google_account_file: Path
) -> Iterator[Sandbox]:
    """Run a sandbox with slow receipts."""
    shutil.copy(google_account_file, tmp_path)
    timings = Timings(processed=0.2, delivered=0.5, late=5.0, batch_window=0.1)
    config = Config(
        data=tmp_path, webhook_url=f"{live_server.url}/webhooks/sendgrid", timings=timings
    )
    with live_requests.answered(), run_in_thread(config) as sandbox:
        settings.SENDGRID_URL = sandbox.url
        settings.SENDGRID_WEBHOOK_PUBLIC_KEY = sandbox.public_key
        yield sandbox
        # Webhooks that the sandbox still posts are refused.
        settings.SENDGRID_WEBHOOK_PUBLIC_KEY = ""
        registry.clear()


@pytest.fixture
def taker(settings: Any, tmp_path: Path, google_account_file: Path) -> Iterator[Sandbox]:
    """Run a sandbox that accepts everything and sends no webhooks."""
    shutil.copy(google_account_file, tmp_path)
    with run_in_thread(Config(data=tmp_path)) as sandbox:
        settings.SENDGRID_URL = sandbox.url
        yield sandbox


@pytest.fixture
def start_worker(db: None, broker: Any, provider: Sandbox) -> Iterator[Start]:
    workers: list[subprocess.Popen[bytes]] = []

    def start(**changes: str) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "celery",
                "-q",
                "-A",
                "notifyproject",
                "worker",
                "--loglevel",
                "WARNING",
                "-n",
                f"w{len(workers)}-{os.getpid()}@%h",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
            ],
            cwd=BASE_DIR,
            env={**os.environ, **environment(), "SENDGRID_URL": provider.url, **changes},
            preexec_fn=die_with_parent,
        )
        workers.append(worker)
        _wait_until_ready(worker)
        return worker

    yield start
    for worker in workers:
        worker.kill()
        worker.wait()


def _wait_until_ready(worker: subprocess.Popen[bytes]) -> None:
    from notifyproject.celery import app

    def answers_or_ended() -> bool:
        return bool(app.control.ping(timeout=0.3)) or worker.poll() is not None

    until(answers_or_ended, otherwise="the worker does not answer")
    assert worker.poll() is None, "the worker stopped at once"
