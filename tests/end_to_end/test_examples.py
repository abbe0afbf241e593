"""The examples a new stack shows itself with, and the command line."""

from datetime import UTC, datetime
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from django.core.management import CommandError, call_command

from notifications.management.commands import notify as command
from notifyproject.db.collections import collection
from notifyproject.stack import examples
from sandbox.server import Sandbox
from tests.support.clients.api import App
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker", "quick_retries", "quick_silence")


def api_of(app: App, live_server: Any, provider: Sandbox) -> examples.API:
    return examples.API(
        base_url=live_server.url, key=app.key, pool=urllib3.PoolManager(), sandbox=provider.url
    )


def test_every_example_ends_as_it_says(app: App, live_server: Any, provider: Sandbox) -> None:
    api = api_of(app, live_server, provider)
    outcomes = examples.send_all(api, examples.load(datetime.now(UTC)))
    for latest in examples.follow(api, outcomes, stop=lambda: False):
        outcomes = latest
    unexpected = [o.example.name for o in outcomes if not o.is_as_expected]
    assert unexpected == []
    table = examples.format_table(outcomes)
    assert "email delivered, push failed after 2 attempts (invalid_recipient), in_app read" in table
    assert "email delivered after 3 attempts" in table


def test_an_example_the_api_refuses_says_why(app: App, live_server: Any, provider: Sandbox) -> None:
    api = api_of(app, live_server, provider)
    with pytest.raises(examples.ExampleRefusedError, match="unknown_type"):
        api.call("POST", "/notifications", {"type": "nope"})


def notify(*arguments: str) -> str:
    output = StringIO()
    call_command("notify", *arguments, stdout=output)
    return output.getvalue()


def test_the_command_line_sends_and_shows_the_timeline() -> None:
    text = notify(
        *("--type", "mfa_code", "--email", "ada@example.com"),
        *("--data", "code=123456", "--wait"),
    )
    assert "accepted" in text
    assert "email attempt 1  sent" in text
    assert "123456" not in text


def test_the_command_line_says_what_is_wrong() -> None:
    with pytest.raises(CommandError, match=r"recipient/email: Expected one address"):
        notify("--type", "payment_confirmed", "--email", "nonsense")
    with pytest.raises(CommandError, match="NAME=VALUE"):
        notify("--type", "mfa_code", "--email", "a@b.example", "--data", "code")


def test_the_command_line_says_when_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sleep(_seconds: float) -> None:
        """Let the time be over when the message is on its way."""
        nonlocal now
        until(lambda: collection("notifications").find_one({"status": "processing"}))
        now += 61

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    with pytest.raises(CommandError, match="s: processing"):
        notify(
            *("--type", "payment_confirmed", "--email", "timeout-lost@example.com"),
            *("--data", "order_id=1", "video_title=x", "amount=1", "--wait", "--timeout", "60"),
        )
