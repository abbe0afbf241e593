"""Processes of their own, on the test's database and broker."""

import os
import subprocess
import sys

from notifyproject.settings.environment import BASE_DIR
from tests.faults.conftest import environment
from tests.waiting import LIMIT


def python(*words: str, **variables: str) -> str:
    """Run another process and return what it printed."""
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
