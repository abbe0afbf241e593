"""An acknowledged change applies to the next request in any process and to the next batch.

``ALTERNATIONS`` is how often each change is made: 1,000 before a release.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import urllib3

from access.clients import registry
from delivery import provider_pauses
from domain.channels import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection
from notifyproject.settings.environment import BASE_DIR
from notifyproject.supervision.forking import die_with_parent
from sandbox.config import Config
from sandbox.server import run_in_thread
from tests.end_to_end.service_process import HOST
from tests.support.clients.api import App, new_app, request
from tests.support.mongo.written_collections import written
from tests.support.subprocess import environment

TIMES = int(os.environ.get("ALTERNATIONS", "4"))
SWITCHED = {"name": "Switched", "category": "transactional", "channels": ["email"]}
NOBODY_LISTENS = "redis://127.0.0.1:1/0"


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process of the service, and the client that calls it."""

    url: str
    key: str

    def call(self, method: str, path: str, body: Any = None, *, key: str = "") -> tuple[int, Any]:
        answer = HTTP.request(
            method,
            f"{self.url}/api/v1{path}",
            json=body,
            headers={"Authorization": f"Bearer {key or self.key}"},
        )
        return answer.status, answer.json() if answer.data else None

    def notify(self, **fields: Any) -> tuple[int, Any]:
        return self.call("POST", "/notifications", request(**fields))

    def send_batch(self) -> None:
        answer = HTTP.request("POST", f"{self.url}/batch")
        assert answer.status == 200, answer.data


HTTP = urllib3.PoolManager(timeout=60.0, retries=False)


@dataclass(frozen=True, kw_only=True)
class Service:
    """Two web processes and a worker."""

    app: App
    webs: tuple[Process, Process]
    worker: Process

    def alternate(self) -> Iterator[tuple[int, Process, Process]]:
        """Yield a number, the process that makes the change, and the process that must see it.

        Both have just accepted a notification, which fills their caches.
        """
        for number in range(TIMES):
            for web in self.webs:
                assert web.notify(recipient={"email": "warm@example.com"})[0] == 202
            first, second = self.webs if number % 2 else self.webs[::-1]
            yield number, first, second


