"""The examples of a new local stack, the ``notify`` command, and the README's Python."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from django.conf import settings
from django.core.management import CommandError, call_command

from console.texts.failure_codes import explain
from delivery import digests, sweeper
from domain.wait_reasons import WaitReason, wait_condition
from notifications.management.commands import notify as command
from notifyproject.db.collections import collection
from notifyproject.stack import examples
from sandbox.assembly import Sandbox
from tests.support.clients.api import App
from tests.support.waiting import until

RUNNING = pytest.mark.usefixtures("worker", "quick_retries", "quick_silence")
HERE = "http://127.0.0.1:8000"


def api_of(app: App, live_server: Any, provider: Sandbox) -> examples.API:
    return examples.API(
        base_url=live_server.url, key=app.key, pool=urllib3.PoolManager(), sandbox=provider.url
    )


@RUNNING
def test_every_example_ends_as_expected(app: App, live_server: Any, provider: Sandbox) -> None:
    api = api_of(app, live_server, provider)
    loaded = examples.load(datetime.now(UTC))
    digested = sum("merged" in example.expected["delivery"].values() for example in loaded)
    outcomes = examples.send_all(api, loaded)

    def sweep() -> bool:
        """Do what is due, as in the local stack, where a minute passes. Return False: go on."""
        members = {"delivery.digest_id": {"$type": "objectId"}}
        if collection("notifications").count_documents(members) == digested:
            # The minute of the digest is over.
            over = {"closes_at": datetime.now(UTC), "due_at": datetime.now(UTC)}
            collection("digests").update_many({"status": "open"}, {"$set": over})
        digests.close_due()
        now = datetime.now(UTC)
        over_limit = {"delivery": {"$elemMatch": wait_condition(WaitReason.OVER_LIMIT, now=now)}}
        due = {"$set": {"due_at": now, "delivery.$[].next_attempt_at": now}}
        if collection("notifications").update_many(over_limit, due).modified_count:
            # The minute of the limit is over.
            collection("limit_uses").delete_many({})
            sweeper.sweep(now=now)
        return False

    for latest in examples.follow(api, outcomes, stop=sweep):
        outcomes = latest
    unexpected = [o.example.name for o in outcomes if not o.is_as_expected]
    assert unexpected == []
    table = examples.format_table(outcomes)
    assert "email delivered, push failed after 2 attempts (invalid_recipient), in_app read" in table
    assert "email delivered after 3 attempts" in table


def test_examples_leave_nothing_for_an_operator_or_for_the_guides_to_stumble_over() -> None:
    """A new installation is operational, and its addresses and categories are unused."""
    loaded = examples.load(datetime.now(UTC))
    codes = {code for example in loaded for code in example.expected.get("codes", {}).values()}
    assert [code for code in codes if explain(code).needs_operator] == []
    used = {example.request["recipient"].get("email") for example in loaded}
    page = Path(settings.BASE_DIR, "docs", "guides", "quickstart.md").read_text()
    rows = set(re.findall(r"^\| `(\S+@example\.com)`", page, re.MULTILINE))
    assert len(rows) >= 4
    assert not rows & used
    limits = [limit for example in loaded for limit in example.limits.values()]
    assert limits
    assert all(set(limit["types"]) <= types_of(loaded) for limit in limits)


def types_of(loaded: list[examples.Example]) -> set[str]:
    """Return the types that only the examples have."""
    return {slug for example in loaded for slug in example.types}


def test_whatsapp_examples_arrive_unless_they_show_a_refusal() -> None:
    loaded = examples.load(datetime.now(UTC))
    by_whatsapp = [example for example in loaded if "whatsapp" in example.expected["delivery"]]
    assert len(by_whatsapp) >= 4
    for example in by_whatsapp:
        arrives = example.expected["delivery"]["whatsapp"] == "delivered"
        assert arrives != example.description.startswith("A refusal"), example.name


def test_recipients_without_a_device_are_no_failure() -> None:
    for example in examples.load(datetime.now(UTC)):
        if not example.devices:
            assert example.expected["delivery"].get("push") != "failed", example.name


def test_refused_example_raises_with_the_code(
    app: App, live_server: Any, provider: Sandbox
) -> None:
    api = api_of(app, live_server, provider)
    with pytest.raises(examples.ExampleRefusedError, match="unknown_type"):
        api.call("POST", "/notifications", {"type": "nope"})


def notify(*arguments: str) -> str:
    output = StringIO()
    call_command("notify", *arguments, stdout=output)
    return output.getvalue()


@RUNNING
def test_command_sends_and_shows_the_timeline() -> None:
    text = notify(
        "--type", "mfa_code", "--email", "ada@example.com", "--data", "code=123456", "--wait"
    )
    assert "accepted" in text
    assert "email attempt 1  sent" in text
    assert "123456" not in text


@pytest.mark.usefixtures("app")
def test_command_explains_invalid_arguments() -> None:
    with pytest.raises(CommandError, match=r"recipient/email: Expected one address"):
        notify("--type", "payment_confirmed", "--email", "nonsense")
    with pytest.raises(CommandError, match="NAME=VALUE"):
        notify("--type", "mfa_code", "--email", "a@b.example", "--data", "code")


@RUNNING
def test_command_reports_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sleep(_seconds: float) -> None:
        """Move the clock past the time limit as soon as the message is being sent."""
        nonlocal now
        until(lambda: collection("notifications").find_one({"status": "processing"}))
        now += 61

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    with pytest.raises(CommandError, match="s: processing"):
        notify(
            "--type",
            "payment_confirmed",
            "--email",
            "timeout-lost@example.com",
            "--data",
            "order_id=1",
            "video_title=x",
            "amount=1",
            "--wait",
            "--timeout",
            "60",
        )


@RUNNING
def test_ten_lines_of_python_send_a_notification(
    app: App,
    live_server: Any,
    received: Callable[[str], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = Path(settings.BASE_DIR, "README.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert lines.count("\n") == 10
    assert HERE in lines
    (tmp_path / ".data").mkdir()
    credentials = json.dumps({"api_key": app.key})
    (tmp_path / ".data" / "local-credentials.json").write_text(credentials)
    monkeypatch.chdir(tmp_path)

    names: dict[str, Any] = {}
    exec(compile(lines.replace(HERE, live_server.url), "README.md", "exec"), names)

    sent = names["sent"]
    assert (sent.status, sent.type_) == ("queued", "payment_confirmed")
    assert until(lambda: received("ada@example.com"))
    assert app.get(f"/notifications/{sent.id}").json()["data"] == sent.data.to_dict()
