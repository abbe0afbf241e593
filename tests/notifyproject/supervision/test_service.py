"""``manage.py service``, the small installation, from its start to its end."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3

from notifyproject.settings.environment import BASE_DIR, is_alive
from notifyproject.stack.servers import HOST, free_port
from tests.support.subprocess import children, environment
from tests.support.waiting import LIMIT, until

PROGRAMS = {"web", "stream", "worker", "urgent", "beat"}


@dataclass(frozen=True, kw_only=True)
class Service:
    """A running installation."""

    process: subprocess.Popen[bytes]
    web: str
    stream: str
    heartbeats: Path
    log: Path

    def programs(self) -> dict[str, int]:
        """Return the process ID of each program."""
        return {
            Path(f"/proc/{pid}/comm").read_text().strip(): pid for pid in children(self.process.pid)
        }

    def ended(self) -> list[str]:
        """Return event, program, and reason of each end of a program in the log."""
        plain = re.sub(r"\x1b\[[0-9;]*m", "", self.log.read_text())
        form = r"(program_ended) .*program=(\w+) reason='(.*)'"
        return [" ".join(match) for match in re.findall(form, plain)]

    def is_healthy(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return answers(self.web) and answers(self.stream) and self.has_heartbeats()

    def has_heartbeats(self) -> bool:
        return {path.stem for path in self.heartbeats.glob("*.heartbeat")} >= {"worker", "beat"}


def descendants(pid: int) -> list[int]:
    return [found for child in children(pid) for found in (child, *descendants(child))]


def answers(url: str) -> bool:
    try:
        return urllib3.request("GET", f"{url}/healthz", retries=False, timeout=LIMIT).status == 200
    except urllib3.exceptions.HTTPError:
        return False


@pytest.fixture
def service(db: None, broker: object, tmp_path: Path) -> Iterator[Service]:
    web, stream = (f"{HOST}:{free_port()}" for _ in range(2))
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "service", "--web", web, "--stream", stream],
            cwd=BASE_DIR,
            env={**os.environ, **environment(), "HEARTBEAT_DIR": str(tmp_path)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    found = Service(
        process=process,
        web=f"http://{web}",
        stream=f"http://{stream}",
        heartbeats=tmp_path,
        log=log,
    )
    try:
        until(found.is_healthy)
        yield found
    finally:
        process.kill()
        process.wait()


def test_programs_live_and_end_together(service: Service) -> None:
    started = service.programs()
    assert set(started) == PROGRAMS

    # A program that dies starts again, and the log says which.
    for name in ("worker", "web"):
        (service.heartbeats / "worker.heartbeat").unlink()
        os.kill(started[name], signal.SIGKILL)
        until(lambda name=name: service.programs().get(name, started[name]) != started[name])
        until(service.is_healthy)
        assert f"program_ended {name} killed by SIGKILL" in service.ended()

    # gunicorn's handler would repeat each line, or fail.
    log = service.log.read_text()
    assert log.count(f"Listening at: {service.stream} ") == 1
    assert "Logging error" not in log

    everything = descendants(service.process.pid)
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(LIMIT) == 0
    assert not any(map(is_alive, everything))


def test_programs_end_with_their_parent(service: Service) -> None:
    everything = descendants(service.process.pid)
    service.process.kill()
    service.process.wait()
    until(lambda: not any(map(is_alive, everything)))


def test_refused_settings_are_shown_alone() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "service"],
        cwd=BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "notifyproject.settings.production"}
        | {"SECRET_KEY": ""},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("Set SECRET_KEY, ")
    assert len(done.stderr.splitlines()) == 1
