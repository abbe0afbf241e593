"""The local stack's programs, on the test's database and broker."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.running import Addresses, programs
from notifyproject.stack.servers import free_port
from notifyproject.supervision.forking import die_with_parent
from tests.support.mongo.written_collections import written
from tests.support.served_program import Serve, Served
from tests.support.subprocess import environment
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _written_by_the_programs(db: None) -> None:
    """Empty every collection after a test, because the programs write and run for many tests."""
    written.by_others = True


@pytest.fixture(scope="package")
def serve(_database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(name: str = "web", **variables: str) -> Served:
            addresses = Addresses(port=free_port() - 2)
            (program,) = [program for program in programs(addresses) if program.name == name]
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
    return serve()


@pytest.fixture(scope="package")
def impatient(serve: Serve) -> Served:
    """Run a web process with a client time limit of three seconds."""
    return serve(WEB_CLIENT_SECONDS="3", LOG_LEVEL="INFO")


@pytest.fixture(scope="package")
def stream(serve: Serve) -> Served:
    """Run a stream process with few connections and a short client time limit."""
    return serve("stream", WEB_CONNECTIONS="500", WEB_CLIENT_SECONDS="3", LOG_LEVEL="INFO")


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Served:
    """Return the process of the fixture that a test is parametrized with."""
    found: Served = request.getfixturevalue(request.param)
    return found


def _with_one_worker(command: list[str]) -> list[str]:
    """Return gunicorn's command with one worker, because each takes seconds to start."""
    at = command.index("--workers") + 1
    return [*command[:at], "1", *command[at + 1 :]]


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
