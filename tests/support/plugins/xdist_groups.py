"""A pytest plugin that orders and distributes tests over several workers.

Each file, and each of some folders, goes to one worker, which creates shared fixtures once. Long-
running files come first. The marks of pytest-xdist's ``--dist loadgroup`` have no effect with
pytest 9.2.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/architecture/", "tests/notifyproject/serving/")
"""Folders that share expensive fixtures: syntax trees, a web process.

The tests of the browser share a Chromium, too, but take longer than a worker has in all.
"""
LONG = (
    "tests/browser/",
    "tests/notifyproject/serving/",
    "tests/faults/",
    "tests/end_to_end/",
    "tests/console/test_query_plans.py",
    "tests/api/test_live_data.py",
    "tests/sandbox/test_outbox_browser.py",
    "tests/notifications/test_query_plans.py",
    "tests/delivery/",
    "tests/notifications/store/",
    "tests/monitoring/",
)
"""Long-running files, longest first."""


class FileGroupScheduler(LoadScopeScheduling):
    """Assigns whole files or folders to workers, in collection order."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((folder for folder in TOGETHER if path.startswith(folder)), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileGroupScheduler:
    """Use FileGroupScheduler for any ``--dist``."""
    return FileGroupScheduler(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long-running tests first."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    found = (rank for rank, start in enumerate(LONG) if nodeid.startswith(start))
    return next(found, len(LONG))
