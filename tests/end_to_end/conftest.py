"""API, Celery worker threads, the sandbox, and webhooks in one process."""

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import urllib3
from celery.contrib.testing.worker import start_worker
from celery.worker import state as worker_state

from domain import retry
from domain.states import Priority
from notifyproject.celery import app as celery_app
from providers import registry
from providers.contract import SendRequest
from providers.fcm.provider import FCM
from providers.sendgrid.provider import SendGrid
from providers.twilio.provider import Twilio
from providers.whatsapp.provider import WhatsApp
from sandbox.assembly import Sandbox
from sandbox.config import Config, Timings
from sandbox.server import run_in_thread
from tests.support import live_requests
from tests.support.clients.api import App
from tests.support.mongo import stored_types
from tests.support.mongo.written_collections import written
from tests.support.providers.webhooks import Webhook
from tests.support.waiting import LIMIT

QUICK = Timings(processed=0.01, delivered=0.05, slow=0.3, batch_window=0.02, retry_delay=0.1)
SILENT = re.compile(r"timeout|.*0[48]08$")
"""Recipients whose messages the sandbox never answers."""
SHORT = 2.0
"""Time limit for these messages, instead of 15 s."""


@pytest.fixture(autouse=True)
def _documents_have_their_types(db: None) -> Iterator[None]:
    yield
    assert (
        stored_types.mismatches(stored_types.handles() if written.by_others else written.names)
        == set()
    )


@pytest.fixture
def provider(
    live_server: Any, settings: Any, tmp_path: Path, google_account_file: Path
) -> Iterator[Sandbox]:
    """Run a sandbox that sends its webhooks to this service."""
    shutil.copy(google_account_file, tmp_path)
    config = Config(
        data=tmp_path,
        webhook_url=f"{live_server.url}/webhooks/sendgrid",
        whatsapp_webhook_url=f"{live_server.url}/webhooks/whatsapp",
        twilio_webhook_url=f"{live_server.url}/webhooks/twilio",
        timings=QUICK,
    )
    with live_requests.answered(), run_in_thread(config) as sandbox:
        settings.SENDGRID_URL = settings.FCM_URL = settings.WHATSAPP_URL = sandbox.url
        settings.SENDGRID_WEBHOOK_PUBLIC_KEY = sandbox.public_key
        settings.FCM_CREDENTIALS = str(sandbox.service_account)
        settings.WHATSAPP_TOKEN = sandbox.whatsapp.access_token
        settings.WHATSAPP_PHONE_NUMBER_ID = sandbox.whatsapp.phone_number_id
        settings.WHATSAPP_BUSINESS_ACCOUNT_ID = sandbox.whatsapp.business_account_id
        settings.WHATSAPP_APP_SECRET = sandbox.whatsapp.app_secret
        settings.WHATSAPP_VERIFY_TOKEN = sandbox.whatsapp.verify_token
        settings.PUBLIC_URL, settings.TWILIO_URL = live_server.url, sandbox.url
        settings.TWILIO_ACCOUNT_SID = sandbox.twilio.account_sid
        settings.TWILIO_AUTH_TOKEN = sandbox.twilio.auth_token
        settings.TWILIO_MESSAGING_SERVICE_SID = sandbox.twilio.messaging_service_sid
        yield sandbox
        # Webhooks that the sandbox still posts are refused.
        settings.SENDGRID_WEBHOOK_PUBLIC_KEY = settings.WHATSAPP_APP_SECRET = ""
        settings.TWILIO_AUTH_TOKEN = ""
        registry.clear()


@pytest.fixture
def worker(app: App, provider: Sandbox, broker: redis.Redis) -> Iterator[None]:
    with start_worker(
        celery_app, pool="threads", concurrency=8, perform_ping_check=False, shutdown_timeout=LIMIT
    ):
        yield
        worker_state.should_terminate = 0
        _interrupt_read(broker)


def _interrupt_read(broker: redis.Redis) -> None:
    """Interrupt the worker's blocking read of up to a second, so that the worker stops at once."""
    database = str(broker.get_connection_kwargs()["db"])
    for client in broker.client_list():
        if (client["cmd"], client["db"]) == ("brpop", database):
            broker.client_unblock(int(client["id"]))


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for priority in Priority:
        monkeypatch.setitem(retry.BASE_DELAY, priority, timedelta(milliseconds=100))
        monkeypatch.setitem(retry.UNKNOWN_WAIT, priority, timedelta(milliseconds=300))


@pytest.fixture
def quick_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time limit for messages to recipients that match SILENT."""
    for provider in (SendGrid, FCM, WhatsApp, Twilio):
        send: Any = provider.send

        def hurried(self: Any, outbound: SendRequest, *, timeout: float, send: Any = send) -> Any:
            is_silent = SILENT.match(outbound.recipient)
            return send(self, outbound, timeout=SHORT if is_silent else timeout)

        monkeypatch.setattr(provider, "send", hurried)


@pytest.fixture
def post(live_server: Any) -> Callable[[Webhook], None]:
    """Return a function that posts a webhook, which must be accepted."""
    http = urllib3.PoolManager(retries=False)

    def send(webhook: Webhook) -> None:
        url = f"{live_server.url}{webhook.path}"
        answer = http.request("POST", url, body=webhook.body, headers=dict(webhook.headers))
        assert answer.status == 200, answer.data

    return send


@pytest.fixture
def script(provider: Sandbox) -> Callable[..., None]:
    http = urllib3.PoolManager()

    def set_outcome(address: str, outcome: str | None, *, times: int | None = None) -> None:
        url = f"{provider.url}/_sandbox/behaviours/{address}"
        if outcome is None:
            answer = http.request("DELETE", url)
        else:
            answer = http.request("PUT", url, json={"outcome": outcome, "times": times})
        assert answer.status < 300, answer.data

    return set_outcome


@pytest.fixture
def received(provider: Sandbox) -> Callable[[str], list[dict[str, Any]]]:
    http = urllib3.PoolManager()

    def requests(address: str) -> list[dict[str, Any]]:
        url = f"{provider.url}/_sandbox/requests"
        found = http.request("GET", url, fields={"recipient": address, "limit": "100"}).json()
        return found["results"][::-1]

    return requests
