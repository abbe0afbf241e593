"""Every boundary is in the code once, belongs to a scenario, and stops a process."""

import ast
import os
import signal
import subprocess
import sys
from functools import cache

import pytest
from django.core.exceptions import ImproperlyConfigured

from bench.chaos.boundaries import BOUNDARY_CASES
from notifyproject.platform.crash_points import Boundary, make_reach
from notifyproject.settings.environment import BASE_DIR
from tests.support.source import SERVICE, calls, files
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

PROGRAM = (
    "from notifyproject.platform import crash_points\n"
    "for _ in range(3): crash_points.reach(crash_points.Boundary.CLAIMED)"
)


@cache
@cache
def places() -> list[str]:
    """Return the name of the boundary at each call of ``crash_points.reach``."""
    return [
        ast.unparse(call.args[0]).rpartition(".")[2]
        for path in files(*SERVICE)
        for _, call in calls(path)
        if ast.unparse(call.func) == "crash_points.reach"
    ]


@each_case("boundary", Boundary)
def test_boundary_is_in_the_code_once(boundary: Boundary) -> None:
    assert places().count(boundary.name) == 1


@each_case("boundary", Boundary)
def test_boundary_is_in_the_crash_scenario(boundary: Boundary) -> None:
    assert boundary in BOUNDARY_CASES


def run(**environment: str) -> subprocess.Popen[bytes]:
    """Start a process that reaches a boundary three times."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=BASE_DIR, env={**os.environ, **environment}
    )


def test_process_is_killed_only_at_its_boundary() -> None:
    ends = {
        name: run(CRASH_AT=name) for name in ("claimed", "claimed:3", "claimed:4", "settled", "")
    }
    killed = {name for name, end in ends.items() if end.wait(LIMIT) == -signal.SIGKILL}
    assert killed == {"claimed", "claimed:3"}
    assert {end.returncode for name, end in ends.items() if name not in killed} == {0}


def test_process_is_frozen_at_its_boundary_until_continued() -> None:
    process = run(FREEZE_AT="claimed:2")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    assert process.wait(LIMIT) == 0


@each_case("wanted", ["nowhere", "claimed:x", "claimed:-1", "CLAIMED"])
def test_unknown_boundary_is_refused(wanted: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="is not a boundary"):
        make_reach(wanted)
