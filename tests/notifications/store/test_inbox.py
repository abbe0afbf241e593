"""Operations of readers: read and unread on any channel, archive in the inbox."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.store import actions, inbox, leases, receipts
from notifications.store.inbox import Inbox, Marked, MarkedPart
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    CLIENT,
    NOON,
    accepted,
    claim,
    delivery,
    read,
    start,
)
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
LATER, EVEN_LATER = NOON + timedelta(minutes=5), NOON + timedelta(hours=1)
INBOX = Inbox(CLIENT, "ada")
MARKS = [inbox.mark_read, inbox.mark_unread, inbox.archive, inbox.unarchive]
Mark = Callable[..., Marked | None]


def in_app(**fields: Any) -> NotificationDocument:
    return accepted(**{"channels": [IN_APP], **fields})


def mark(change: Mark, document: NotificationDocument, *, now: Any = LATER) -> Marked:
    marked = change(inbox=INBOX, notification_id=document["_id"], now=now)
    return checked(marked, document)


def by_client(change: Mark, document: NotificationDocument, *, now: Any = LATER) -> Marked:
    marked = change(client_id=CLIENT, notification_id=document["_id"], now=now)
    return checked(marked, document)


def checked(marked: Marked | None, document: NotificationDocument) -> Marked:
    assert marked is not None
    assert marked.document == read(document["_id"])
    return marked


def test_owner_marks_it_read() -> None:
    marked = mark(inbox.mark_read, in_app())
    document = marked.document
    assert marked.changed
    assert (document["status"], document["is_read"], document["read_at"]) == (
        "delivered",
        True,
        LATER,
    )
    assert delivery(document, IN_APP)["status"] == S.READ
    assert delivery(document, IN_APP)["read_at"] == LATER


def test_concurrent_reads_are_recorded_once() -> None:
    document = in_app()
    with ThreadPoolExecutor(8) as threads:
        results = list(
            threads.map(
                lambda n: inbox.mark_read(
                    inbox=INBOX, notification_id=document["_id"], now=LATER + timedelta(seconds=n)
                ),
                range(8),
            )
        )
    (winner,) = [result for result in results if result is not None and result.changed]
    assert read(document["_id"])["read_at"] == winner.document["read_at"]


def test_notification_read_elsewhere_can_be_marked_read() -> None:
    """The in-app delivery is recorded as read even if WhatsApp reported it first."""
    document = in_app(channels=[WHATSAPP, IN_APP])
    begun = start(claim(document["_id"], channel=WHATSAPP), provider="whatsapp")
    leases.settle([factories.settlement(begun, S.SENT)], now=NOON)
    reference = AttemptReference(document["_id"], WHATSAPP, 1)
    report = DeliveryReceipt(reference=reference, status=S.READ, at=NOON, provider="whatsapp")
    receipts.apply_receipt(report, now=NOON)
    assert read(document["_id"])["is_read"]
    marked = mark(inbox.mark_read, document)
    assert marked.changed
    assert delivery(marked.document, IN_APP)["read_at"] == LATER
    assert marked.document["read_at"] == NOON


def part(count: int, *, has_more: bool = False) -> MarkedPart:
    """Return a part that reaches the recipient's first notification."""
    return MarkedPart(count, has_more=has_more, end=None)


def test_mark_all_read_affects_only_what_was_sent_to_the_recipient() -> None:
    sent = [factories.settled(S.SENT, channel=channel)["_id"] for channel in (EMAIL, PUSH)]
    mine = [*(in_app()["_id"] for _ in range(5)), *sent]
    others = [
        in_app(user_id="eve")["_id"],
        in_app(client_id=ObjectId("d" * 24))["_id"],
        accepted()["_id"],
        in_app(send_at=LATER)["_id"],
        factories.settled(S.FAILED)["_id"],
    ]
    assert inbox.mark_part_read(inbox=INBOX, limit=100, now=LATER) == part(7)
    assert all(read(membership)["is_read"] for membership in mine)
    assert not any(read(other)["is_read"] for other in others)
    assert inbox.mark_part_read(inbox=INBOX, limit=100, now=LATER) == part(0)


def test_mark_all_read_includes_unread_and_archived() -> None:
    unread, archived = in_app(), in_app()
    mark(inbox.mark_read, unread)
    mark(inbox.mark_unread, unread)
    mark(inbox.archive, archived)
    assert inbox.mark_part_read(inbox=INBOX, limit=2, now=EVEN_LATER) == part(2, has_more=True)
    assert read(unread["_id"])["is_read"]
    assert read(archived["_id"])["is_read"]


def test_marking_unread_keeps_the_delivery_read() -> None:
    document = in_app()
    mark(inbox.mark_read, document)
    marked = mark(inbox.mark_unread, document, now=EVEN_LATER)
    assert marked.changed
    assert not marked.document["is_read"]
    assert "read_at" not in marked.document
    assert delivery(marked.document, IN_APP)["status"] == S.READ
    assert delivery(marked.document, IN_APP)["read_at"] == LATER


