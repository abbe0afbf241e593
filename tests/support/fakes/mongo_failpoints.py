"""MongoDB's own way to make commands fail."""

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
"""The command is carried out, and the answer does not say that a majority has it."""
STEPS_DOWN: Trouble = {"writeConcernError": {"code": 189, "errmsg": "the primary steps down"}}
"""As before, and not for want of time."""
NO_RESOURCES: Trouble = {"errorCode": 202, "errorLabels": ["RetryableWriteError"]}


@contextmanager
def fail_commands(
    command: str, collection: str, trouble: Trouble, *, times: int = 1
) -> Iterator[None]:
    """Let the next commands on one collection of this test's own database fail."""
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
    """Wait for other processes' tests: one mongod serves all, and has one such switch."""
    with Path(tempfile.gettempdir(), "notifyproject-tests-failing.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
