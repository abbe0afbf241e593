"""The whole way in one process: API, a Celery worker's threads, the sandbox, webhooks back."""

import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import urllib3
from celery.contrib.testing.worker import start_worker
from celery.worker import state as worker_state

from notifications import retry, sending
from notifications.states import Priority
from notifyproject.celery import app as celery_app
from sandbox.config import Config, Timings
from sandbox.server import Sandbox, running
from tests.api.conftest import App, new_app

QUICK = Timings(processed=0.01, delivered=0.05, late=0.6, slow=0.3, gather=0.02, retry=0.1)
PATIENCE = 10.0


@pytest.fixture
def app(db: None, broker: Any) -> App:
    """Give a test an app with every scope."""
    return new_app("app")


@pytest.fixture
def provider(
    live_server: Any, settings: Any, tmp_path: Path, google_account_file: Path
) -> Iterator[Sandbox]:
    """Give a test a provider that reports back to this service."""
    shutil.copy(google_account_file, tmp_path)
    config = Config(
        data=tmp_path,
        webhook_url=f"{live_server.url}/webhooks/sendgrid",
        whatsapp_webhook_url=f"{live_server.url}/webhooks/whatsapp",
        timings=QUICK,
    )
    with running(config) as sandbox:
        settings.SENDGRID_URL = settings.FCM_URL = settings.WHATSAPP_URL = sandbox.url
        settings.SENDGRID_WEBHOOK_PUBLIC_KEY = sandbox.public_key
        settings.FCM_CREDENTIALS = str(sandbox.service_account)
        settings.WHATSAPP_TOKEN = sandbox.whatsapp.access_token
        settings.WHATSAPP_PHONE_NUMBER_ID = sandbox.whatsapp.phone_number_id
        settings.WHATSAPP_APP_SECRET = sandbox.whatsapp.app_secret
        settings.WHATSAPP_VERIFY_TOKEN = sandbox.whatsapp.verify_token
        yield sandbox


@pytest.fixture
def worker(app: App, provider: Sandbox, broker: redis.Redis) -> Iterator[None]:
    """Give a test a worker that takes hints."""
    with start_worker(
        celery_app,
        pool="threads",
        concurrency=8,
        perform_ping_check=False,
        shutdown_timeout=20,
    ):
        yield
        worker_state.should_terminate = 0
        _wake(broker)


def _wake(broker: redis.Redis) -> None:
    """End the wait for a message, a second long, for a worker to see that it is to stop."""
    database = str(broker.get_connection_kwargs()["db"])
    for client in broker.client_list():
        if (client["cmd"], client["db"]) == ("brpop", database):
            broker.client_unblock(int(client["id"]))


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten every wait, in the same proportions."""
    for priority in Priority:
        monkeypatch.setitem(retry.BASE_DELAY, priority, timedelta(milliseconds=100))
        monkeypatch.setitem(retry.UNKNOWN_WAIT, priority, timedelta(milliseconds=300))
    monkeypatch.setattr(sending, "TOTAL_TIMEOUT", 0.4)


@pytest.fixture
def script(provider: Sandbox) -> Callable[..., None]:
    """Give a test a way to tell the provider what to do with an address."""
    http = urllib3.PoolManager()

    def tell(address: str, outcome: str | None, *, times: int | None = None) -> None:
        url = f"{provider.url}/_sandbox/behaviours/{address}"
        if outcome is None:
            answer = http.request("DELETE", url)
        else:
            answer = http.request("PUT", url, json={"outcome": outcome, "times": times})
        assert answer.status < 300, answer.data

    return tell


@pytest.fixture
def received(provider: Sandbox) -> Callable[[str], list[dict[str, Any]]]:
    """Give a test what the provider got for an address, the first request first."""
    http = urllib3.PoolManager()

    def requests(address: str) -> list[dict[str, Any]]:
        url = f"{provider.url}/_sandbox/requests"
        found = http.request("GET", url, fields={"recipient": address, "limit": "100"}).json()
        return found["results"][::-1]

    return requests


def wait_for(condition: Callable[[], Any], *, seconds: float = PATIENCE) -> Any:
    """Wait until a condition holds and return what it returned."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value


def when(app: App, answer: Any, *statuses: str, seconds: float = PATIENCE) -> dict[str, Any]:
    """Wait until a notification has one of these statuses and return it."""

    def current() -> dict[str, Any] | None:
        notification = app.get(f"/notifications/{answer.json()['id']}").json()
        return notification if notification["status"] in statuses else None

    return wait_for(current, seconds=seconds)
