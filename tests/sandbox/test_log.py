"""The sandbox's durable log of requests."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import urllib3
from urllib3.exceptions import HTTPError

from sandbox import recent_requests
from sandbox.log import EVENTS_FILE, REQUESTS_FILE, CorruptLogError, LogInUseError, read_records
from tests.support.clients.sandbox import Box, Receiver, RunSandbox, mail
from tests.support.waiting import until


@pytest.fixture
def log(box: Box) -> Path:
    return box.sandbox.data / REQUESTS_FILE


def test_request_is_recorded_completely(box: Box, log: Path) -> None:
    body, before = mail("bounce@example.com"), datetime.now(UTC)
    message_id = box.send(body).headers["X-Message-Id"]
    [record] = read_records(log)
    assert record.json() == body
    assert (record.id, record.provider, record.method) == (1, "sendgrid", "POST")
    assert (record.path, record.status, record.outcome) == ("/v3/mail/send", 202, "bounce")
    assert (record.accepted, record.reason, record.text) == (True, None, None)
    assert (record.references, record.recipients) == (("ref-1",), ("bounce@example.com",))
    assert (record.title, record.message_id) == ("Your order has shipped", message_id)
    assert before <= record.time <= datetime.now(UTC)


def test_credentials_are_not_recorded(box: Box, log: Path) -> None:
    box.send(mail(), key="SG.canary", Cookie="canary=1")
    box.send(mail(), key="SG.revoked", **{"X-Other": "kept"})
    assert b"canary" not in log.read_bytes()
    assert b"SG." not in log.read_bytes()
    assert [record.headers.get("x-other") for record in read_records(log)] == [None, "kept"]


def test_references_of_all_personalizations_are_recorded(box: Box, log: Path) -> None:
    people = [
        {"to": [{"email": "a@example.com"}], "custom_args": {"reference": "one"}},
        {"to": [{"email": "b@example.com"}], "cc": [{"email": "c@example.com"}]},
    ]
    box.send(mail(personalizations=people, custom_args={"reference": "shared"}))
    [record] = read_records(log)
    assert record.references == ("one", "shared")
    assert record.recipients == ("a@example.com", "b@example.com", "c@example.com")


def test_body_of_several_lines_is_one_line_of_the_log(box: Box, log: Path) -> None:
    body = mail(subject="One\nTwo\u2028Three")
    box.send(json.dumps(body, indent=2).replace("\n", "\r\n").encode())
    assert log.read_bytes().count(b"\n") == 1
    assert next(read_records(log)).json() == body


def test_body_that_is_not_json_is_recorded_in_part(box: Box, log: Path) -> None:
    box.send(b"\xffnot json\n" + b"x" * 100_000)
    [record] = read_records(log)
    assert record.json() is None
    assert record.text is not None
    assert record.text.startswith("\ufffdnot json\nxxx")
    assert len(record.text) == 2_000


def test_concurrent_requests_are_recorded_in_the_order_of_their_ids(box: Box, log: Path) -> None:
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda n: box.send(mail(reference=f"ref-{n}")), range(300)))
    assert {answer.status for answer in answers} == {202}
    records = list(read_records(log))
    assert [record.id for record in records] == list(range(1, 301))
    assert {record.references[0] for record in records} == {f"ref-{n}" for n in range(300)}
    assert {record.message_id for record in records} == {
        answer.headers["X-Message-Id"] for answer in answers
    }


@pytest.fixture
def program(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a sandbox in its own process, which a test can kill; return the process and the URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "sandbox", "--port", "0", "--data", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[1].rstrip("/")
        process.kill()


def test_answered_requests_survive_a_kill(
    tmp_path: Path, http: urllib3.PoolManager, program: tuple[subprocess.Popen[str], str]
) -> None:
    process, url = program
    answered: list[str] = []

    def send(start: int) -> None:
        for number in range(start, start + 10_000):
            try:
                answer = http.request(
                    "POST",
                    f"{url}/v3/mail/send",
                    json=mail(reference=f"ref-{number}"),
                    headers={"Authorization": "Bearer SG.test"},
                )
            except HTTPError:
                return
            assert answer.status == 202
            answered.append(f"ref-{number}")

    senders = [threading.Thread(target=send, args=(n * 10_000,)) for n in range(4)]
    for sender in senders:
        sender.start()
    until(lambda: len(answered) > 100)
    os.kill(process.pid, signal.SIGKILL)
    for sender in senders:
        sender.join()
    recorded = [record.references[0] for record in read_records(tmp_path / REQUESTS_FILE)]
    assert set(answered) <= set(recorded)
    assert len(set(recorded)) == len(recorded)


def test_restart_restores_requests_and_events(run: RunSandbox, receiver: Receiver) -> None:
    with run(webhook_url=receiver.url) as box:
        box.send(mail())
        box.send(mail("invalid@example.com"))
        receiver.wait_for("ref-1", "processed", "delivered")
        until(lambda: box.control("GET", "/counters")["webhooks"]["sent"] == 2)
        before = (box.requests(), box.control("GET", "/messages")["results"])
    with run(webhook_url=receiver.url) as box:
        assert (box.requests(), box.control("GET", "/messages")["results"]) == before
        assert box.control("GET", "/counters")["requests"] == 0
        box.send(mail())
        assert [request["id"] for request in box.requests()] == [3, 2, 1]
    assert len(receiver.posts) >= 1


def test_only_the_latest_requests_stay_in_memory(
    run: RunSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_requests, "MAX_REQUESTS", 3)
    with run() as box:
        for _ in range(5):
            box.send(mail())
        assert [request["id"] for request in box.requests()] == [5, 4, 3]
    with run() as box:
        assert [request["id"] for request in box.requests()] == [5, 4, 3]
    assert len(list(read_records(box.sandbox.data / REQUESTS_FILE))) == 5


def test_requests_with_large_bodies_are_evicted_earlier(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_requests, "MAX_BYTES", 50_000)
    for _ in range(5):
        box.send(mail(text="x" * 20_000))
    assert [request["id"] for request in box.requests()] == [5, 4]


def test_incomplete_last_line_is_ignored_and_removed(data: Path, run: RunSandbox) -> None:
    log = data / REQUESTS_FILE
    with run() as box:
        box.send(mail())
    whole = log.read_bytes()
    log.write_bytes(whole + whole[: len(whole) // 2])
    assert [record.id for record in read_records(log)] == [1]
    with run() as box:
        assert log.read_bytes() == whole
        box.send(mail())
    assert [record.id for record in read_records(log)] == [1, 2]


def test_unreadable_line_raises_an_error_that_names_it(data: Path, run: RunSandbox) -> None:
    log = data / REQUESTS_FILE
    log.write_bytes(b'{"id": 1}\n')
    with pytest.raises(CorruptLogError, match=r"requests\.jsonl, line 1"):
        list(read_records(log))
    with pytest.raises(CorruptLogError, match="move the folder away"), run():
        pass


def test_events_of_a_deleted_log_are_deleted(
    data: Path, run: RunSandbox, receiver: Receiver
) -> None:
    with run(webhook_url=receiver.url) as box:
        box.send(mail("dropped@example.com"))
        until(lambda: (data / EVENTS_FILE).stat().st_size > 0)
    (data / REQUESTS_FILE).unlink()
    with run(webhook_url=receiver.url) as box:
        box.send(mail("no-events@example.com"))
        assert box.control("GET", "/messages")["results"][0]["events"] == []


def test_second_sandbox_on_a_folder_is_refused(box: Box, run: RunSandbox) -> None:
    with pytest.raises(LogInUseError, match="Another sandbox runs"), run():
        pass


def test_request_is_refused_if_the_log_cannot_be_written(
    box: Box, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    box.send(mail())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        answer = box.send(mail())
    assert (answer.status, b"No space left" in answer.data) == (507, True)
    box.send(mail())
    assert [record.id for record in read_records(log)] == [1, 3]
    assert [request["id"] for request in box.requests()] == [3, 1]
