"""Topic members: joins, pages, and batches."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor
from recipients import topics
from recipients.topics import join, leave_all, member_id, members, memberships_of, next_members
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")


def fill(topic: str, count: int, *, first: int = 0) -> None:
    collection("topic_members").insert_many(
        {
            "_id": member_id(topic, f"user-{n:05d}"),
            "topic": topic,
            "user_id": f"user-{n:05d}",
            "created_at": NOON,
        }
        for n in range(first, first + count)
    )


def test_concurrent_joins_create_one_member() -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: join(topic="news", user_id="ada", now=NOON), range(16)))
    assert [document["user_id"] for document in members(topic="news", limit=9).documents] == ["ada"]


def test_user_id_with_a_colon_stays_in_its_topic() -> None:
    join(topic="a", user_id="b:c", now=NOON)
    join(topic="a-b", user_id="c", now=NOON)
    assert next_members("a") == ["b:c"]
    assert next_members("a-b") == ["c"]


def test_members_are_read_once_in_order() -> None:
    fill("news", 25)
    fill("newt", 5)
    seen: list[str] = []
    while batch := next_members("news", after=seen[-1] if seen else None, limit=10):
        seen += batch
    assert seen == [f"user-{n:05d}" for n in range(25)]


def test_changes_during_reading_repeat_no_member() -> None:
    fill("news", 10, first=10)
    first = next_members("news", limit=5)
    join(topic="news", user_id="user-00000", now=NOON)
    topics.leave(topic="news", user_id=first[-1])
    rest = next_members("news", after=first[-1])
    assert [*first, *rest] == [f"user-{n:05d}" for n in range(10, 20)]


@pytest.mark.parametrize("backwards", [None, False, True])
def test_page_is_read_by_an_index_in_order(backwards: bool | None) -> None:
    fill("news", 3_000)
    fill("other", 500)
    position = (member_id("news", "user-01500"),)
    cursor = None if backwards is None else Cursor(position, backwards=backwards)
    with plans("topic_members") as found:
        page = members(topic="news", limit=100, cursor=cursor)
    (plan,) = found
    assert len(page.documents) == 100
    assert plan.is_indexed
    assert not plan.sorts
    assert plan.examined <= 2 * plan.returned


def test_batch_is_read_by_an_index_in_order() -> None:
    fill("news", 3_000)
    with plans("topic_members") as found:
        next_members("news", after="user-01499", limit=1_000)
    (plan,) = found
    assert (plan.returned, plan.sorts) == (1_001, False)
    assert plan.examined <= 1_001


def test_memberships_are_found_and_left_by_an_index() -> None:
    fill("news", 1_000)
    for topic in ("sales", "alerts"):
        join(topic=topic, user_id="user-00007", now=NOON)
    with plans("topic_members") as found:
        mine = memberships_of("user-00007")
        assert leave_all("user-00007") == 3
    assert [membership["topic"] for membership in mine] == ["alerts", "news", "sales"]
    for plan in found:
        assert plan.is_indexed
        assert not plan.sorts
        assert plan.examined <= 3
    assert leave_all("user-00007") == 0


def test_names_are_read_by_one_key_of_each_topic() -> None:
    for topic in ("news", "newt", "old", "older"):
        fill(topic, 200)
    with plans("topic_members") as found:
        assert topics.names(limit=2) == ["news", "newt"]
        assert topics.names(after="newt", limit=2) == ["old", "older"]
    for plan in found:
        assert plan.summary.startswith("DISTINCT_SCAN"), plan
        assert (plan.examined, plan.returned) == (0, 2), plan
        assert plan.keys <= 5, plan
