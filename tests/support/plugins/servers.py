"""A pytest plugin that starts the suite's mongod and Valkey before Django is set up.

All xdist workers share them, with separate databases. ``MONGODB_URI`` and ``REDIS_URL`` override
them. Data is in shared memory if there is enough, because every write waits for the journal.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

import pytest

from notifyproject.stack import servers
from notifyproject.stack.prerequisites import MissingLibraryError

SHM = Path("/dev/shm")  # Linux has it; a container may have too little of it
ENOUGH_SPACE = 4 << 30
PREFIX = "notifyproject-tests-"
LOCK = "lock"
_running: list[servers.Server] = []
_folders: list[Path] = []
_locks: list[IO[str]] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Start the servers in the process that starts the workers."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Logical database 0 is for runs without xdist.
        number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) + 1
        base = os.environ["REDIS_URL"].rpartition("/")[0]
        os.environ["REDIS_URL"] = f"{base}/{number}"
        return
    try:
        _start_servers(_new_folder())
    except (servers.MissingServerError, servers.ServerFailedError, MissingLibraryError) as problem:
        raise pytest.UsageError(str(problem)) from None


def _start_servers(folder: Path) -> None:
    if "MONGODB_URI" not in os.environ:
        port = servers.free_port()
        # Tests store documents in the past. MongoDB would delete those that expire.
        parameters = ("enableTestCommands=1", "ttlMonitorEnabled=false")
        mongod = servers.mongod(data_dir=folder / "mongod", port=port, parameters=parameters)
        _start(mongod)
        servers.make_primary(port)
        os.environ["MONGODB_URI"] = servers.mongodb_uri(port, "notifyproject")
    if "REDIS_URL" not in os.environ:
        valkey = servers.valkey(data_dir=folder / "valkey", port=servers.free_port())
        _start(valkey)
        os.environ["REDIS_URL"] = servers.valkey_url(valkey.port)


def pytest_unconfigure() -> None:
    """Stop the servers and remove their data."""
    while _running:
        _running.pop().kill()
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
        _locks.pop().close()


def _new_folder() -> Path:
    """Return a data folder, in shared memory if possible."""
    has_shm = SHM.is_dir() and os.access(SHM, os.W_OK)
    if has_shm:
        _remove_what_was_left(SHM)
    in_shm = has_shm and shutil.disk_usage(SHM).free >= ENOUGH_SPACE
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=SHM if in_shm else None))
    new = folder / "new"
    lock = new.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(folder / LOCK)  # no other run sees it before it is locked
    _folders.append(folder)
    _locks.append(lock)
    return folder


def _remove_what_was_left(parent: Path) -> None:
    """Remove the folders of killed runs, whose locks are free."""
    for path in parent.glob(f"{PREFIX}*/{LOCK}"):
        with path.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(path.parent, ignore_errors=True)


def _start(server: servers.Server) -> None:
    server.start()
    _running.append(server)
