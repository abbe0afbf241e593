"""``manage.py healthcheck``: healthy, unhealthy with a reason, cheap, and fast."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from notifyproject import healthcheck
from notifyproject.celery import app
from notifyproject.healthcheck import MAX_AGE, heartbeat_problem
from notifyproject.platform import heartbeat
from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.servers import free_port
from tests.support.fakes.socket_server import Handler, reset, response, serving, unreading
from tests.support.waiting import LIMIT

OK = response(200, b"{}")


def answering(answer: bytes, *, requests: list[bytes]) -> Handler:
    def handle(connection: socket.socket) -> None:
        requests.append(connection.recv(4096))
        connection.sendall(answer)

    return handle


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEARTBEAT_DIR", str(tmp_path))
    monkeypatch.setenv("ALLOWED_HOSTS", ".example.com,other.example.org")


@pytest.mark.parametrize("program", healthcheck.HEARTBEATS)
def test_program_is_healthy_while_it_writes_heartbeats(
    program: str, tmp_path: Path, settings: Any
) -> None:
    settings.HEARTBEAT_DIR = str(tmp_path)
    assert "hasn't started yet" in str(healthcheck.main([program]))
    heartbeat.record(program)
    assert healthcheck.main([program]) is None
    assert [file.name for file in tmp_path.iterdir()] == [f"{program}.heartbeat"]
    later = float((tmp_path / f"{program}.heartbeat").read_text().split()[0]) + MAX_AGE
    for now, problem in (
        (later, None),
        (later + 5, f"The last heartbeat of the {program} was 65 s ago."),
    ):
        assert heartbeat_problem(program, directory=str(tmp_path), now=now) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "IndexError"), ("soon 7", "ValueError"), ("1e12 7", "before the machine started")],
)
def test_invalid_heartbeat_is_unhealthy(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "beat.heartbeat").write_text(text)
    assert problem in str(healthcheck.main(["beat"]))


def test_heartbeats_need_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEARTBEAT_DIR")
    assert "Set HEARTBEAT_DIR" in str(healthcheck.main(["worker"]))


def test_program_works_without_heartbeats(tmp_path: Path, settings: Any) -> None:
    settings.HEARTBEAT_DIR = ""
    heartbeat.record("worker")
    settings.HEARTBEAT_DIR = str(tmp_path / "missing")
    heartbeat.record("worker")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("db", "broker")
def test_beat_writes_a_heartbeat_at_each_tick(tmp_path: Path, settings: Any) -> None:
    from tasks.beat import HeartbeatScheduler

    assert f"{HeartbeatScheduler.__module__}:HeartbeatScheduler" == app.conf.beat_scheduler
    settings.HEARTBEAT_DIR = str(tmp_path)
    assert HeartbeatScheduler(app=app).tick() <= HeartbeatScheduler(app=app).max_interval
    assert healthcheck.main(["beat"]) is None


@pytest.mark.parametrize("program", healthcheck.PORTS)
def test_server_is_healthy_if_it_answers_the_first_allowed_host(program: str) -> None:
    requests: list[bytes] = []
    with serving(answering(OK, requests=requests)) as server:
        assert healthcheck.main([program, "--port", str(server.port)]) is None
    (request,) = requests
    assert request.startswith(b"GET /healthz HTTP/1.1\r\n")
    assert b"\r\nHost: example.com\r\n" in request


def test_every_program_of_a_container_must_be_healthy(tmp_path: Path, settings: Any) -> None:
    settings.HEARTBEAT_DIR = str(tmp_path)
    heartbeat.record("worker")
    assert "beat has written no heartbeat" in str(healthcheck.main(["worker", "beat"]))
    heartbeat.record("beat")
    assert healthcheck.main(["worker", "beat"]) is None


def test_server_without_a_right_response_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healthcheck, "TIMEOUT", 0.05)
    for handler, problem in (
        (answering(response(503), requests=[]), "responded with 503"),
        (answering(b"nonsense\r\n\r\n", requests=[]), "BadStatusLine"),
        (reset, "no response in time"),
        (unreading, "TimeoutError"),
    ):
        with serving(handler) as server:
            assert problem in str(healthcheck.main(["web", "--port", str(server.port)]))
    assert "Nothing listens" in str(healthcheck.main(["stream", "--port", str(free_port())]))


def test_invalid_environment_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_THREADS", "many")
    assert "WORKER_THREADS" in str(healthcheck.main(["worker"]))


def test_command_exits_with_the_result_and_loads_little(tmp_path: Path, settings: Any) -> None:
    settings.HEARTBEAT_DIR = str(tmp_path)
    heartbeat.record("worker")
    healthy = command("-X", "importtime", "manage.py", "healthcheck", "worker")
    assert (healthy.returncode, healthy.stdout) == (0, "")
    loaded = {line.rpartition("|")[2].strip() for line in healthy.stderr.splitlines()}
    assert loaded.isdisjoint({"celery", "pymongo", "redis", "structlog", "django.apps"})
    assert "notifyproject.healthcheck" in loaded
    unhealthy = command("manage.py", "healthcheck", "beat")
    assert unhealthy.returncode == 1
    assert len(unhealthy.stderr.splitlines()) == 1


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