@pytest.fixture(scope="module", params=["valkey", "valkey_unavailable"])
def processes(
    request: pytest.FixtureRequest, _database: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """Start three processes, with and without Valkey. Return their URLs."""
    data = tmp_path_factory.mktemp("sandbox")
    variables = {**os.environ, **environment()}
    if request.param == "valkey_unavailable":
        variables["REDIS_URL"] = NOBODY_LISTENS
    with ExitStack() as stack:
        sandbox = stack.enter_context(run_in_thread(Config(data=data)))
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.end_to_end.service_process", "3"],
            cwd=BASE_DIR,
            env={**variables, "SENDGRID_URL": sandbox.url},
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        stack.callback(program.communicate)
        stack.callback(program.kill)
        assert program.stdout is not None
        ports = [int(program.stdout.readline()) for _ in range(3)]
        yield [f"http://{HOST}:{port}" for port in ports]


@pytest.fixture
def service(processes: list[str], db: None, broker: Any) -> Service:
    written.by_others = True
    app = new_app("app")
    first, two, worker = (Process(url=url, key=app.key) for url in processes)
    return Service(app=app, webs=(first, two), worker=worker)


def delivery(notification_id: str) -> dict[str, Any]:
    (found,) = collection("notifications").find({"external_id": notification_id}, {"delivery": 1})
    (first,) = (d for d in found["delivery"] if d["channel"] == Channel.EMAIL)
    return dict(first)


def status_after_batch(service: Service, number: int) -> str:
    """Return the status of a new notification after the worker's next batch."""
    accepted, body = service.webs[number % 2].notify(external_id=f"n{number}")
    assert accepted == 202, body
    service.worker.send_batch()
    return str(delivery(f"n{number}")["status"])


def test_type_change_applies_to_the_next_request(service: Service) -> None:
    for number, first, second in service.alternate():
        path = f"/types/switched_{number // 2}"
        is_on = number % 2 == 0
        assert first.call("PUT", path, SWITCHED | {"is_active": is_on})[0] in (200, 201)
        fields = {"content": {"subject": "S", "body": "B"}, "external_id": f"n{number}"}
        status, answer = second.notify(type=path.rpartition("/")[2], **fields)
        assert status == (202 if is_on else 422), (number, answer)


def test_type_change_applies_to_the_next_batch(service: Service) -> None:
    path, ada = "/types/loud", "/recipients/ada"
    critical, normal = ({**SWITCHED, "priority": name} for name in ("critical", "normal"))
    setup = service.webs[0]
    assert setup.call("PUT", path, normal)[0] == 201
    assert setup.call("PUT", ada, {"email": "ada@example.com"})[0] in (200, 201)
    muted = {"preferences": {"loud": {"muted": True}}}
    assert setup.call("PUT", f"{ada}/preferences", muted)[0] == 200
    fields = {"type": "loud", "user_id": "ada", "content": {"subject": "S", "body": "B"}}
    for number, first, second in service.alternate():
        is_critical = number % 2 == 0
        assert first.call("PUT", path, critical)[0] == 200
        assert second.notify(**fields, external_id=f"n{number}")[0] == 202
        assert second.call("PUT", path, critical if is_critical else normal)[0] == 200
        service.worker.send_batch()
        # Nobody mutes what is critical.
        expected = "sent" if is_critical else "suppressed"
        assert delivery(f"n{number}")["status"] == expected, number


def test_published_template_is_used_next(service: Service) -> None:
    path = "/types/payment_confirmed/templates"
    for number, first, second in service.alternate():
        parts = {"default": {"subject": f"Paid {number}", "body": "Paid."}}
        status, version = first.call("POST", path, {"parts": parts})
        assert status == 201, version
        assert first.call("POST", f"{path}/versions/{version['number']}/publish")[0] == 200
        status, answer = second.notify(external_id=f"n{number}")
        assert status == 202
        assert answer["content"]["template_version"] == version["number"], number
        service.worker.send_batch()
        assert delivery(f"n{number}")["status"] == "sent", number


def test_revoked_key_is_refused(service: Service) -> None:
    other = new_app("other")
    for number, first, second in service.alternate():
        key = registry.issue_key(client_id=other.id, now=utc_now())
        for web in (first, second):
            assert web.call("GET", "/notifications", key=key.text)[0] == 200, number
        assert registry.revoke_key(prefix=key.prefix, now=utc_now())
        for web in (second, first):
            assert web.call("GET", "/notifications", key=key.text)[0] == 401, number


def test_pause_and_resume_apply_to_the_next_batch(service: Service) -> None:
    for number, _, _ in service.alternate():
        is_paused = number % 2 == 0
        if is_paused:
            assert provider_pauses.pause("sendgrid", by="maria", reason="A bill.", now=utc_now())
        else:
            assert provider_pauses.resume("sendgrid", by="maria")
        assert status_after_batch(service, number) == ("pending" if is_paused else "sent"), number


def test_suppression_applies_to_the_next_request_and_batch(service: Service) -> None:
    path = "/suppressions/email/ada@example.com"
    for number, first, second in service.alternate():
        assert second.notify(external_id=f"n{number}")[0] == 202
        assert first.call("PUT", path, {})[0] == 200
        assert second.call("GET", path)[1]["results"], number
        service.worker.send_batch()
        assert delivery(f"n{number}")["status"] == "suppressed", number
        assert first.call("DELETE", f"{path}?reason=manual")[0] in (200, 204)
        assert not second.call("GET", path)[1]["results"], number
        assert status_after_batch(service, TIMES + number) == "sent", number


def test_callback_change_applies_to_the_next_notification(service: Service) -> None:
    hook = {"url": "https://shop.example.com/hooks", "events": ["delivery.failed"]}
    for number, first, second in service.alternate():
        is_subscribed = number % 2 == 0
        if is_subscribed:
            assert first.call("PUT", "/callbacks", hook)[0] == 200
        else:
            assert first.call("DELETE", "/callbacks")[0] == 204
        assert second.notify(external_id=f"n{number}")[0] == 202
        (found,) = collection("notifications").find({"external_id": f"n{number}"})
        assert (found.get("callback_revision") is not None) is is_subscribed, number


def test_retention_policy_applies_to_the_next_notification(service: Service) -> None:
    from django.contrib.auth import get_user_model
    from django.test import Client

    staff = get_user_model().objects.create_superuser("root", password="root-password-1")
    console = Client()
    console.force_login(staff)
    for number, _, second in service.alternate():
        days = 20 + number % 50
        answer = console.post(
            "/admin/notifications/retentionpolicy/transactional/change/",
            {"content_days": "10", "metadata_days": str(days)},
        )
        assert answer.status_code == 302
        assert second.notify(external_id=f"n{number}")[0] == 202
        (found,) = collection("notifications").find({"external_id": f"n{number}"})
        assert round((found["purge_at"] - found["created_at"]).total_seconds() / 86_400) == days
