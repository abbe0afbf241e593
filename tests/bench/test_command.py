"""``python -m bench`` starts."""

import subprocess
import sys

from django.conf import settings


def test_command_lists_its_goals() -> None:
    command = [sys.executable, "-m", "bench", "--help"]
    result = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    assert b"GOAL" in result.stdout
