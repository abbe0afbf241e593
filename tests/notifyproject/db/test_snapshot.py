"""Reads of several collections at one cluster time."""

import pytest

from notifyproject.db.collections import Snapshot, collection
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import fail_commands

pytestmark = pytest.mark.usefixtures("db")
COUNT = [{"$count": "n"}]


def visit(name: str) -> None:
    collection("inbox_visits").insert_one({"_id": name, "seen_until": NOON})


def test_later_reads_do_not_see_what_was_written_since_the_first() -> None:
    visit("a")
    snapshot = Snapshot()
    assert snapshot.aggregate("inbox_visits", COUNT) == [{"n": 1}]
    visit("b")
    assert snapshot.aggregate("inbox_visits", COUNT) == [{"n": 1}]
    later = Snapshot()
    assert later.aggregate("inbox_visits", COUNT) == [{"n": 2}]
    assert later.time > snapshot.time


def test_time_is_unknown_before_the_first_read() -> None:
    with pytest.raises(RuntimeError, match="nothing was read"):
        _ = Snapshot().time


def test_lost_connection_is_tried_again_once() -> None:
    visit("a")
    with fail_commands("aggregate", "inbox_visits", {"closeConnection": True}):
        assert Snapshot().aggregate("inbox_visits", COUNT) == [{"n": 1}]
