"""An old version of the service is replaced process by process, and put back, under load."""

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from notifyproject.settings.environment import BASE_DIR

from ...cluster import Cluster
from ...cluster.plan import APPS
from ...processes import ScenarioError
from ..findings import Bound, Findings, scenario
from ..installation import set_up_commands
from .hosts import ALL, Fault, cluster, finish, mail

OLD_VERSION = "3ecaa2a8"
"""A commit without digests, whose documents the migrations of digests changed."""
OLD_SCOPES = ("notifications:write", "notifications:read", "notifications:critical")
ORDER = ("worker", "beat", "web", "stream")
"""The order of an upgrade, as docs/guides/upgrade.md says."""


@contextmanager
def old_code() -> Iterator[Path]:
    """Extract the old version from the repository's history. Raises ScenarioError."""
    command = ("git", "archive", "--format=tar", OLD_VERSION)
    archive = subprocess.run(command, cwd=BASE_DIR, capture_output=True, timeout=60, check=False)
    if archive.returncode:
        raise ScenarioError(f"{' '.join(command)}: {archive.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory(prefix="notifyproject-old-") as folder:
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def replace(running: Cluster, *, app: int, code: Path) -> None:
    """Replace each program of an application host by one of another version."""
    names = sorted(APPS[app].runs, key=lambda name: ORDER.index(name.partition("-")[0]))
    for name in names:
        program = running.all_programs[name]
        if program.terminate() is None:
            running.record_end(program)
        program.folder = code
        running.start(program)


@scenario(
    25,
    injects="an old version is upgraded host by host under load, and one host is put back",
    shows="P1, P2: both versions work on the same documents; 202s resume within 15 s",
    full={"rate": 25.0, "between": 30},
    short={"rate": 10.0, "between": 5},
)
def rolling_upgrade(*, rate: float, between: float) -> Findings:
    """Migrate, replace one host after the other, and put the first one back."""
    with old_code() as old, cluster(code=old, scopes=OLD_SCOPES) as running:
        load = running.start_load(count=ALL, rate=rate, body=mail)
        running.supervise(between)
        faults = []
        running.run_command("upgrade", APPS[0], set_up_commands(())["migrate"])
        steps = (
            ("first host upgraded", 0, BASE_DIR),
            ("second host upgraded", 1, BASE_DIR),
            ("first host put back", 0, old),
        )
        for name, app, code in steps:
            since = datetime.now(UTC)
            replace(running, app=app, code=code)
            running.supervise(between)
            faults.append(Fault(name=name, since=since, until=datetime.now(UTC)))
        load.stop()
        return finish(running, faults, Bound("programs replaced", len(steps) * len(APPS[0].runs)))
