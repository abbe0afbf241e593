"""Distribution of tests over xdist workers: by file, long-running files first."""

import pytest

from tests.support.plugins.xdist_groups import (
    LONG,
    TOGETHER,
    FileGroupScheduler,
    pytest_collection_modifyitems,
)
from tests.support.source import ROOT


@pytest.mark.parametrize("start", [*LONG, *TOGETHER])
def test_listed_paths_exist(start: str) -> None:
    assert (ROOT / start).exists()


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/domain/test_retry.py::test_it[a::b]", "tests/domain/test_retry.py"),
        ("tests/api/test_topics.py::TestCancel::test_it", "tests/api/test_topics.py"),
        ("tests/browser/test_console.py::test_it", "tests/browser/"),
    ],
)
def test_file_or_shared_folder_is_one_unit(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, test: str, unit: str
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    assert FileGroupScheduler(pytestconfig)._split_scope(test) == unit


def test_long_running_files_come_first() -> None:
    items = [
        Item(path) for path in ("domain/b", "delivery/b", "domain/a", "delivery/a", "browser/a")
    ]
    pytest_collection_modifyitems(items)
    found = [item.nodeid.removeprefix("tests/") for item in items]
    assert found == ["browser/a", "delivery/b", "delivery/a", "domain/b", "domain/a"]


class Item:
    def __init__(self, path: str) -> None:
        self.nodeid = f"tests/{path}"
