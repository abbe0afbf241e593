"""Commands of Node.js in a folder of ``clients``.

Node.js is no prerequisite of the tests: a machine without it leaves out those of its packages.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def is_installed() -> bool:
    """Return whether this machine has Node.js."""
    return shutil.which("npm") is not None


def run(*command: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a command, and return its output. Fails the test with the output of a failure."""
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other test processes from installing and building in a folder meanwhile."""
    with (folder / "package.json").open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        yield


def install(folder: Path) -> None:
    """Install a folder's locked packages, unless they already are."""
    stamp = folder / "node_modules" / ".lock-hash"
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
        stamp.write_text(wanted)
