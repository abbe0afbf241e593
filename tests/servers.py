"""The suite's own mongod and Valkey: a pytest plugin that starts them before Django is set up.

One pair serves every xdist worker; each worker has databases of its own. ``MONGODB_URI`` and
``REDIS_URL`` in the environment are used instead, if they are set.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from notifyproject.stack import servers

_running: list[servers.Server] = []
_folders: list[Path] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Start what the environment does not name, in the process that starts the workers."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Logical database 0 is for runs without xdist.
        number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) + 1
        base = os.environ["REDIS_URL"].rpartition("/")[0]
        os.environ["REDIS_URL"] = f"{base}/{number}"
        return
    folder = Path(tempfile.mkdtemp(prefix="notifyproject-tests-"))
    _folders.append(folder)
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


def _start(server: servers.Server) -> None:
    server.start()
    _running.append(server)
