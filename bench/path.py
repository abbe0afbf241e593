"""The files of the service that one notification passes through, in order.

Four flows run in this process: a POST to its stored document, a due email to its recorded attempt,
a provider's webhook to its delivery, and the failed list to a resend. Each runs twice with
different notifications, and the second run is traced, as templates and types are then cached.
"""

import ast
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from domain.errors import FailureCode
from domain.states import Channel
from domain.states import DeliveryStatus as Status
from domain.time import utc_now
from notifyproject.db.collections import collection
from notifyproject.settings.environment import BASE_DIR

from . import mail, notification_histories
from .environment import Bench
from .figures import Figure, at_most

PACKAGES = (
    *("access", "api", "tasks", "callbacks", "console", "delivery", "devices"),
    *("domain", "monitoring", "notifications", "notifyproject", "privacy", "providers"),
    "recipients",
)
MIN_STATEMENTS = 3
"""Files whose functions all execute fewer statements do not count: helpers and guards."""
VOCABULARY = (
    *("domain/", "notifyproject/", "providers/contract.py", "providers/http.py"),
    *("notifications/models/", "notifications/store/documents.py"),
)
"""Values, states, and infrastructure, which do not count."""
Run = Callable[[int], None]
"""A function that runs a flow; its argument is 0 in the first run, 1 in the traced run."""


@dataclass(frozen=True)
class Flow:
    """A flow through the service, and the maximum number of its files."""

    name: str
    run: Run
    heading: str
    """The section of docs/architecture.md that names the flow's main files."""
    max_files: int


@dataclass(slots=True)
class Trace:
    """The executed lines, by file and function, in the order of the first call."""

    entered: dict[str, dict[CodeType, set[int]]] = field(default_factory=dict)

    def call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        """Record a call and its lines; a trace function for ``sys.settrace``."""
        code = frame.f_code
        file = _relative(code.co_filename)
        if file is None or code.co_name == "<module>":
            return None
        lines = self.entered.setdefault(file, {}).setdefault(code, set())

        def line(frame: FrameType, event: str, _argument: object) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return line

        return line

    def counted_files(self) -> list[str]:
        """Return the files that count: those outside VOCABULARY with MIN_STATEMENTS executed."""
        return [
            file
            for file, functions in self.entered.items()
            if not file.startswith(VOCABULARY)
            and max(len(run & _statements(file)) for run in functions.values()) >= MIN_STATEMENTS
        ]


def measure_paths(bench: Bench, *, log_progress: Callable[[str], None]) -> Iterator[Figure]:
    """Run each flow, log its files, and yield a figure with their number."""
    for number, flow in enumerate(_flows(bench), start=1):
        flow.run(0)
        with _traced() as trace:
            flow.run(1)
        counted = trace.counted_files()
        spine_files = _spine_files(flow.heading)
        log_progress(f"{flow.name}: {len(counted)} files, {len(trace.entered)} with vocabulary")
        for file in trace.entered:
            mark = "*" if file in spine_files else " " if file in counted else "-"
            log_progress(f"  {mark} {file}")
        yield Figure(
            key=f"path {number}",
            label=f"files entered: {flow.name}",
            unit="",
            ours=len(counted),
            goals=(at_most(flow.max_files),),
            note="* the spine that docs/architecture.md names; - vocabulary and one-line helpers",
        )
    _check_statuses()


def _flows(bench: Bench) -> Iterator[Flow]:
    from django.conf import settings

    from notifyproject.platform import process

    process.preload()
    settings.ALLOWED_HOSTS = ["*"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    out, receipt, resend = "One email, out", "A receipt, back in", "A resend, from the console"
    yield Flow("POST to stored document", _post(), out, 25)
    yield Flow("due email to recorded attempt", _send(), out, 25)
    yield Flow("webhook to delivery", _receipt(bench, now=utc_now()), receipt, 12)
    yield Flow("failed list, confirmed, to resend", _resend(now=utc_now()), resend, 18)


def _post() -> Run:
    from django.test import Client

    from access.clients import registry
    from access.models import Scope

    client_id = registry.create_client(name="path", scopes=list(Scope), now=utc_now())
    key = registry.issue_key(client_id=client_id, now=utc_now()).text
    client = Client()

    def run(number: int) -> None:
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"path-{number}"}
        body, kind = json.dumps(mail.request_body(number)), "application/json"
        answer = client.post("/api/v1/notifications", body, content_type=kind, headers=headers)
        _expect(answer, 202)

    return run


