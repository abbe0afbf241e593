"""Callbacks for a sent mail."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from notifyproject_client import verify_callback

from callbacks.events import SUBSCRIBABLE
from tests.support.clients.api import App
from tests.support.fakes.callback_receiver import Receiver, Request, receiving
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")
PAGE = Path(django_settings.BASE_DIR, "docs", "guides", "callbacks.md")
EVERYTHING = sorted(event.value for event in SUBSCRIBABLE)


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.CALLBACK_LOOPBACK = True
    with receiving() as server:
        yield server


def verifies(request: Request, secret: str) -> bool:
    """Run the verification code of docs/guides/callbacks.md."""
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    known: dict[str, Any] = {}
    exec(compile(code[1], str(PAGE), "exec"), known)
    return bool(known["is_genuine"](request.headers, request.raw, secret))


def test_client_receives_signed_callbacks_for_a_mail(app: App, receiver: Receiver) -> None:
    secret = app.put("/callbacks", {"url": receiver.url, "events": EVERYTHING}).json()["secret"]
    answer = app.notify(recipient={"email": "ada@example.com"}, external_id="order-7")
    until(lambda: len(receiver.requests) >= 3)
    events = {request.body["type"]: request.body["data"] for request in receiver.requests}
    assert set(events) == {"delivery.sent", "delivery.delivered", "notification.completed"}
    assert {data["notification_id"] for data in events.values()} == {answer.json()["id"]}
    assert {data["external_id"] for data in events.values()} == {"order-7"}
    assert len(set(receiver.ids())) == 3
    for request in receiver.requests:
        assert b"ada@" not in request.raw
        assert verifies(request, secret)
        assert not verifies(Request(headers=request.headers, raw=request.raw + b" "), secret)
        assert verify_callback(request.headers, request.raw, secret=secret) == request.body
