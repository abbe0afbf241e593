"""Processes on the test's database and broker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings as django_settings
from pymongo.uri_parser import parse_uri

from notifyproject.settings.environment import BASE_DIR
from tests.support.mongo.written_collections import written
from tests.support.waiting import LIMIT, until


def python(*words: str, **variables: str) -> str:
    """Run Python. Return its output."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=BASE_DIR,
        env={**os.environ, **environment(), **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    """Return variables for the test's database and broker. All collections are emptied later."""
    written.by_others = True
    default = django_settings.DATABASES["default"]
    plain = parse_uri(default["HOST"], validate=False)["database"]
    return {
        "DJANGO_SETTINGS_MODULE": "notifyproject.settings.test",
        "MONGODB_URI": default["HOST"].replace(f"/{plain}?", f"/{default['NAME']}?"),
        "REDIS_URL": django_settings.REDIS_URL,
    }


def children(pid: int) -> list[int]:
    """Return the process IDs of a process's children."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """Suspend a process during a block."""
    os.kill(pid, signal.SIGSTOP)
    # Until then, a thread may return from the system call in which it waits.
    until(lambda: all(_is_stopped(thread) for thread in Path(f"/proc/{pid}/task").iterdir()))
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _is_stopped(thread: Path) -> bool:
    state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"
