"""Query plans of frequent reads among 12,000 notifications: at most 2 examined per result."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Recipient
from domain.states import Category, DeliveryStatus, Phase, Priority
from notifications import queries
from notifications.documents.notification import NotificationDocument
from notifications.models import Notification
from notifications.queries import Filter, Ordering
from notifications.queueing import fair_queue
from notifications.store import acceptance, inbox, leases
from notifications.store.claims import ClaimedDelivery, Settlement
from notifications.store.inbox import Inbox
from notifications.store.new_notifications import NewNotification
from notifyproject.db.collections import collection
from notifyproject.db.paging import Page, cursor_of_document
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, new
from tests.support.mongo.query_plans import Plan, emptied, plans

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
COUNT, BATCH, PAGE = 12_000, 1_000, 20
SMALL_CLIENT = ObjectId("d" * 24)
NOW = NOON + timedelta(hours=6)
KINDS = [("order_shipped", Category.TRANSACTIONAL), ("marketing", Category.MARKETING)]


@pytest.fixture(scope="module")
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    """Store the notifications once per module: the tests only read."""
    names = ("notifications", "delivery_attempts")
    with django_db_blocker.unblock(), emptied(*names):
        for start in range(0, COUNT, BATCH):
            acceptance.accept([_new(n) for n in range(start, start + BATCH)], now=NOW)
        _work_on(1_200)
        yield


def _new(number: int) -> NewNotification:
    """Return a notification: 60 users, 2 clients, 1 in 6 scheduled."""
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
        source="rare" if number % 500 == 0 else None,
        idempotency_key=f"key-{number}",
        recipient=Recipient(email=f"p{number % 600}@example.com"),
        send_at=created_at + timedelta(days=number % 6 == 0),
        scheduled_at=created_at + timedelta(days=1) if number % 6 == 0 else None,
        created_at=created_at,
        resent_from=ObjectId(),
    )


def _work_on(count: int) -> None:
    """Settle some deliveries: most as sent, a few as failed or unknown."""
    ids = [d["_id"] for d in collection("notifications").find({"channels": "email"}, {"_id": 1})]
    for start in range(0, count, 100):
        some = ids[start * 5 : start * 5 + 100]
        claims = leases.claim(ids=some, channel=EMAIL, worker="w", now=NOW)
        begun = leases.start(claims, provider="sendgrid", worker="w", now=NOW)
        leases.settle([_outcome(delivery, n) for n, delivery in enumerate(begun)], now=NOW)


def _outcome(claim: ClaimedDelivery, number: int) -> Settlement:
    status = {0: S.FAILED, 1: S.UNKNOWN}.get(number % 25, S.SENT)
    return factories.settlement(claim, status, at=NOW)


def explain(read: Callable[[], Any], name: str = "notifications") -> tuple[Any, list[Plan]]:
    with plans(name) as found:
        result = read()
    return result, found


def assert_efficient(found: list[Plan]) -> None:
    assert found
    for plan in found:
        assert plan.is_indexed or plan.is_by_id, plan.summary
        assert not plan.sorts, plan.summary
        assert plan.examined <= 2 * max(plan.returned, 1), plan


def page(**fields: Any) -> tuple[Page[Any], list[Plan]]:
    arguments = {name: fields.pop(name) for name in ("cursor", "ordering") if name in fields}
    filters = Filter(**{"client_id": CLIENT, **fields})
    return explain(lambda: queries.page(filters, limit=PAGE, **arguments))


def stored(number: int) -> NotificationDocument:
    document = collection("notifications").find_one({"external_id": f"external-{number}"})
    assert document is not None
    return document


FILTERS: list[dict[str, Any]] = [
    {},
    {"user_id": "user-7"},
    {"user_id": "nobody"},
    {"type": "order_shipped"},
    {"category": "transactional", "category_types": ("order_shipped",)},
    {"statuses": ("queued",)},
    {"statuses": ("queued", "sent")},
    *({"phases": (phase,)} for phase in Phase),
    {"phases": (Phase.PENDING, Phase.SENT), "statuses": ("queued", "sent", "failed")},
    {"user_id": "user-7", "phases": (Phase.FAILED,)},
    {"ordering": Ordering.SCHEDULED, "phases": (Phase.PENDING,)},
    {"channel": "email"},
    {"delivery_statuses": ("pending",)},
    {"channel": "email", "delivery_statuses": ("pending",)},
    {"channel": "email", "delivery_statuses": ("pending", "sent")},
    {"ordering": Ordering.OLDEST},
    {"ordering": Ordering.OLDEST, "statuses": ("queued", "sent")},
    {"ordering": Ordering.SCHEDULED},
    {"ordering": Ordering.SCHEDULED_LAST},
    {"ordering": Ordering.SCHEDULED, "statuses": ("created",)},
    {"ordering": Ordering.SCHEDULED, "statuses": ("queued", "created")},
    {"ordering": Ordering.SCHEDULED, "client_id": SMALL_CLIENT},
    {"ordering": Ordering.SCHEDULED, "scheduled_after": NOON + timedelta(days=1, hours=1)},
    {"ordering": Ordering.SCHEDULED_LAST, "scheduled_before": NOON + timedelta(days=1, hours=1)},
    {"created_before": NOON + timedelta(hours=1)},
    {"created_after": NOON + timedelta(hours=1)},
    {"user_id": "user-7", "unread": True},
    {"user_id": "user-7", "unread": True, "channel": "in_app"},
    {"user_id": "user-7", "created_before": NOON + timedelta(hours=1)},
    {"user_id": "user-7", "type": "order_shipped"},
    {"is_active": False},
    {"is_active": False, "user_id": "user-7"},
]


@pytest.mark.parametrize("fields", FILTERS, ids=lambda fields: "+".join(fields) or "all")
def test_page_is_read_by_an_index(fields: dict[str, Any]) -> None:
    found, read = page(**fields)
    assert len(found.documents) <= PAGE
    assert_efficient(read)


@pytest.mark.parametrize(
    "fields",
    [
        {"entity_id": "entity-5"},
        {"external_id": "external-777"},
        {"client_id": SMALL_CLIENT, "source": "rare"},
        {"statuses": ("partially_delivered",)},
        {"statuses": ("processing",)},
        {"statuses": ("partially_delivered", "processing")},
        {"type": "marketing"},
        {"category": "marketing", "category_types": ("marketing",)},
        {"delivery_statuses": ("failed",)},
        {"delivery_statuses": ("failed", "unknown")},
        {"channel": "email", "delivery_statuses": ("failed",)},
    ],
    ids="+".join,
)
def test_page_of_rare_values_is_read_by_an_index(fields: dict[str, Any]) -> None:
    found, read = page(**fields)
    assert found.documents
    assert_efficient(read)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    "fields", [{}, {"user_id": "user-7"}, {"type": "order_shipped"}], ids="+".join
)
def test_deep_page_costs_the_same_as_the_first(fields: dict[str, Any], backwards: bool) -> None:
    middle = stored(COUNT // 2)
    cursor = cursor_of_document(middle, Ordering.NEWEST.order, backwards=backwards)
    found, read = page(**fields, cursor=cursor)
    assert len(found.documents) == PAGE
    assert_efficient(read)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("ordering", [Ordering.SCHEDULED, Ordering.SCHEDULED_LAST])
def test_deep_page_of_the_schedule_costs_the_same(ordering: Ordering, backwards: bool) -> None:
    (middle,) = (
        collection("notifications").find({"scheduled_at": {"$exists": True}}).skip(900).limit(1)
    )
    cursor = cursor_of_document(middle, ordering.order, backwards=backwards)
    found, read = page(ordering=ordering, cursor=cursor)
    assert len(found.documents) == PAGE
    assert_efficient(read)


@pytest.mark.parametrize("statuses", [(), ("created",)])
def test_schedule_of_a_recipient_reads_no_others(statuses: tuple[str, ...]) -> None:
    """A recipient has few notifications, so they may be sorted in memory."""
    count = collection("notifications").count_documents({"user_id": "user-6"})
    found, read = page(user_id="user-6", ordering=Ordering.SCHEDULED, statuses=statuses)
    assert found.documents
    assert all(plan.is_indexed for plan in read)
    assert sum(plan.examined for plan in read) <= count


def test_read_all_reads_the_recipients_history_alone() -> None:
    nobody = Inbox(CLIENT, "nobody")
    marked, read = explain(lambda: inbox.mark_part_read(inbox=nobody, limit=9, now=NOW))
    assert (marked.count, marked.has_more, marked.end) == (0, False, None)
    assert_efficient(read)


def test_unread_of_a_recipient_who_read_nearly_all_reads_no_others() -> None:
    user = {"user_id": "user-8"}
    ids = [document["_id"] for document in collection("notifications").find(user, {"_id": 1})]
    mark = {"$set": {"is_read": True}}
    collection("notifications").update_many({"_id": {"$in": ids[:-3]}}, mark)
    try:
        found, read = page(**user, unread=True)
    finally:
        collection("notifications").update_many({"_id": {"$in": ids}}, {"$set": {"is_read": False}})
    assert len(ids) > 100
    assert sum(plan.examined for plan in read) <= 3
    assert len(found.documents) <= 3


def test_list_of_a_small_client_reads_no_others() -> None:
    found, read = page(client_id=SMALL_CLIENT)
    assert len(found.documents) == PAGE
    assert_efficient(read)


def test_notifications_are_read_by_id() -> None:
    ids = [stored(number)["_id"] for number in (1, 500, 9_000)]
    found, read = explain(lambda: queries.get(notification_id=ids[0], client_id=CLIENT))
    assert found is not None
    assert_efficient(read)
    found, read = explain(lambda: queries.get_many(ids))
    assert len(found) == 3
    assert_efficient(read)


def test_messages_of_a_provider_are_read_by_their_ids() -> None:
    known, read = explain(lambda: queries.by_provider_message(["sg-1"]))
    assert known
    assert_efficient(read)


def test_tested_addresses_are_read_alone() -> None:
    emails = ["p7@example.com", "P8@example.com"]
    found, read = explain(lambda: queries.only_tested(Channel.EMAIL, emails))
    assert found == set()
    assert_efficient(read)


@pytest.mark.parametrize(("user_id", "is_known"), [("user-1", True), ("user-99", False)])
def test_whether_a_user_was_sent_to_reads_one(user_id: str, *, is_known: bool) -> None:
    found, read = explain(lambda: queries.was_sent_to(user_id))
    assert found is is_known
    assert all(plan.is_indexed and plan.examined <= 1 for plan in read)


def test_pending_of_an_entity_are_read_alone() -> None:
    entity: dict[str, Any] = {"client_id": CLIENT, "entity_id": "entity-5"}
    found, read = explain(lambda: queries.pending_of_entity(**entity, type_slug=None, user_id=None))
    assert found
    assert_efficient(read)


def test_attempts_are_read_by_notification() -> None:
    attempt = collection("delivery_attempts").find_one({})
    assert attempt is not None
    found, read = explain(
        lambda: queries.attempts_of(attempt["notification_id"]), "delivery_attempts"
    )
    assert len(found) == 1
    assert_efficient(read)


@pytest.mark.parametrize("priority", list(Priority))
def test_due_deliveries_are_read_from_open_work_oldest_first(priority: Priority) -> None:
    clients, read = explain(lambda: fair_queue.waiting_clients(priority=priority))
    assert CLIENT in clients
    assert all(plan.is_indexed and not plan.sorts and plan.examined <= 1 for plan in read)
    queue = fair_queue.FairQueue(CLIENT, EMAIL, priority)
    found, read = explain(lambda: fair_queue.due(queue, until=NOW, now=NOW, limit=50))
    assert found
    assert_efficient(read)
    assert [shown.at for shown in found] == sorted(shown.at for shown in found)


def test_claim_reads_only_its_batch() -> None:
    ids = [stored(number)["_id"] for number in range(1, 50)]
    with plans("notifications") as read:
        claims = leases.claim(ids=ids, channel=PUSH, worker="w", now=NOW)
    assert claims == []
    assert all(plan.is_by_id and plan.examined <= len(ids) for plan in read)


def test_user_id_prefix_uses_an_index() -> None:
    queryset = Notification.objects.filter(user_id__startswith="user-59").order_by("user_id")
    found, read = explain(lambda: list(queryset[:PAGE]))
    assert len(found) == PAGE
    assert_efficient(read)
