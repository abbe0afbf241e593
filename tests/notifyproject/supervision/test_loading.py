"""What a loaded parent has before it forks, and what its children get.

Others shared a connection of the parent between its children (gunicorn#1953), lost its threads
(gunicorn#1666), got the same random values in each (uuid-utils#42), or never ended, because a child
had the signal mask of its parent (ngx_http_pipelog_module#16).
"""

import json
import re
import signal
from typing import Any

import pytest

from tests.support.subprocess import python

pytestmark = pytest.mark.usefixtures("db")
PARENT = "tests.notifyproject.supervision.loaded_parent"


@pytest.fixture(scope="module")
def lines(_database: None) -> dict[str, list[Any]]:
    """Return what each process has printed."""
    found: dict[str, list[Any]] = {}
    for line in python("-m", PARENT).splitlines():
        if match := re.fullmatch(r"(\w+) +\| ([{\"].*)", line):
            found.setdefault(match[1], []).append(json.loads(match[2]))
    return found


@pytest.fixture
def parent(lines: dict[str, list[Any]]) -> dict[str, Any]:
    return lines["stack"][0]


@pytest.fixture
def children(lines: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [lines[name][0] for name in ("one", "two")]


def test_parent_has_one_thread_and_no_connection(parent: dict[str, Any]) -> None:
    assert parent["threads"] == 1
    assert parent["mongodb_clients"] == parent["valkey_clients"] == parent["loops"] == 0
    assert set(parent["files"]) == {"0", "1", "2"}


def test_parent_has_no_name_of_a_worker(parent: dict[str, Any]) -> None:
    assert parent["worker_names"] == 0


def test_garbage_collection_of_a_child_leaves_loaded_objects_alone(parent: dict[str, Any]) -> None:
    assert parent["frozen"] > 100_000
    assert parent["is_collecting"]


def test_child_has_only_its_own_files(children: list[dict[str, Any]]) -> None:
    for child in children:
        assert child["files"]["0"] == "/dev/null"
        assert child["files"]["1"] == child["files"]["2"]
        assert set(child["files"]) == {"0", "1", "2"}
    assert children[0]["files"]["1"] != children[1]["files"]["1"]


def test_child_handles_signals_as_a_new_program(children: list[dict[str, Any]]) -> None:
    for child in children:
        assert child["mask"] == 0
        assert "default_int_handler" in child["handlers"].pop("SIGINT")
        assert child["handlers"].pop("SIGPIPE") == str(signal.SIG_IGN)
        assert set(child["handlers"].values()) == {str(signal.SIG_DFL)}


def test_child_leads_a_session_under_the_name_of_its_program(
    children: list[dict[str, Any]],
) -> None:
    assert all(child["is_leader"] for child in children)
    assert [child["name"] for child in children] == ["one", "two"]
    assert [child["arguments"] for child in children] == [["--an-argument"]] * 2


def test_random_values_and_names_differ_between_children(children: list[dict[str, Any]]) -> None:
    for one, other in zip(*(child["differs"] for child in children), strict=True):
        assert one != other


def test_child_connects_to_the_stores_by_itself(children: list[dict[str, Any]]) -> None:
    for child in children:
        assert child["threads"] == 1
        assert not child["has_loop"]
        assert [w for w in child["warnings"] if "fork" in w] == []


def test_child_ends_after_its_threads_and_exit_functions(lines: dict[str, list[Any]]) -> None:
    for name in ("one", "two"):
        assert lines[name][1:] == ["thread", "atexit"]
