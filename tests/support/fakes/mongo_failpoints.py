"""Failing MongoDB commands, by fail points."""

import fcntl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from notifyproject.db.collections import database

Trouble = Mapping[str, Any]
NOT_PRIMARY: Trouble = {"errorCode": 10107}
CUT: Trouble = {"closeConnection": True}
LOST_ANSWER: Trouble = {
    "writeConcernError": {"code": 64, "errmsg": "timed out", "errInfo": {"wtimeout": True}}
}
"""The command succeeds, but without confirmation by a majority."""
STEPS_DOWN: Trouble = {"writeConcernError": {"code": 189, "errmsg": "the primary steps down"}}
"""As before, for another reason than time."""
NO_RESOURCES: Trouble = {"errorCode": 202, "errorLabels": ["RetryableWriteError"]}


@contextmanager
def fail_commands(
    command: str, collection: str, trouble: Trouble, *, times: int = 1
) -> Iterator[None]:
    """Let the next commands on a collection of this test's database fail."""
    db = database()
    data = {"failCommands": [command], "namespace": f"{db.name}.{collection}", **trouble}
    admin = db.client.admin
    with _only_one():
        admin.command({"configureFailPoint": "failCommand", "mode": {"times": times}, "data": data})
        try:
            yield
        finally:
            admin.command({"configureFailPoint": "failCommand", "mode": "off"})


@contextmanager
def _only_one() -> Iterator[None]:
    """Exclude other test processes, because mongod has one fail point for all of them."""
    with Path(tempfile.gettempdir(), "notifyproject-tests-failing.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
