"""Query plans of a large inbox among others: one index serves pages and counts."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from notifications.inbox import actions, feed
from notifications.inbox.actions import AllRead
from notifications.inbox.feed import FeedCounts
from notifications.store import acceptance, inbox
from notifications.store.inbox import Inbox
from notifications.store.new_notifications import NewNotification
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, cursor_of_document
from tests.support.factories.notifications import CLIENT, NOON, accepted, new
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.mongo.query_plans import Plan, emptied, plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

IN_APP, EMAIL = Channel.IN_APP, Channel.EMAIL
COUNT, BATCH, PAGE = 3_000, 1_000, 20
INBOX = Inbox(CLIENT, "ada")
INDEX = (
    "{ user_id: 1, client_id: 1, is_active: 1, is_archived: 1, is_read: 1, inbox_at: -1, _id: -1 }"
)
LATER = NOON + timedelta(hours=6)
MIDDLE = (NOON + timedelta(seconds=COUNT // 2), ObjectId("0" * 24))
"""The values of a cursor in the middle of the inbox."""


@pytest.fixture(scope="module")
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    """Store the notifications once per module: tests that write come last."""
    with django_db_blocker.unblock(), emptied("notifications", "inbox_visits"):
        for start in range(0, COUNT, BATCH):
            acceptance.accept([_new(n) for n in range(start, start + BATCH)], now=LATER)
        _work_on()
        yield


def _new(number: int) -> NewNotification:
    """Return a notification: half are for Ada, and a tenth of these belong to another client."""
    moment = NOON + timedelta(seconds=number)
    return new(
        user_id="ada" if number % 2 else ["eve", "ada2", "bob"][number % 3],
        client_id=ObjectId("d" * 24) if number % 10 == 1 else CLIENT,
        channels=(EMAIL,) if number % 10 == 3 else (EMAIL, IN_APP),
        send_at=moment,
        created_at=moment,
    )


def _work_on() -> None:
    """Give each item its own time; mark every second item as read, archive every fifth."""
    collection("notifications").update_many(
        {"inbox_at": {"$exists": True}}, [{"$set": {"inbox_at": "$created_at"}}]
    )
    ids = [d["_id"] for d in collection("notifications").find(INBOX.match(), {"_id": 1})]
    archived = {"$set": {"is_archived": True, "archived_at": LATER}}
    read = {"$set": {"is_read": True, "read_at": LATER}}
    collection("notifications").update_many({"_id": {"$in": ids[::5]}}, archived)
    collection("notifications").update_many({"_id": {"$in": ids[::2]}}, read)


def explain(read: Callable[[], Any]) -> tuple[Any, list[Plan]]:
    with plans("notifications") as found:
        result = read()
    assert found
    for plan in found:
        assert set(plan.summary.removeprefix("IXSCAN ").split(", IXSCAN ")) == {INDEX}
        assert plan.is_indexed, plan.summary
        assert not plan.sorts, plan.summary
    return result, found


@each_case("unread", [False, True])
@each_case("archived", [False, True])
@each_case("cursor", [None, Cursor(MIDDLE), Cursor(MIDDLE, backwards=True)])
def test_page_costs_the_same_at_any_position(
    unread: bool, archived: bool, cursor: Cursor | None
) -> None:
    found, (plan,) = explain(
        lambda: feed.page(INBOX, limit=PAGE, unread=unread, archived=archived, cursor=cursor)
    )
    assert len(found.documents) == PAGE
    assert plan.examined <= plan.returned + 2, "one more of each of the two runs it merges"
    assert plan.keys <= plan.returned + 2, "what lies before the place is not walked through"


KINDS = ("payment_confirmed", "order_shipped")


@each_case("wanted", [{"type": "nosuch"}, {"category": "marketing"}])
@each_case("fields", [{}, {"unread": True}, {"archived": True}])
@each_case("cursor", [None, Cursor(MIDDLE), Cursor(MIDDLE, backwards=True)])
def test_page_of_a_rare_type_reads_a_limited_number(
    monkeypatch: pytest.MonkeyPatch,
    wanted: dict[str, str],
    fields: dict[str, bool],
    cursor: Cursor | None,
) -> None:
    monkeypatch.setattr(feed, "MAX_SCANNED", 50)
    found, (edge, page) = explain(
        lambda: feed.page(INBOX, limit=PAGE, wanted=wanted, cursor=cursor, **fields)
    )
    assert found.documents == []
    assert found.scanned_to is not None
    assert (edge.examined, edge.returned) == (0, 1)
    assert edge.keys <= 50 + 2
    assert page.examined <= 50 + 2, "one more of each of the two runs it merges"
    assert page.keys <= 50 + 4


@pytest.mark.parametrize("fields", [{}, {"unread": True}, {"archived": True}])
@pytest.mark.parametrize("scan", [5, 50, 5_000])
def test_pages_of_a_type_have_each_of_its_items_once_in_both_directions(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, bool], scan: int
) -> None:
    monkeypatch.setattr(feed, "MAX_SCANNED", scan)
    # Several of one time, some of the type.
    moment = NOON + timedelta(seconds=COUNT // 2)
    inbox = Inbox(CLIENT, "eve")
    query = {**inbox.match(), "inbox_at": {"$gt": moment}}
    ids = [
        document["_id"]
        for document in collection("notifications").find(query, {"_id": 1}).limit(60)
    ]
    items = collection("notifications")
    items.update_many({"_id": {"$in": ids[::3]}}, {"$set": {"inbox_at": moment}})
    items.update_many({"_id": {"$in": ids[::4]}}, {"$set": {"type": KINDS[1]}})
    wanted = {"type": KINDS[1]}
    limits = {"is_archived": fields.get("archived", False)}
    limits |= {"is_read": False} if "unread" in fields else {}
    expected = [
        document["_id"]
        for document in items.find({**inbox.match(**limits), **wanted}).sort(
            [("inbox_at", -1), ("_id", -1)]
        )
    ]
    seen, cursor, pages = [], None, []
    while True:
        page = feed.page(inbox, limit=4, wanted=wanted, cursor=cursor, **fields)
        seen += [document["_id"] for document in page.documents]
        pages.append(page)
        if not page.has_next:
            break
        last = page.scanned_to or page.documents[-1]
        cursor = cursor_of_document(last, feed.NEWEST_FIRST)
    assert seen == expected
    back: list[ObjectId] = []
    cursor = Cursor((NOON - timedelta(days=1), ObjectId("0" * 24)), backwards=True)
    while True:
        page = feed.page(inbox, limit=4, wanted=wanted, cursor=cursor, **fields)
        back = [document["_id"] for document in page.documents] + back
        if not page.has_previous:
            break
        first = page.scanned_to or page.documents[0]
        cursor = cursor_of_document(first, feed.NEWEST_FIRST, backwards=True)
    assert back == expected


def test_page_of_a_rare_type_of_snoozed_items_reads_a_limited_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed, "MAX_SCANNED", 10)
    query = {**Inbox(CLIENT, "bob").match(), "is_archived": False}
    ids = [
        document["_id"]
        for document in collection("notifications").find(query, {"_id": 1}).limit(40)
    ]
    for number, notification_id in enumerate(ids):
        until = LATER + timedelta(hours=number)
        inbox.snooze(
            inbox=Inbox(CLIENT, "bob"), notification_id=notification_id, until=until, now=LATER
        )
    with plans("notifications") as found:
        page = feed.snoozed_page(Inbox(CLIENT, "bob"), limit=5, wanted={"type": "nosuch"})
    assert (page.documents, page.has_next) == ([], True)
    assert all(plan.is_indexed and not plan.sorts and plan.examined <= 11 for plan in found)


def test_empty_inbox_reads_nothing() -> None:
    found, (plan,) = explain(lambda: feed.page(Inbox(CLIENT, "nobody"), limit=PAGE))
    assert (found.documents, plan.examined) == ([], 0)


def test_since_reads_only_later_notifications() -> None:
    moment = NOON + timedelta(seconds=COUNT - BATCH)
    found, (plan,) = explain(lambda: feed.since(INBOX, moment=moment, limit=50))
    assert len(found) == 50
    assert plan.examined <= 52


def test_counts_read_no_documents() -> None:
    moment = NOON + timedelta(seconds=COUNT // 2)
    inbox.mark_seen(inbox=INBOX, until=moment)
    counts, found = explain(lambda: feed.counts(INBOX))
    unread = collection("notifications").count_documents(
        {**INBOX.match(is_read=False, is_archived=False)}
    )
    assert counts.unread == unread > counts.unseen > 0
    assert [plan.examined for plan in found] == [0, 0]
    assert all(plan.keys <= counts.unread + 1 for plan in found)


def test_counts_are_repeated_when_their_snapshot_is_gone() -> None:
    before = feed.counts(INBOX)
    with fail_commands("aggregate", "notifications", {"errorCode": 239}):
        again = feed.counts(INBOX)
    assert (again.unread, again.unseen) == (before.unread, before.unseen)


def test_single_notification_is_read_and_marked_by_id() -> None:
    document = feed.page(INBOX, limit=1, unread=True).documents[0]
    for change in (inbox.mark_read, inbox.mark_unread, inbox.archive, inbox.unarchive):
        with plans("notifications") as found:
            change(inbox=INBOX, notification_id=document["_id"], now=LATER)
            feed.get(INBOX, document["_id"])
        assert all(plan.is_by_id and plan.examined <= 1 for plan in found), found


def test_mark_all_read_reads_only_unread_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MAX_READ", 100)
    monkeypatch.setattr(actions, "READ_BATCH", 25)
    unread = collection("notifications").count_documents(INBOX.match_sent() | {"is_read": False})
    unsent = {"user_id": INBOX.user_id, "client_id": INBOX.client_id, "is_read": False}
    left = collection("notifications").count_documents(unsent) - unread
    with plans("notifications") as found:
        first = actions.mark_all_read(inbox=INBOX, now=LATER)
    assert first == AllRead(100, is_complete=False)
    positions, reads, writes = found[::3], found[1::3], found[2::3]
    assert all(position.examined == 0 and not position.sorts for position in positions)
    assert len(reads) == 4
    assert all("user_id: 1, created_at: -1" in read.summary and not read.sorts for read in reads)
    assert all(write.is_by_id and write.examined == 25 for write in writes)
    most = 25 + left
    assert all(read.examined <= most for read in reads), "what is read, the index excludes"
    counts = [actions.mark_all_read(inbox=INBOX, now=LATER)]
    while not counts[-1].is_complete:
        counts.append(actions.mark_all_read(inbox=INBOX, now=LATER))
    assert 100 + sum(count.count for count in counts) == unread > 200
    assert actions.mark_all_read(inbox=INBOX, now=LATER) == AllRead(0, is_complete=True)


@pytest.mark.parametrize("sent_after", [0, 51, 400])
def test_read_all_reaches_what_lies_behind_notifications_that_were_not_sent(
    monkeypatch: pytest.MonkeyPatch, sent_after: int
) -> None:
    """Each call reads a limited number, and says that it isn't complete before the last one."""
    monkeypatch.setattr(inbox, "MAX_UNREAD_SCANNED", 50)
    whole = {"user_id": "ada", "client_id": CLIENT}
    newest = [("created_at", -1), ("_id", -1)]
    ids = [
        document["_id"]
        for document in collection("notifications").find(whole, {"_id": 1}).sort(newest)
    ]
    assert len(ids) > 500
    change = {"$set": {"delivery.$[].status": "failed", "is_read": False}, "$unset": {"read_at": 1}}
    collection("notifications").update_many(whole, change)
    sent = {"_id": {"$in": ids[sent_after : sent_after + 3]}}
    collection("notifications").update_many(sent, {"$set": {"delivery.$[].status": "delivered"}})
    calls: list[AllRead] = []
    while not calls or not calls[-1].is_complete:
        with plans("notifications") as found:
            calls.append(actions.mark_all_read(inbox=INBOX, now=LATER))
        assert sum(plan.examined for plan in found) <= 4 * 51 + 3
        assert len(calls) < len(ids) / 51
    assert sum(call.count for call in calls) == 3
    unread = {"_id": sent["_id"], "is_read": False}
    assert collection("notifications").count_documents(unread) == 0


