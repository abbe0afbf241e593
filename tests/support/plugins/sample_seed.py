"""A pytest plugin that gives all processes of a run one seed, and prints it after a failure."""

from typing import Any

from tests.support.samples import SEED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how to repeat a failed run's samples."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"The samples of this run: TEST_SEED={SEED}")
