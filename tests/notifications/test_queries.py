"""Notification queries: results and order."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Recipient
from domain.states import Category, DeliveryStatus, Priority
from notifications import queries
from notifications.documents.notification import NotificationDocument
from notifications.queries import Filter, Ordering
from notifications.queueing import fair_queue
from notifications.queueing.fair_queue import Due, FairQueue
from notifications.store import acceptance, actions, inbox, leases
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page, cursor_of_document
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    CLIENT,
    NOON,
    accepted,
    claim,
    claimed,
    start,
    started,
)
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
OTHER_CLIENT = ObjectId("d" * 24)


def listed(limit: int = 20, **fields: Any) -> list[ObjectId]:
    return [d["_id"] for d in page(limit, **fields).documents]


def page(limit: int = 20, **fields: Any) -> Page[Any]:
    where = {name: fields.pop(name) for name in ("cursor", "ordering") if name in fields}
    return queries.page(Filter(**({"client_id": CLIENT} | fields)), limit=limit, **where)


def after(document: NotificationDocument) -> Cursor:
    return cursor_of_document(document, Ordering.NEWEST.order)


def before(document: NotificationDocument) -> Cursor:
    return cursor_of_document(document, Ordering.NEWEST.order, backwards=True)


def test_get_returns_a_notification_by_id() -> None:
    document = accepted()
    assert queries.get(notification_id=document["_id"]) == factories.read(document["_id"])
    assert queries.get(notification_id=ObjectId()) is None


def test_get_many_returns_notifications_by_id() -> None:
    documents = [accepted() for _ in range(3)]
    found = queries.get_many([d["_id"] for d in documents] + [ObjectId()])
    assert {d["_id"] for d in found} == {d["_id"] for d in documents}
    assert queries.get_many([]) == []


def test_list_is_newest_first() -> None:
    documents = [accepted(created_at=NOON + n * SECOND) for n in (2, 0, 1)]
    assert listed() == [documents[n]["_id"] for n in (0, 2, 1)]


@pytest.fixture
def whole() -> list[ObjectId]:
    """Return the IDs of notifications, of which some are of the same millisecond."""
    documents = [accepted(created_at=NOON + (n // 4) * SECOND) for n in range(14)]
    return [d["_id"] for d in sorted(documents, key=lambda d: (d["created_at"], d["_id"]))][::-1]


@each_case("limit", [1, 2, 3, 5, 7, 100])
def test_forward_and_backward_pages_hold_everything_once(whole: list[ObjectId], limit: int) -> None:
    """https://github.com/activepieces/activepieces/pull/14323 and
    https://github.com/encode/django-rest-framework/issues/7709
    """
    forwards, current = [], page(limit)
    forwards.append(current)
    while current.has_next:
        current = page(limit, cursor=after(current.documents[-1]))
        forwards.append(current)
    assert [d["_id"] for p in forwards for d in p.documents] == whole
    backwards = [current]
    while current.has_previous:
        current = page(limit, cursor=before(current.documents[0]))
        backwards.insert(0, current)
    assert [d["_id"] for p in backwards for d in p.documents] == whole


def test_page_knows_its_neighbors() -> None:
    documents = [accepted(created_at=NOON + n * SECOND) for n in range(4)][::-1]
    first, second = page(2), page(2, cursor=after(documents[1]))
    assert (first.has_previous, first.has_next) == (False, True)
    assert (second.has_previous, second.has_next) == (True, False)
    again = page(2, cursor=before(documents[2]))
    assert [d["_id"] for d in again.documents] == [d["_id"] for d in documents[:2]]
    assert (again.has_previous, again.has_next) == (False, True)


def test_new_notification_does_not_shift_the_next_page() -> None:
    documents = [accepted(created_at=NOON + n * SECOND) for n in range(4)][::-1]
    page(2)
    accepted(created_at=NOON + 9 * SECOND)
    assert listed(2, cursor=after(documents[1])) == [d["_id"] for d in documents[2:]]


def test_empty_list_has_no_neighbors() -> None:
    empty = page()
    assert (list(empty.documents), empty.has_next, empty.has_previous) == ([], False, False)


def test_list_holds_only_active_notifications_of_the_client() -> None:
    mine = accepted()
    accepted(client_id=OTHER_CLIENT)
    deleted = accepted()
    collection("notifications").update_one({"_id": deleted["_id"]}, {"$set": {"is_active": False}})
    assert listed() == [mine["_id"]]


@each_case(
    "fields, given",
    [
        ({"user_id": "eve"}, {"user_id": "eve"}),
        ({"user_id": "$ne"}, {"user_id": "$ne"}),
        ({"type": "order_shipped"}, {"type": "order_shipped"}),
        ({"category": "marketing"}, {"category": Category.MARKETING}),
        ({"entity_id": "order-1"}, {"entity_id": "order-1"}),
        ({"external_id": "x-1"}, {"external_id": "x-1"}),
        ({"channel": "whatsapp"}, {"channels": [WHATSAPP]}),
        ({"statuses": ("created",)}, {"send_at": NOON + MINUTE}),
        ({"created_after": NOON + MINUTE}, {"created_at": NOON + MINUTE}),
        ({"created_before": NOON}, {"created_at": NOON - SECOND}),
        ({"unread": True}, {"channels": [IN_APP]}),
    ],
)
def test_filter_narrows_a_list(fields: dict[str, Any], given: dict[str, Any]) -> None:
    accepted()
    matching = accepted(**given)
    assert listed(**fields) == [matching["_id"]]
    collection("notifications").delete_many({})


def test_time_span_includes_its_start_and_excludes_its_end() -> None:
    documents = [accepted(created_at=NOON + n * SECOND) for n in range(4)]
    found = listed(created_after=NOON + SECOND, created_before=NOON + 3 * SECOND)
    assert found == [documents[2]["_id"], documents[1]["_id"]]


@pytest.fixture
def scheduled() -> list[NotificationDocument]:
    """Equal times, several statuses among which the index alternates, and the last unscheduled."""
    stored = []
    for number in range(9):
        at = NOON + number // 2 * SECOND
        scheduled_at = at + (MINUTE if number % 3 else -SECOND)
        fields = {"send_at": scheduled_at, "scheduled_at": scheduled_at}
        stored.append(accepted(created_at=at, **fields))
    return [*stored, accepted(created_at=NOON)]


@each_case("limit", [2, 3, 20])
@each_case("ordering", list(Ordering))
def test_pages_of_each_order_hold_everything_once(
    scheduled: list[NotificationDocument], ordering: Ordering, limit: int
) -> None:
    name = ordering.value.lstrip("-")
    stored = scheduled[:-1] if ordering.is_by_schedule else scheduled
    expected = sorted(stored, key=lambda document: (dict(document)[name], document["_id"]))
    expected = expected[::-1] if ordering.value.startswith("-") else expected
    found, current = [], page(limit, ordering=ordering)
    found += current.documents
    while current.has_next:
        cursor = cursor_of_document(current.documents[-1], ordering.order)
        current = page(limit, ordering=ordering, cursor=cursor)
        found += current.documents
    assert [document["_id"] for document in found] == [document["_id"] for document in expected]


def test_range_of_the_schedule_includes_its_start_and_excludes_its_end() -> None:
    at = [NOON + n * MINUTE for n in range(4)]
    stored = [accepted(send_at=send_at, scheduled_at=send_at)["_id"] for send_at in at]
    fields = {"scheduled_after": at[1], "scheduled_before": at[3]}
    assert listed(ordering=Ordering.SCHEDULED, **fields) == stored[1:3]


def test_several_statuses_list_any_of_them() -> None:
    queued, created = accepted(), accepted(send_at=NOON + MINUTE)
    actions.cancel(notification_id=accepted()["_id"], channels=[EMAIL], reason="No.", now=NOON)
    assert {*listed(statuses=("queued", "created"))} == {queued["_id"], created["_id"]}


def test_channel_and_status_apply_to_one_delivery() -> None:
    """Mail failed and WhatsApp is pending: neither failed WhatsApp nor pending mail."""
    document = accepted(channels=[EMAIL, WHATSAPP])
    leases.settle([factories.settlement(start(claim(document["_id"])), S.FAILED)], now=NOON)
    assert listed(channel="email", delivery_statuses=("failed",)) == [document["_id"]]
    assert listed(channel="whatsapp", delivery_statuses=("pending",)) == [document["_id"]]
    assert listed(channel="email", delivery_statuses=("pending",)) == []
    assert listed(channel="whatsapp", delivery_statuses=("failed",)) == []


@each_case("channel", list(Channel))
def test_unread_lists_what_was_sent_and_not_read(channel: Channel) -> None:
    accepted(channels=[channel], send_at=NOON + MINUTE)
    is_in_app = channel is IN_APP
    document = (
        accepted(channels=[IN_APP]) if is_in_app else factories.settled(S.SENT, channel=channel)
    )
    of_document = {"client_id": CLIENT, "notification_id": document["_id"], "now": NOON}
    assert listed(unread=True) == [document["_id"]]
    inbox.mark_read_by_client(**of_document)
    assert listed(unread=True) == []
    inbox.mark_unread_by_client(**of_document)
    assert listed(unread=True) == [document["_id"]]
    collection("notifications").delete_many({})


def test_attempts_are_listed_oldest_first() -> None:
    document = accepted()
    for number in range(3):
        at = NOON + 5 * number * MINUTE
        begun = start(claim(document["_id"], at=at), at=at)
        retry = factories.settlement(begun, S.PENDING, at=at, next_attempt_at=at + MINUTE)
        leases.settle([retry], now=at)
    started()
    found = queries.attempts_of(document["_id"])
    assert [attempt["attempt_number"] for attempt in found] == [1, 2, 3]
    assert queries.attempts_of(ObjectId()) == []


def due(until: Any = NOON, *, now: Any = NOON, limit: int = 100, **fields: Any) -> list[Due]:
    queue = {"client_id": CLIENT, "channel": EMAIL, "priority": Priority.NORMAL}
    return fair_queue.due(FairQueue(**(queue | fields)), until=until, now=now, limit=limit)


def test_due_delivery_is_found() -> None:
    document = accepted()
    assert due() == [Due(document["_id"], EMAIL, NOON)]


def test_due_deliveries_are_oldest_first() -> None:
    documents = [accepted(send_at=NOON - n * SECOND, created_at=NOON) for n in (1, 3, 2)]
    assert [d.notification_id for d in due()] == [documents[n]["_id"] for n in (1, 2, 0)]
    assert [d.notification_id for d in due(limit=1)] == [documents[1]["_id"]]


@each_case(
    "send_at, is_found",
    [(NOON + MINUTE, True), (NOON + MINUTE + timedelta(milliseconds=1), False), (NOON, True)],
)
def test_delivery_due_by_then_is_found(send_at: Any, is_found: bool) -> None:
    accepted(send_at=send_at)
    assert bool(due(NOON + MINUTE)) is is_found
    collection("notifications").delete_many({})


@each_case("priority", list(Priority))
def test_each_priority_is_found_separately(priority: Priority) -> None:
    document = accepted(priority=priority)
    found = {p: [d.notification_id for d in due(priority=p)] for p in Priority}
    assert found == {p: [document["_id"]] if p is priority else [] for p in Priority}
    collection("notifications").delete_many({})


def test_claimed_delivery_is_found_after_its_lease() -> None:
    claim = claimed()
    assert due(NOON + MINUTE) == []
    over = NOON + LEASE
    assert [d.notification_id for d in due(over, now=over)] == [claim.notification_id]


@each_case("status", [S.SENT, S.DELIVERED, S.FAILED, S.UNKNOWN])
def test_delivery_that_is_not_pending_is_not_found(status: DeliveryStatus) -> None:
    factories.settled(status)
    started()
    later = NOON + timedelta(days=1)
    assert due(later, now=later) == []


def test_each_client_is_found_separately() -> None:
    ours, theirs = accepted(), accepted(client_id=OTHER_CLIENT, priority=Priority.HIGH)
    assert [d.notification_id for d in due()] == [ours["_id"]]
    assert fair_queue.waiting_clients(priority=Priority.NORMAL) == [CLIENT]
    assert fair_queue.waiting_clients(priority=Priority.HIGH) == [theirs["client_id"]]
    assert fair_queue.waiting_clients(priority=Priority.LOW) == []


def test_each_channel_is_found_when_due() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    leases.settle([factories.settlement(start(claim(document["_id"])), S.PENDING)], now=NOON)
    assert (due(), [d.channel for d in due(channel=WHATSAPP)]) == ([], [WHATSAPP])
    later = NOON + 5 * MINUTE
    found = [d for channel in (EMAIL, WHATSAPP) for d in due(later, now=later, channel=channel)]
    assert {d.channel: d.at for d in found} == {EMAIL: later, WHATSAPP: NOON}


def test_addresses_that_only_tests_wrote_to_are_found_among_few_messages() -> None:
    def accept(name: str, count: int, *, is_test: bool) -> None:
        to = Recipient(email=f"{name}@example.com")
        messages = [factories.new(recipient=to, is_test=is_test) for _ in range(count)]
        acceptance.accept(messages, now=NOON)

    accept("tester", 3, is_test=True)
    accept("both", 3, is_test=True)
    accept("both", 1, is_test=False)
    accept("load", queries.MAX_TESTED + 50, is_test=True)
    emails = [f"{name}@example.com" for name in ("tester", "both", "load", "nobody", "Tester")]
    with plans("notifications") as read:
        assert queries.only_tested(EMAIL, emails) == {
            "tester@example.com",
            "Tester@example.com",
        }
    assert len(read) == len(emails)
    assert all(plan.is_indexed and plan.examined <= queries.MAX_TESTED + 1 for plan in read)
