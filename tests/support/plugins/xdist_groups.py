"""Which tests run together, and which first: a pytest plugin for runs with more than one worker.

Every file goes to one worker as a whole, so that what its tests share is made once; so do a few
folders. What takes long comes first, for nobody is to wait at the end for one worker that has a
long file left.

The marks of pytest-xdist's own ``--dist loadgroup`` have no effect with pytest 9.2.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/browser/", "tests/architecture/", "tests/notifyproject/serving/")
"""Folders that share what is dear to make: a Chromium, syntax trees of all files, a web."""
LONG = (
    *("tests/browser/", "tests/notifyproject/serving/", "tests/faults/", "tests/end_to_end/"),
    *("tests/console/test_query_plans.py", "tests/api/test_live_data.py"),
    *("tests/sandbox/test_outbox_browser.py", "tests/notifications/test_query_plans.py"),
    *("tests/delivery/", "tests/notifications/store/", "tests/monitoring/"),
)
"""What takes long, the longest first; everything else follows in its order."""


class FileGroupScheduler(LoadScopeScheduling):
    """Hands out whole files, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((folder for folder in TOGETHER if path.startswith(folder)), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileGroupScheduler:
    """Distribute the tests like this, whatever ``--dist`` says."""
    return FileGroupScheduler(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes long first."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    found = (rank for rank, start in enumerate(LONG) if nodeid.startswith(start))
    return next(found, len(LONG))
