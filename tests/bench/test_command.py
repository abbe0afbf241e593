"""``python -m bench`` starts outside the tests, whose settings and environment it hasn't."""

import os
import subprocess
import sys

from django.conf import settings


def run(*arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
    command = [sys.executable, *arguments]
    result = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


def test_command_lists_its_goals() -> None:
    assert "GOAL" in run("-m", "bench", "--help")


def test_measures_are_imported_before_the_servers_start() -> None:
    run("-c", "import bench.measures")


def test_path_needs_nothing_that_is_installed() -> None:
    # -S: without the installed packages
    assert "In all: " in run("-S", "-m", "bench", "path")
