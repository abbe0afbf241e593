"""A run with several workers: files stay whole, and what takes long comes first."""

import pytest

from tests.support.plugins.xdist_groups import (
    LONG,
    TOGETHER,
    FileGroupScheduler,
    pytest_collection_modifyitems,
)
from tests.support.source import ROOT


@pytest.mark.parametrize("start", [*LONG, *TOGETHER])
def test_what_is_named_is_there(start: str) -> None:
    assert (ROOT / start).exists()


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/domain/test_retry.py::test_it[a::b]", "tests/domain/test_retry.py"),
        ("tests/api/test_topics.py::TestCancel::test_it", "tests/api/test_topics.py"),
        ("tests/browser/test_console.py::test_it", "tests/browser/"),
    ],
)
def test_a_file_or_a_folder_that_shares_much_goes_to_one_worker(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, test: str, unit: str
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    assert FileGroupScheduler(pytestconfig)._split_scope(test) == unit


def test_what_takes_long_comes_first_and_the_rest_stays_in_its_order() -> None:
    items = [
        Item(path) for path in ("domain/b", "delivery/b", "domain/a", "delivery/a", "browser/a")
    ]
    pytest_collection_modifyitems(items)
    found = [item.nodeid.removeprefix("tests/") for item in items]
    assert found == ["browser/a", "delivery/b", "delivery/a", "domain/b", "domain/a"]


class Item:
    """A test, by its name alone."""

    def __init__(self, path: str) -> None:
        self.nodeid = f"tests/{path}"
