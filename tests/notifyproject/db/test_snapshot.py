"""Reads of several collections at one cluster time."""

import pytest
from bson import Timestamp
from pymongo.errors import OperationFailure

from notifyproject.db.collections import Snapshot, collection, read_snapshot
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


@pytest.mark.parametrize("code", [239, 246])
def test_read_is_repeated_with_a_new_snapshot_when_the_old_one_is_gone(code: int) -> None:
    visit("a")
    times: list[Timestamp] = []

    def read(snapshot: Snapshot) -> list[dict[str, int]]:
        snapshot.aggregate("inbox_visits", COUNT)
        times.append(snapshot.time)
        if len(times) > 1:
            return snapshot.aggregate("inbox_visits", COUNT)
        visit("b")
        with fail_commands("aggregate", "inbox_visits", {"errorCode": code}):
            return snapshot.aggregate("inbox_visits", COUNT)

    assert read_snapshot(read) == [{"n": 2}]
    assert times[0] < times[1]


@pytest.mark.parametrize(("code", "times"), [(239, 5), (13, 1)])
def test_another_error_and_a_snapshot_that_is_gone_each_time_are_raised(
    code: int, times: int
) -> None:
    visit("a")
    with (
        fail_commands("aggregate", "inbox_visits", {"errorCode": code}, times=times),
        pytest.raises(OperationFailure),
    ):
        read_snapshot(lambda snapshot: snapshot.aggregate("inbox_visits", COUNT))
