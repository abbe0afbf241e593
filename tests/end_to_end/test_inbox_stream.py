"""The stream process as the local stack starts it."""

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from django.conf import settings as django_settings
from pymongo.uri_parser import parse_uri

from access.clients import inbox_tokens
from domain.time import utc_now
from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.running import Addresses, programs
from notifyproject.stack.servers import free_port
from notifyproject.supervision.forking import die_with_parent
from tests.support.clients.api import App
from tests.support.waiting import LIMIT, until


@pytest.fixture
def stream(app: App) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the stream process on the test's database and broker. Return its URL and the process."""
    addresses = Addresses(port=free_port() - 2)
    (program,) = [program for program in programs(addresses) if program.name == "stream"]
    default = django_settings.DATABASES["default"]
    plain = parse_uri(default["HOST"], validate=False)["database"]
    environment = {
        "DJANGO_SETTINGS_MODULE": "notifyproject.settings.test",
        "MONGODB_URI": default["HOST"].replace(f"/{plain}?", f"/{default['NAME']}?"),
        "REDIS_URL": django_settings.REDIS_URL,
    }
    process = subprocess.Popen(
        program.command, cwd=BASE_DIR, env={**os.environ, **environment}, preexec_fn=die_with_parent
    )
    try:
        yield addresses.stream, process
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return urllib3.request("GET", f"{url}/healthz", retries=False, timeout=LIMIT).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def _line(lines: Iterator[bytes], beginning: bytes) -> bytes:
    return next(line for line in lines if line.startswith(beginning))


def _lines(answer: Any) -> Iterator[bytes]:
    rest = b""
    for chunk in answer.stream(amt=None):
        *complete, rest = (rest + chunk).split(b"\n")
        yield from complete


def test_stream_shows_new_notifications_until_the_process_ends(
    app: App, stream: tuple[str, subprocess.Popen[bytes]]
) -> None:
    url, process = stream
    until(lambda: _answers(url) or process.poll() is not None, otherwise="it does not answer")
    assert process.poll() is None, "it ended at once"
    token = inbox_tokens.issue(client_id=app.id, user_id="ada", now=utc_now()).text
    with urllib3.request(
        "GET",
        f"{url}/api/v1/inbox/stream",
        headers={"Authorization": f"Bearer {token}"},
        preload_content=False,
        timeout=LIMIT,
    ) as answer:
        assert answer.status == 200
        lines = _lines(answer)
        assert _line(lines, b"data: ").startswith(b'data: {"unread":0,"unseen":0,')
        accepted = app.notify(user_id="ada", channels=["in_app"], recipient=...).json()
        assert _line(lines, b"id: ") == f"id: {accepted['id']}".encode()
        # A notification stored during a poll may be shown before it is counted.
        while not _line(lines, b'data: {"unread"').startswith(b'data: {"unread":1,"unseen":1,'):
            pass
        process.terminate()
        assert _line(lines, b"event: end")
        assert _line(lines, b"data: ") == b'data: {"reason":"restart"}'
    assert process.wait(LIMIT) == 0
