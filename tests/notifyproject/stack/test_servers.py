"""A server that ends while starting is reported at once, with its output."""

import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notifyproject.stack import servers
from notifyproject.stack.servers import Server, ServerFailedError
from notifyproject.stack.supervisor import Program, Supervisor
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
    """Return the message of a failed start."""
    with pytest.raises(ServerFailedError) as caught:
        start()
    return str(caught.value)


def test_mongod_reports_a_taken_port(tmp_path: Path, taken: int) -> None:
    mongod = servers.mongod(data_dir=tmp_path / "mongod", port=taken)
    message = failure_of(lambda: mongod.start(timeout=LIMIT))
    assert message.startswith("mongod ended as it started (exit code ")
    assert "Address already in use" in message


def test_mongod_ignores_the_log_of_an_earlier_start(tmp_path: Path, taken: int) -> None:
    data_dir = tmp_path / "mongod"
    data_dir.mkdir()
    (data_dir / "mongod.log").write_text('{"s":"F","msg":"of another day"}\n')
    mongod = servers.mongod(data_dir=data_dir, port=taken)
    message = failure_of(lambda: mongod.start(timeout=LIMIT))
    assert "Address already in use" in message
    assert "of another day" not in message


def test_valkey_reports_a_taken_port(tmp_path: Path, taken: int) -> None:
    valkey = servers.valkey(data_dir=tmp_path / "valkey", port=taken)
    message = failure_of(lambda: valkey.start(timeout=LIMIT))
    assert message.startswith("valkey ended as it started (exit code 1)")
    assert "Address already in use" in message


def test_error_output_of_a_server_is_quoted(tmp_path: Path) -> None:
    server = dying(tmp_path)
    message = failure_of(lambda: server.start(timeout=LIMIT))
    assert message.startswith("one ended as it started (exit code 127)")
    assert "no such library" in message


def test_supervised_server_is_seen_to_end(tmp_path: Path) -> None:
    server, supervisor = dying(tmp_path), Supervisor()
    process = supervisor.start(Program(name=server.name, command=server.command))

    def wait() -> None:
        server.wait(timeout=LIMIT, process=process, read_output=lambda: supervisor.output_of("one"))

    message = failure_of(wait)
    assert message.startswith("one ended as it started (exit code 127)")
    assert "no such library" in message


def test_silent_server_times_out(tmp_path: Path) -> None:
    server = dying(tmp_path)
    server.command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ServerFailedError, match=r"^one does not respond"):
        server.start(timeout=0.2)