def test_read_all_marks_what_came_after_an_interrupted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "MAX_UNREAD_SCANNED", 50)
    for moment in (LATER, LATER + timedelta(minutes=5), LATER + timedelta(days=1)):
        assert not actions.mark_all_read(inbox=INBOX, now=moment).is_complete
        newest = accepted(channels=(IN_APP,), user_id="ada", created_at=moment)["_id"]
        assert actions.mark_all_read(inbox=INBOX, now=moment).count == 1
        document = collection("notifications").find_one({"_id": newest})
        assert document is not None
        assert document["is_read"]
    (visit,) = collection("inbox_visits").find({"_id": INBOX.key})
    first_of_the_last_day = LATER + timedelta(days=1)
    assert visit["read_at"] == first_of_the_last_day


def test_counts_of_concurrent_reads_have_the_order_of_their_times() -> None:
    grace = Inbox(CLIENT, "grace")
    ids = [accepted(channels=(IN_APP,), user_id="grace")["_id"] for _ in range(30)]
    is_done = threading.Event()

    def count() -> list[FeedCounts]:
        found = []
        while not is_done.is_set():
            found.append(feed.counts(grace))
        return [*found, feed.counts(grace)]

    with ThreadPoolExecutor(4) as threads:
        counting = [threads.submit(count) for _ in range(3)]
        try:
            for notification_id in ids:
                inbox.mark_read(inbox=grace, notification_id=notification_id, now=LATER)
        finally:
            is_done.set()
        seen = [counts for future in counting for counts in future.result()]
    in_order = [counts.unread for counts in sorted(seen, key=lambda counts: counts.as_of)]
    assert in_order == sorted(in_order, reverse=True)
    assert (in_order[0] > 0, in_order[-1]) == (True, 0)
