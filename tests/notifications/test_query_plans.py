"""Every hot read, at more than ten thousand notifications: by an index and in its order.

The bound is 2 documents examined for each one returned, whatever else is stored.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.states import Category, Channel, DeliveryStatus, Priority
from notifications import queries, store
from notifications.models import Notification
from notifications.queries import Filter, Position
from notifications.queueing import fair_queue
from notifications.store import ClaimedDelivery
from notifyproject.db.collections import collection
from notifyproject.db.paging import Page
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, new
from tests.support.mongo.query_plans import Plan, emptied, plans

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
COUNT, BATCH, PAGE = 12_000, 1_000, 20
SMALL_CLIENT = ObjectId("d" * 24)
NOW = NOON + timedelta(hours=6)
KINDS = [("order_shipped", Category.TRANSACTIONAL), ("marketing", Category.MARKETING)]


@pytest.fixture(scope="module")
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    """Store the notifications once for all tests here: they only read."""
    names = ("notifications", "delivery_attempts")
    with django_db_blocker.unblock(), emptied(*names):
        for start in range(0, COUNT, BATCH):
            store.accept([_new(n) for n in range(start, start + BATCH)], now=NOW)
        _work_on(1_200)
        yield


def _new(number: int) -> store.NewNotification:
    """Return one of the notifications: for 60 users, of 2 clients, 1 in 6 scheduled."""
    created_at = NOON + timedelta(seconds=number)
    type_, category = KINDS[number % 7 == 0]
    return new(
        user_id=f"user-{number % 60}",
        client_id=SMALL_CLIENT if number % 20 == 0 else CLIENT,
        channels=(EMAIL, IN_APP) if number % 3 else (WHATSAPP,),
        type=type_,
        category=category,
        priority=list(Priority)[number % 4],
        entity_id=f"entity-{number % 400}" if number % 5 == 0 else None,
        external_id=f"external-{number}",
        send_at=created_at + timedelta(days=number % 6 == 0),
        created_at=created_at,
        resent_from=ObjectId(),
    )


def _work_on(count: int) -> None:
    """Let workers take some: most are sent, a few fail, fewer have an unknown outcome."""
    ids = [d["_id"] for d in collection("notifications").find({"channels": "email"}, {"_id": 1})]
    for start in range(0, count, 100):
        some = ids[start * 5 : start * 5 + 100]
        claims = store.claim(ids=some, channel=EMAIL, worker="w", now=NOW)
        begun = store.start(claims, provider="sendgrid", worker="w", now=NOW)
        outcomes = [_outcome(one, n) for n, one in enumerate(begun)]
        store.settle(outcomes, now=NOW)


def _outcome(one: ClaimedDelivery, number: int) -> store.Settlement:
    status = {0: S.FAILED, 1: S.UNKNOWN}.get(number % 25, S.SENT)
    return factories.settlement(one, status, at=NOW)


def asked(read: Callable[[], Any], name: str = "notifications") -> tuple[Any, list[Plan]]:
    with plans(name) as found:
        result = read()
    return result, found


def assert_thrifty(found: list[Plan]) -> None:
    assert found
    for plan in found:
        assert plan.is_indexed or plan.is_by_id, plan.summary
        assert not plan.sorts, plan.summary
        assert plan.examined <= 2 * max(plan.returned, 1), plan


def page(**fields: Any) -> tuple[Page, list[Plan]]:
    arguments = {name: fields.pop(name) for name in ("after", "before") if name in fields}
    filters = Filter(**{"client_id": CLIENT, **fields})
    return asked(lambda: queries.page(filters, limit=PAGE, **arguments))


def position(number: int) -> Position:
    document = collection("notifications").find_one({"external_id": f"external-{number}"})
    assert document is not None
    return Position(document["created_at"], document["_id"])


FILTERS: list[dict[str, Any]] = [
    {},
    {"user_id": "user-7"},
    {"user_id": "nobody"},
    {"type": "order_shipped"},
    {"category": "transactional"},
    {"status": "queued"},
    {"channel": "email"},
    {"delivery_status": "pending"},
    {"channel": "email", "delivery_status": "pending"},
    {"created_before": NOON + timedelta(hours=1)},
    {"created_after": NOON + timedelta(hours=1)},
    {"user_id": "user-7", "unread": True},
    {"user_id": "user-7", "created_before": NOON + timedelta(hours=1)},
    {"user_id": "user-7", "type": "order_shipped"},
]


@pytest.mark.parametrize("fields", FILTERS, ids=lambda fields: "+".join(fields) or "all")
def test_a_page_is_read_by_an_index_and_nothing_more(fields: dict[str, Any]) -> None:
    found, read = page(**fields)
    assert len(found.documents) <= PAGE
    assert_thrifty(read)


@pytest.mark.parametrize(
    "fields",
    [
        {"entity_id": "entity-5"},
        {"external_id": "external-777"},
        {"status": "partially_delivered"},
        {"status": "processing"},
        {"type": "marketing"},
        {"category": "marketing"},
        {"delivery_status": "failed"},
        {"channel": "email", "delivery_status": "failed"},
    ],
    ids="+".join,
)
def test_a_page_of_what_is_rare_is_read_by_an_index_and_nothing_more(
    fields: dict[str, Any],
) -> None:
    found, read = page(**fields)
    assert found.documents
    assert_thrifty(read)


@pytest.mark.parametrize("direction", ["after", "before"])
@pytest.mark.parametrize(
    "fields", [{}, {"user_id": "user-7"}, {"type": "order_shipped"}], ids="+".join
)
def test_a_page_deep_in_a_list_costs_what_the_first_costs(
    fields: dict[str, Any], direction: str
) -> None:
    found, read = page(**fields, **{direction: position(COUNT // 2)})
    assert len(found.documents) == PAGE
    assert_thrifty(read)


def test_a_small_clients_list_is_not_read_through_a_large_ones() -> None:
    found, read = page(client_id=SMALL_CLIENT)
    assert len(found.documents) == PAGE
    assert_thrifty(read)


def test_one_and_many_are_read_by_their_ids() -> None:
    ids = [position(number).id for number in (1, 500, 9_000)]
    found, read = asked(lambda: queries.get(notification_id=ids[0], client_id=CLIENT))
    assert found is not None
    assert_thrifty(read)
    found, read = asked(lambda: queries.get_many(ids))
    assert len(found) == 3
    assert_thrifty(read)


def test_attempts_are_read_by_their_notification() -> None:
    attempt = collection("delivery_attempts").find_one({})
    assert attempt is not None
    found, read = asked(
        lambda: queries.attempts_of(attempt["notification_id"]), "delivery_attempts"
    )
    assert len(found) == 1
    assert_thrifty(read)


@pytest.mark.parametrize("priority", list(Priority))
def test_what_is_due_is_read_from_open_work_only_oldest_first(priority: Priority) -> None:
    clients, read = asked(lambda: fair_queue.waiting_clients(priority=priority))
    assert CLIENT in clients
    assert all(plan.is_indexed and not plan.sorts and plan.examined <= 1 for plan in read)
    queue = fair_queue.FairQueue(CLIENT, EMAIL, priority)
    found, read = asked(lambda: fair_queue.due(queue, until=NOW, now=NOW, limit=50))
    assert found
    assert_thrifty(read)
    assert [one.at for one in found] == sorted(one.at for one in found)


def test_a_claim_of_a_batch_reads_the_batch() -> None:
    ids = [position(number).id for number in range(1, 50)]
    with plans("notifications") as read:
        claims = store.claim(ids=ids, channel=PUSH, worker="w", now=NOW)
    assert claims == []
    assert all(plan.is_by_id and plan.examined <= len(ids) for plan in read)


@pytest.mark.parametrize(
    ("filters", "order"),
    [
        ({}, ("-created_at", "-id")),
        ({"status": "queued"}, ("-created_at", "-id")),
        ({"user_id": "user-7"}, ("-created_at", "-id")),
        ({"type": "order_shipped"}, ("-created_at", "-id")),
        ({"external_id": "external-7"}, ()),
        ({"failed_at__isnull": False}, ("-failed_at", "-id")),
    ],
    ids=["all", "by status", "by user", "by type", "by external id", "failures"],
)
def test_the_admins_lists_are_read_by_an_index(
    filters: dict[str, Any], order: tuple[str, ...]
) -> None:
    queryset = Notification.objects.filter(**filters).order_by(*order)[:PAGE]
    found, read = asked(lambda: list(queryset))
    assert found
    assert_thrifty(read)


def test_the_beginning_of_a_user_id_is_read_by_an_index() -> None:
    queryset = Notification.objects.filter(user_id__startswith="user-59").order_by("user_id")
    found, read = asked(lambda: list(queryset[:PAGE]))
    assert len(found) == PAGE
    assert_thrifty(read)