def _send() -> Run:
    from tasks import tasks

    ids = [str(one["_id"]) for one in collection("notifications").find().sort("_id")]
    return lambda number: tasks.handle_wakeup.run([ids[number]], "email", "normal")


def _receipt(bench: Bench, *, now: datetime) -> Run:
    from django.conf import settings
    from django.test import Client

    from providers import registry
    from sandbox import credentials
    from sandbox.providers.sendgrid import events

    sent = collection("delivery_attempts").find({"status": "sent"}).sort("_id")
    attempts = [attempt["provider_message_id"] for attempt in sent]
    private_key = credentials.load_webhook_key(bench.folder)
    settings.SENDGRID_WEBHOOK_PUBLIC_KEY = credentials.public_key_text(private_key)
    registry.clear()
    webhooks = events.SignedWebhooks(private_key=private_key)
    client = Client()

    def run(number: int) -> None:
        event = events.payload(
            "delivered", address=mail.address(number), message_id=attempts[number], args={}
        )
        webhooks.stamp(event, now=now)
        body = webhooks.encode([event])
        headers = webhooks.headers(body, now=now)
        content_type = headers.pop("Content-Type")
        answer = client.post("/webhooks/sendgrid", body, content_type=content_type, headers=headers)
        _expect(answer, 200, 204)

    return run


def _resend(*, now: datetime) -> Run:
    from django.contrib.auth import get_user_model
    from django.test import Client
    from django.urls import reverse

    delivery = notification_histories.DeliveryHistory(
        channel=Channel.EMAIL, final_status=Status.FAILED, code=FailureCode.PROVIDER_ERROR
    )
    history = notification_histories.NotificationHistory(share=1, deliveries=(delivery,))
    failed = [str(notification_histories.seed(history, now=now)[0]["_id"]) for _ in range(2)]
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("path", password="path"))
    url = reverse("admin:notifications_failednotification_changelist")

    def run(number: int) -> None:
        confirmed = {"action": "resend_selected", "confirmed": "yes", "channels": ["email"]}
        _expect(client.post(url, {**confirmed, "_selected_action": failed[number]}), 302)

    return run


def _check_statuses() -> None:
    documents = collection("notifications").find().sort("_id")
    statuses = [document["delivery"][0]["status"] for document in documents]
    delivered, failed = [Status.DELIVERED] * 2, [Status.FAILED] * 2
    if statuses != [*delivered, *failed, Status.PENDING, Status.PENDING]:
        raise RuntimeError(f"the deliveries ended as {statuses}")


def _expect(answer: Any, *statuses: int) -> None:
    if answer.status_code not in statuses:
        path = answer.request["PATH_INFO"]
        raise RuntimeError(f"{path}: {answer.status_code} {answer.content!r:.300}")


@contextmanager
def _traced() -> Iterator[Trace]:
    """Trace the calls of this thread, and of threads that start during the block."""
    trace = Trace()
    threading.settrace(trace.call)
    sys.settrace(trace.call)
    try:
        yield trace
    finally:
        sys.settrace(None)
        threading.settrace(None)


@cache
def _relative(filename: str) -> str | None:
    path = Path(filename)
    if not path.is_relative_to(BASE_DIR):
        return None
    relative = path.relative_to(BASE_DIR)
    return str(relative) if relative.parts[0] in PACKAGES else None


@cache
def _statements(file: str) -> frozenset[int]:
    tree = ast.parse((BASE_DIR / file).read_text())
    return frozenset(node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt))


@cache
def _spine_files(heading: str) -> frozenset[str]:
    page = (BASE_DIR / "docs/architecture.md").read_text()
    section = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", page, re.M | re.S)
    return frozenset(re.findall(r"`([\w/]+\.py)`", section[1])) if section else frozenset()
