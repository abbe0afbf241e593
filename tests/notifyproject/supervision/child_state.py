"""``python -m tests.notifyproject.supervision.child_state``: print what this process has."""

import asyncio
import atexit
import json
import os
import random
import signal
import ssl
import sys
import threading
import uuid
import warnings
from pathlib import Path
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGCHLD")


def open_files() -> dict[str, str]:
    """Return what each descriptor is, without the one that reads them."""
    folder = Path("/proc/self/fd")
    found = {name: folder / name for name in sorted(os.listdir(folder), key=int)}
    return {name: str(path.readlink()) for name, path in found.items() if path.is_symlink()}


def state() -> dict[str, Any]:
    from bson import ObjectId

    from notifyproject.db.collections import collection
    from notifyproject.platform import process, valkey

    found = {
        "arguments": sys.argv[1:],
        "files": open_files(),
        "handlers": {name: str(signal.getsignal(getattr(signal, name))) for name in SIGNALS},
        "mask": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "is_leader": os.getsid(0) == os.getpid(),
        "name": Path("/proc/self/comm").read_text().strip(),
        "threads": threading.active_count(),
        "has_loop": asyncio._get_running_loop() is not None,
        "differs": [
            process.worker_name(),
            random.random(),
            str(uuid.uuid4()),
            str(ObjectId())[8:18],
            ssl.RAND_bytes(8).hex(),
        ],
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        collection("heartbeats").find_one({})
        valkey.client().ping()
    return found | {"warnings": [str(warning.message) for warning in caught]}


if __name__ == "__main__":
    print(json.dumps(state()))
    atexit.register(print, '"atexit"')
    # Not a daemon: the program ends after it.
    threading.Timer(0.05, print, ['"thread"']).start()
