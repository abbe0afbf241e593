"""The program ``python -m sandbox``: start, output, and stop."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import urllib3
from urllib3.exceptions import ReadTimeoutError

from notifyproject.stack.servers import free_port
from sandbox.__main__ import main
from sandbox.assembly import create_secrets
from sandbox.credentials import WEBHOOK_PRIVATE_KEY_FILE
from sandbox.log import REQUESTS_FILE
from tests.support.clients.sandbox import Box, RunSandbox, mail
from tests.support.waiting import LIMIT, until


def test_program_prints_its_url_and_stops_despite_open_connections(
    tmp_path: Path, http: urllib3.PoolManager
) -> None:
    port = free_port()
    hook = "http://127.0.0.1:9/hook"
    arguments = ["--port", str(port), "--data", str(tmp_path), "--webhook-url", hook]
    with (
        subprocess.Popen(
            [sys.executable, "-m", "sandbox", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
        # A failure ends the test, rather than wait for the program.
        ExitStack() as ended,
    ):
        ended.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == (
            f"sandbox: http://127.0.0.1:{port}/ (data in {tmp_path}, webhooks to {hook})\n"
        )
        for recipient in ("timeout@example.com", "timeout-lost@example.com"):
            with pytest.raises(ReadTimeoutError):
                http.request(
                    "POST",
                    f"http://127.0.0.1:{port}/v3/mail/send",
                    json=mail(recipient),
                    headers={"Authorization": "Bearer SG.test"},
                    timeout=0.3,
                )
        until(lambda: _connections(process.pid) == 0)
        with socket.create_connection(("127.0.0.1", port)) as held:
            held.sendall(b"POST /v3/mail/send HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n")
            until(lambda: _connections(process.pid) == 1)
            process.terminate()
            # A fraction of a second on a machine with time to spare; a stall lasts minutes.
            assert process.wait(LIMIT) == 0
        assert process.stdout.read() == ""


@pytest.mark.parametrize(
    ("number", "hooks", "words"),
    [
        (signal.SIGTERM, "", "no webhooks"),
        (signal.SIGINT, "--webhook-url http://x/a", "webhooks to http://x/a"),
        (
            signal.SIGTERM,
            "--whatsapp-webhook-url http://x/b --twilio-webhook-url http://x/c",
            "webhooks to http://x/b and http://x/c",
        ),
        (signal.SIGTERM, "--mail-webhooks-url http://x/d", "webhooks to http://x/d"),
    ],
)
def test_program_names_the_receivers_and_a_signal_ends_it_well(
    data: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals, hooks: str, words: str
) -> None:
    def send() -> None:
        until((data / REQUESTS_FILE).exists)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    sender.start()
    assert main(["--port", "0", "--data", str(data), *hooks.split()]) == 0
    sender.join()
    assert capsys.readouterr().out.endswith(f", {words})\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], "'70000' is not a port"),
        (["--port", "x"], "'x' is not a port"),
        (["--port", "0", "--webhook-url", "localhost:8000"], "is not an http or https URL"),
        (["--port", "0", "--whatsapp-webhook-url", "x"], "is not an http or https URL"),
        (["--port", "0", "--twilio-webhook-url", "x"], "is not an http or https URL"),
        (["--port", "0", "--mail-webhooks-url", "x"], "is not an http or https URL"),
        (["--port", "0", "--whatsapp-api-version", "26"], "'26' is not a version such as v26.0"),
        (["--port", "0", "--late-after", "soon"], "is not a number of seconds"),
        (["--port", "0", "--late-after", "-1"], "is not a number of seconds"),
        ([], "required: --port"),
    ],
)
def test_invalid_option_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--data", str(tmp_path)])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_used_port_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["--port", str(port), "--data", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert message.startswith("sandbox: ")
    assert str(port) in message


def test_used_folder_is_named(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    data = box.sandbox.data
    assert main(["--port", "0", "--data", str(data)]) == 1
    assert capsys.readouterr().err == f"sandbox: Another sandbox runs on {data}.\n"


def test_unreadable_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / WEBHOOK_PRIVATE_KEY_FILE).write_text("no key")
    assert main(["--port", "0", "--data", str(tmp_path)]) == 1
    assert "delete it to get a new one" in capsys.readouterr().err


def test_secrets_are_created_before_the_start(data: Path, run: RunSandbox) -> None:
    before = create_secrets(data, url="http://127.0.0.1:1")
    with run() as box:
        assert box.sandbox == replace(before, url=box.sandbox.url)
        token_uri = json.loads(before.service_account.read_text())["token_uri"]
        assert token_uri == f"{box.sandbox.url}/token"


def test_program_does_not_import_django() -> None:
    code = "import sys, sandbox.__main__; print('django' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def _connections(pid: int) -> int:
    """Count the established TCP connections of a process."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        # The process may close it meanwhile.
        with suppress(FileNotFoundError):
            name = str(link.readlink())
            if name.startswith("socket:["):
                inodes.add(name[8:-1])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    established = "01"
    return sum(1 for row in rows if row[9] in inodes and row[3] == established)
