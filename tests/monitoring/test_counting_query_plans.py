"""Query plans of counting and purging."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.states import DeliveryStatus, Priority
from monitoring import statistics
from monitoring.statistics import GroupBy, StatisticsFilter
from notifications.queueing import backlog
from notifications.store import acceptance, removal
from notifications.store.new_notifications import NewNotification
from notifyproject.db.collections import collection
from privacy import purge
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, new
from tests.support.mongo.query_plans import Plan, emptied, plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

EMAIL, IN_APP = Channel.EMAIL, Channel.IN_APP
S = DeliveryStatus
COUNT, BATCH = 3_000, 1_000
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
NOW = NOON + timedelta(hours=6)
SMALL_CLIENT = ObjectId("d" * 24)


@pytest.fixture(scope="module")
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    """Store the notifications once per module: the tests only read."""
    with django_db_blocker.unblock(), emptied("notifications", "delivery_attempts"):
        for start in range(0, COUNT, BATCH):
            acceptance.accept([_new(n) for n in range(start, start + BATCH)], now=NOW)
        yield


def _new(number: int) -> NewNotification:
    """Return a notification: half are open, 1 in 20 belongs to a small client."""
    created_at = NOON + number * SECOND
    return new(
        user_id=f"user-{number % 50}",
        client_id=SMALL_CLIENT if number % 20 == 0 else CLIENT,
        channels=(EMAIL,) if number % 2 else (IN_APP,),
        type=("order_shipped", "new_sale")[number % 3 == 0],
        priority=list(Priority)[number % 4],
        send_at=created_at,
        created_at=created_at,
    )


def reads(read: Any) -> tuple[Any, list[Plan]]:
    with plans("notifications") as found:
        result = read()
    return result, found


def test_backlog_is_measured_by_the_index_alone() -> None:
    found, read = reads(lambda: backlog.measure_backlog(now=NOW, cap=COUNT))
    assert found.due == COUNT // 2
    assert found.oldest_due_at == NOON + SECOND
    assert all(plan.is_indexed and plan.examined == 0 and not plan.sorts for plan in read)


def test_backlog_is_not_counted_beyond_its_cap() -> None:
    found, read = reads(lambda: backlog.measure_backlog(now=NOW, cap=101))
    assert found.due == 101
    assert sum(plan.keys for plan in read) <= 101 + 2 * len(Priority)


@each_case("by", [group for group in GroupBy if group is not GroupBy.PLATFORM])
@each_case(
    "selection, count, first",
    [
        (StatisticsFilter(client_id=SMALL_CLIENT), COUNT // 20, "client_id"),
        (StatisticsFilter(client_id=CLIENT, user_id="user-7"), COUNT // 50, "user_id"),
    ],
)
def test_statistics_read_only_the_selected_notifications(
    selection: StatisticsFilter, count: int, first: str, by: GroupBy
) -> None:
    found, read = reads(lambda: statistics.count_notifications(selection, by=by))
    assert found.counted == count
    assert_read_once(read, count, first)


def test_statistics_of_a_time_span_read_only_it() -> None:
    since, until = NOON + 1_000 * SECOND, NOON + 1_100 * SECOND
    span = StatisticsFilter(client_id=CLIENT, created_after=since, created_before=until)
    found, read = reads(lambda: statistics.count_notifications(span, by=GroupBy.STATUS))
    assert found.counted == 95
    assert_read_once(read, 95, "client_id")


def test_statistics_by_platform_read_only_pushes_and_their_attempts() -> None:
    pushes = [
        new(channels=(Channel.PUSH,), created_at=NOON + number * SECOND) for number in range(30)
    ]
    acceptance.accept(pushes, now=NOW)
    ids = {"_id": {"$in": [push.id for push in pushes]}}
    collection("delivery_attempts").insert_many(
        [
            {
                "_id": f"{push.id}.push.1.{device}",
                "notification_id": push.id,
                "device_id": device,
                "attempt_number": 1,
                "status": "sent",
                "platform": "ios",
            }
            for push in pushes
            for device in ("a", "b")
        ]
    )
    # The small client's list is the shorter way if it sends few notifications.
    small = StatisticsFilter(client_id=SMALL_CLIENT)
    every = StatisticsFilter(client_id=CLIENT)
    try:
        found, read = reads(lambda: statistics.count_notifications(every, by=GroupBy.PLATFORM))
        nothing, short = reads(lambda: statistics.count_notifications(small, by=GroupBy.PLATFORM))
    finally:
        collection("notifications").delete_many(ids)
        collection("delivery_attempts").delete_many({})
    assert [(group.value, group.total) for group in found.groups] == [("ios", 60)]
    (plan,) = read
    assert plan.summary.startswith("IXSCAN { delivery.channel: 1")
    assert not plan.sorts
    assert plan.examined <= 30 + 60 + 1
    assert nothing.groups == []
    assert sum(plan.examined for plan in short) <= COUNT // 20


def assert_read_once(read: list[Plan], count: int, first: str) -> None:
    (plan,) = read
    assert plan.summary.startswith(f"IXSCAN {{ {first}: 1")
    assert not plan.sorts
    assert plan.examined == count


@each_case(
    "client_id, first, count",
    [(None, "status", COUNT // 2), (SMALL_CLIENT, "client_id", COUNT // 20)],
)
def test_purgeable_notifications_are_found_by_an_index_oldest_first(
    client_id: ObjectId | None, first: str, count: int
) -> None:
    """Each notification is examined at most once, even notifications that have not ended."""
    found, read = reads(
        lambda: purge.count_purgeable(
            client_id=client_id, older_than=DAY, at_most=None, now=NOW + 2 * DAY
        )
    )
    assert found.notifications == count
    assert all(plan.summary.startswith(f"IXSCAN {{ {first}: ") for plan in read)
    assert not any(plan.sorts for plan in read)
    everything = collection("notifications").count_documents(
        {} if client_id is None else {"client_id": client_id}
    )
    assert sum(plan.examined for plan in read) <= everything + len(read)


def test_purge_finds_notifications_by_id() -> None:
    ids = [d["_id"] for d in collection("notifications").find({}, {"_id": 1}).limit(100)]
    found, read = reads(lambda: removal.purge(ids=ids, before=NOON))
    assert found.notifications == 0
    assert all(plan.is_by_id and plan.examined <= len(ids) for plan in read)


def test_purge_finds_attempts_by_notification() -> None:
    document = factories.settled(S.SENT, created_at=NOON - 10 * DAY, at=NOON - 10 * DAY)
    with plans("delivery_attempts") as read:
        removal.purge(ids=[document["_id"]], before=NOON - DAY)
    (plan,) = read
    assert plan.is_indexed
    assert plan.examined == 1
