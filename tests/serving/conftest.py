"""The local stack's own programs, on the test's database and broker."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3

from bench.slow_clients import TargetServer
from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.running import Addresses, programs
from notifyproject.stack.servers import HOST, die_with_parent, free_port
from tests.api.conftest import App, new_app
from tests.conftest import written
from tests.faults.conftest import environment
from tests.waiting import LIMIT, until

LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
"""1.6 MB, for which no key is needed."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A program that answers HTTP."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def target(self) -> TargetServer:
        return TargetServer(host=HOST, port=self.port, large_path=LARGE)

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=LIMIT)

    def is_healthy(self) -> bool:
        try:
            answer = urllib3.request("GET", f"{self.url}/healthz", retries=False, timeout=LIMIT)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200


Serve = Callable[..., Served]


@pytest.fixture(autouse=True)
def _written_by_the_programs(db: None) -> None:
    """Have everything emptied: the programs run for many tests."""
    written.by_others = True


@pytest.fixture(scope="package")
def serve(_database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Give tests a way to start a program of the stack with these variables."""
    with ExitStack() as stack:

        def start(name: str = "web", **variables: str) -> Served:
            addresses = Addresses(port=free_port() - 2)
            (program,) = [one for one in programs(addresses, {}) if one.name == name]
            port = addresses.port if name == "web" else addresses.port + 2
            log = tmp_path_factory.mktemp(name) / "log"
            process = subprocess.Popen(
                _with_one_worker(program.command),
                cwd=BASE_DIR,
                env={**os.environ, **environment(), **variables},
                stdout=stack.enter_context(log.open("wb")),
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
            stack.callback(_end, process)
            served = Served(port=port, process=process, log=log)

            def is_up() -> bool:
                assert process.poll() is None, log.read_text()
                return served.is_healthy()

            until(is_up, otherwise="the program does not answer")
            return served

        yield start


@pytest.fixture(scope="package")
def web(serve: Serve) -> Served:
    """Give tests the web as it is."""
    return serve()


@pytest.fixture(scope="package")
def impatient(serve: Serve) -> Served:
    """Give tests a web that gives its clients three seconds, and logs what it refuses."""
    return serve(WEB_CLIENT_SECONDS="3", WEB_CLIENT_RATE="1000", LOG_LEVEL="INFO")


@pytest.fixture
def app(db: None, broker: object) -> App:
    """Give a test an app with every scope."""
    return new_app("app")


def _with_one_worker(command: list[str]) -> list[str]:
    """Return a command of gunicorn for one worker process: each takes seconds to start."""
    at = command.index("--workers") + 1
    return [*command[:at], "1", *command[at + 1 :]]


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
