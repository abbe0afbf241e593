"""The suite's own mongod and Valkey: a pytest plugin that starts them before Django is set up.

One pair serves every xdist worker; each worker has databases of its own. ``MONGODB_URI`` and
``REDIS_URL`` in the environment are used instead, if they are set. Their data is in memory where
there is enough of it: a test waits for a journal on a disk at every write otherwise.
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

MEMORY = Path("/dev/shm")  # Linux has it; a container may have too little of it
ENOUGH_MEMORY = 4 << 30
PREFIX = "notifyproject-tests-"
LOCK = "lock"

_running: list[servers.Server] = []
_folders: list[Path] = []
_locks: list[IO[str]] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Start what the environment does not name, in the process that starts the workers."""
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
        mongod = servers.mongod(
            data_dir=folder / "mongod", port=port, parameters=("enableTestCommands=1",)
        )
        _start(mongod)
        servers.make_primary(port)
        os.environ["MONGODB_URI"] = servers.mongodb_uri(port, "notifyproject")
    if "REDIS_URL" not in os.environ:
        valkey = servers.valkey(data_dir=folder / "valkey", port=servers.free_port())
        _start(valkey)
        os.environ["REDIS_URL"] = servers.valkey_url(valkey.port)


def pytest_unconfigure() -> None:
    """Stop the servers; their data is gone with them."""
    while _running:
        _running.pop().kill()
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
        _locks.pop().close()


def _new_folder() -> Path:
    """Return a folder for the servers' data, in memory if it can be."""
    has_memory = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    if has_memory:
        _remove_what_was_left(MEMORY)
    in_memory = has_memory and shutil.disk_usage(MEMORY).free >= ENOUGH_MEMORY
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY if in_memory else None))
    new = folder / "new"
    lock = new.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(folder / LOCK)  # nobody sees it before it is held
    _folders.append(folder)
    _locks.append(lock)
    return folder


def _remove_what_was_left(parent: Path) -> None:
    """Remove the folders of runs that were killed: nobody holds their locks any more."""
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
