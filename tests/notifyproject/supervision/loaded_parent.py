"""``python -m tests.notifyproject.supervision.loaded_parent``: what a parent and its children have.

Loads the code of all programs, prints its own state as JSON, and forks two children that do.
"""

import gc
import json
import os
import sys
import tempfile

from pymongo import MongoClient

from notifyproject.supervision import loading
from notifyproject.supervision.output import LabelledLog
from notifyproject.supervision.supervisor import Program, Supervisor
from tests.notifyproject.supervision.child_state import open_files

CHILD = "tests.notifyproject.supervision.child_state"


def main() -> None:
    loading.load()
    from notifyproject.platform import event_loop, process, valkey

    state = {
        "threads": len(os.listdir("/proc/self/task")),
        "files": open_files(),
        "mongodb_clients": len(MongoClient._clients),
        "valkey_clients": valkey._client.cache_info().currsize,
        "worker_names": process.worker_name.cache_info().currsize,
        "loops": len(event_loop._loops),
        "frozen": gc.get_freeze_count(),
        "is_collecting": gc.isenabled(),
    }
    log = LabelledLog(is_coloured=False)
    log.print_lines(json.dumps(state))
    with tempfile.TemporaryFile() as lock:
        supervisor = Supervisor(output=log, stop_seconds=1, release=lock.close)
        command = [sys.executable, "-m", CHILD, "--an-argument"]
        supervisor.run_once(
            [Program(name=name, command=command, is_forked=True) for name in ("one", "two")]
        )
        supervisor.stop()


if __name__ == "__main__":
    main()
