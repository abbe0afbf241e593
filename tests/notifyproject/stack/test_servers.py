"""A server that ends while starting is reported at once, with its output."""

import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from notifyproject.stack import servers
from notifyproject.stack.servers import Server, ServerFailedError
from notifyproject.supervision.output import LabelledLog
from notifyproject.supervision.supervisor import Program, Supervisor
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

DIES = "import sys; print('no such library', file=sys.stderr); sys.exit(127)"


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port on which another program listens without answering."""
    with socket.create_server((servers.HOST, 0), backlog=64) as other:
        yield int(other.getsockname()[1])


def dying(tmp_path: Path) -> Server:
    return Server(
        name="one",
        command=[sys.executable, "-c", DIES],
        data_dir=tmp_path / "one",
        port=0,
        is_ready=lambda: False,
    )


def failure_of(start: Callable[[], None]) -> str:
    with pytest.raises(ServerFailedError) as caught:
        start()
    return str(caught.value)


@each_case(
    "make, beginning",
    [
        (servers.mongod, "mongod ended as it started (exit code "),
        (servers.valkey, "valkey ended as it started (exit code 1)"),
    ],
)
def test_taken_port_is_reported_without_the_log_of_an_earlier_start(
    tmp_path: Path, taken: int, make: Callable[..., Server], beginning: str
) -> None:
    server = make(data_dir=tmp_path, port=taken)
    assert server.log is not None
    server.log.write_text('{"s":"F","msg":"of another day"}\n')
    message = failure_of(lambda: server.start(timeout=LIMIT))
    assert message.startswith(beginning)
    assert "Address already in use" in message
    assert "of another day" not in message


def test_error_output_of_a_server_is_quoted(tmp_path: Path) -> None:
    server = dying(tmp_path)
    message = failure_of(lambda: server.start(timeout=LIMIT))
    assert message.startswith("one ended as it started (exit code 127)")
    assert "no such library" in message


def test_supervised_server_is_seen_to_end(tmp_path: Path) -> None:
    server = dying(tmp_path)
    supervisor = Supervisor(output=LabelledLog(is_coloured=False), stop_seconds=LIMIT)
    process = supervisor.start(Program(name=server.name, command=server.command))

    def wait() -> None:
        read_output = partial(supervisor.last_lines, "one")
        server.wait(timeout=LIMIT, process=process, read_output=read_output)

    message = failure_of(wait)
    assert message.startswith("one ended as it started (exit code 127)")
    assert "no such library" in message


def test_silent_server_times_out(tmp_path: Path) -> None:
    server = dying(tmp_path)
    server.command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ServerFailedError, match=r"^one does not respond"):
        server.start(timeout=0.2)