def test_other_channels_do_not_mark_it_read() -> None:
    document = in_app(channels=[EMAIL, IN_APP])
    mark(inbox.mark_read, document)
    mark(inbox.mark_unread, document)
    begun = start(claim(document["_id"]))
    leases.settle([factories.settlement(begun, S.FAILED)], now=EVEN_LATER)
    after = read(document["_id"])
    assert after["status"] == "partially_delivered"
    assert not after["is_read"]


@each_case("is_read", [False, True])
def test_archiving_keeps_the_read_state(is_read: bool) -> None:
    document = in_app()
    if is_read:
        mark(inbox.mark_read, document)
    marked = mark(inbox.archive, document, now=EVEN_LATER)
    assert marked.changed
    assert marked.document["is_archived"]
    assert marked.document["archived_at"] == EVEN_LATER
    assert marked.document["is_read"] is is_read
    assert marked.document["is_active"], "it is not deleted"


def test_archiving_and_unarchiving_happen_once() -> None:
    document = in_app()
    mark(inbox.archive, document)
    again = mark(inbox.archive, document, now=EVEN_LATER)
    assert (again.changed, again.document["archived_at"]) == (False, LATER)
    restored = mark(inbox.unarchive, document)
    assert (restored.changed, restored.document["is_archived"]) == (True, False)
    assert "archived_at" not in restored.document
    assert not mark(inbox.unarchive, document).changed


@each_case("channel", list(Channel))
def test_notification_of_any_channel_is_read_and_unread(channel: Channel) -> None:
    for way, suffix in ((mark, ""), (by_client, "_by_client")):
        is_in_app = channel is IN_APP
        document = in_app() if is_in_app else factories.settled(S.SENT, channel=channel)
        marked = way(getattr(inbox, f"mark_read{suffix}"), document)
        assert marked.changed
        assert (marked.document["is_read"], marked.document["read_at"]) == (True, LATER)
        assert delivery(marked.document, channel)["status"] == (S.READ if is_in_app else S.SENT)
        again = way(getattr(inbox, f"mark_read{suffix}"), document, now=EVEN_LATER)
        assert (again.changed, again.document) == (False, marked.document)
        unread = way(getattr(inbox, f"mark_unread{suffix}"), document, now=EVEN_LATER).document
        assert not unread["is_read"]
        assert "read_at" not in unread
        assert not way(getattr(inbox, f"mark_unread{suffix}"), document).changed
        back = way(getattr(inbox, f"mark_read{suffix}"), document, now=EVEN_LATER).document
        assert (back["is_read"], back["read_at"]) == (True, LATER)
        assert "unread_at" not in back


@each_case("status", [S.SENT, S.FAILED, S.PENDING, S.UNKNOWN])
def test_outcome_after_reading_leaves_it_read(status: DeliveryStatus) -> None:
    document = accepted()
    by_client(inbox.mark_read_by_client, document)
    begun = start(claim(document["_id"]))
    next_at = {"next_attempt_at": EVEN_LATER} if status in (S.PENDING, S.UNKNOWN) else {}
    leases.settle([factories.settlement(begun, status, **next_at)], now=LATER)
    after = read(document["_id"])
    assert (after["is_read"], after["read_at"]) == (True, LATER)
    assert delivery(after, EMAIL)["status"] == status


def test_client_marks_only_its_own() -> None:
    document = read(accepted()["_id"])
    other = ObjectId("d" * 24)
    for change in (inbox.mark_read_by_client, inbox.mark_unread_by_client):
        assert change(client_id=other, notification_id=document["_id"], now=LATER) is None
        assert change(client_id=CLIENT, notification_id=ObjectId(), now=LATER) is None
    assert read(document["_id"]) == document


def test_unsent_notification_is_not_read_by_its_recipient() -> None:
    cancelled = in_app(send_at=LATER)["_id"]
    actions.cancel(notification_id=cancelled, channels=[IN_APP], reason="no", now=NOON)
    ids = [cancelled, in_app(send_at=LATER)["_id"], factories.settled(S.FAILED)["_id"]]
    for document in [read(notification_id) for notification_id in ids]:
        for change in MARKS:
            assert change(inbox=INBOX, notification_id=document["_id"], now=LATER) is None
        assert read(document["_id"]) == document


def test_notification_of_another_channel_is_not_archived() -> None:
    document = factories.settled(S.DELIVERED)
    for change in (inbox.archive, inbox.unarchive):
        assert change(inbox=INBOX, notification_id=document["_id"], now=LATER) is None
    assert read(document["_id"]) == document


def test_scheduled_notification_enters_the_inbox_on_delivery() -> None:
    document = in_app(send_at=LATER)
    assert "inbox_at" not in document
    begun = start(claim(document["_id"], at=LATER, channel=IN_APP), at=LATER, provider="inbox")
    leases.settle([factories.settlement(begun, S.DELIVERED, at=LATER)], now=LATER)
    assert read(document["_id"])["inbox_at"] == LATER
    assert mark(inbox.mark_read, document, now=EVEN_LATER).changed


def test_inbox_key_is_unique() -> None:
    others = [Inbox(CLIENT, "ada2"), Inbox(ObjectId("d" * 24), "ada"), Inbox(CLIENT, "")]
    assert Inbox(CLIENT, "ada").key == INBOX.key
    assert len({INBOX.key, *(other.key for other in others)}) == 4
    assert "ada" not in INBOX.key
