"""The fixtures of pytest, in suites of their own, as an app has them."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from notifyproject.stack import servers
from tests.clients.testing.answers import TYPES
from tests.support.clients.api import new_app
from tests.support.source import ROOT

SUITE = """
import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from notifyproject_client import NotificationRejectedError

PAID = {"order_id": 1, "video_title": "Sunrise", "amount": "49.90"}


def test_sends(notify, notify_outbox):
    notify.notify("payment_confirmed", user_id="test-ada", channels=["in_app"], data=PAID)
    [message] = notify_outbox.messages()
    assert message.to_dict() == notify_outbox.last(user_id="test-ada", channel="in_app").to_dict()
    assert notify_outbox.notification_of(message).data.to_dict() == PAID
    assert notify_outbox.messages(user_id="test-bob") == []


def test_begins_with_an_empty_outbox(notify_outbox):
    assert notify_outbox.messages() == []


@pytest.mark.parametrize("number", [1, 2])
def test_leaves_what_is_scheduled(notify, notify_outbox, number):
    assert not list(notify_outbox._open())
    at = datetime.now(UTC) + timedelta(hours=1)
    notify.notify("payment_confirmed", email="ada@example.com", data=PAID, scheduled_at=at)
    assert len(list(notify_outbox._open())) == 1


def test_is_refused(notify, notify_outbox):
    with pytest.raises(NotificationRejectedError) as refused:
        notify.notify("payment_confirmed", email="ada", data=PAID)
    assert refused.value.problem.errors[0].code == "invalid_email"


def test_says_what_is_missing(notify, notify_outbox):
    notify.notify("payment_confirmed", user_id="test-ada", channels=["in_app"], data=PAID)
    with pytest.raises(AssertionError, match="Expected 2 .*found 1") as failed:
        notify_outbox.wait_for(2, seconds=0)
    assert "sent: payment_confirmed by in_app to test-ada" in str(failed.value)


def test_asynchronous_notifier(notify_service, notify_outbox):
    async def send():
        async with notify_service.async_notifier() as notifier:
            await notifier.notify(
                "payment_confirmed", user_id="test-ada", channels=["in_app"], data=PAID
            )

    asyncio.run(send())
    assert len(notify_outbox.wait_for(user_id="test-ada")) == 1
"""
QUIET = [f"-pno:{name}" for name in ("cacheprovider", "django", "schemathesis")]
"""Plugins of this project, which an app's tests don't have."""
TESTS = SUITE.count("def test_") + 1


def run(folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    """Run the tests of a folder as an app does. Return pytest's exit code and output."""
    unset = ("NOTIFY_URL", "NOTIFY_KEY", "NOTIFY_TYPES", "PYTEST_ADDOPTS")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    kept = {name: value for name, value in kept.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *QUIET, *words],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tmp_path / "test_app.py").write_text(SUITE)
    return tmp_path


def test_suite_passes_in_memory(folder: Path) -> None:
    (folder / "pytest.ini").write_text(f"[pytest]\nnotify_types = {TYPES}\n")
    code, said = run(folder)
    assert code == 0, said
    assert f"{TESTS} passed" in said


def test_service_that_is_not_there_fails_each_test_with_a_line(folder: Path) -> None:
    url = f"http://127.0.0.1:{servers.free_port()}"
    code, said = run(folder, NOTIFY_URL=url, NOTIFY_KEY="ntf_test_any")
    assert code == 1
    assert f"NOTIFY_URL: {url} doesn't answer: ConnectError." in said
    assert "Traceback" not in said


def test_key_that_the_service_refuses_fails_each_test_with_a_line(
    folder: Path, live_server: Any
) -> None:
    code, said = run(folder, NOTIFY_URL=live_server.url, NOTIFY_KEY="ntf_test_any")
    assert code == 1
    assert f"NOTIFY_URL: {live_server.url} answers 401. " in said
    assert "Traceback" not in said


@pytest.mark.usefixtures("shipped_types", "broker")
def test_suite_passes_at_a_service(folder: Path, live_server: Any) -> None:
    key = new_app("tester", is_test=True).key
    code, said = run(folder, NOTIFY_URL=live_server.url, NOTIFY_KEY=key)
    assert code == 0, said
    assert f"{TESTS} passed" in said


def test_keys_that_tests_must_not_use_are_refused_before_any_test(folder: Path) -> None:
    url = {"NOTIFY_URL": "http://127.0.0.1:9"}
    wrong: list[tuple[Mapping[str, str], tuple[str, ...], str]] = [
        ({**url, "NOTIFY_KEY": "ntf_abcdefghij_secret"}, (), "is a live key"),
        (url, (), "NOTIFY_URL needs NOTIFY_KEY"),
        ({**url, "NOTIFY_KEY": "ntf_test_a"}, ("-n", "2"), "has 1 of the 2 keys"),
    ]
    for environment, words, reason in wrong:
        code, said = run(folder, *words, **environment)
        assert (code, reason in said, "passed" in said) == (4, True, False), said
        assert "secret" not in said


def test_workers_have_a_service_each(folder: Path) -> None:
    (folder / "pytest.ini").write_text(f"[pytest]\nnotify_types = {TYPES}\n")
    code, said = run(folder, "-n", "2")
    assert code == 0, said
    assert f"{TESTS} passed" in said


def test_lines_of_the_guide_pass(folder: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "testing.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    # What moves the clock needs a service: it is one of the example's, which another test runs.
    example = (ROOT / "examples" / "python" / "test_trial.py").read_text()
    timed = [block for block in blocks if "notify_clock" in block]
    assert [block in example for block in timed] == [True]
    lines = "\n\n".join(block for block in blocks if block not in timed)
    imports = "import pytest\nfrom notifyproject_client import NotificationRejectedError\n\n"
    (folder / "test_app.py").write_text(imports + lines)
    code, said = run(folder)
    assert code == 0, said
    assert " passed" in said
