"""Deletion of a notification by its client, and its undoing."""

from datetime import timedelta

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.store import actions, inbox, leases, removal
from notifications.store.inbox import Inbox
from notifications.store.removal import DELETION_REASON
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, accepted, delivery, read
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
LATER = NOON + timedelta(minutes=5)


def deleted(document: NotificationDocument) -> NotificationDocument:
    after = removal.delete(notification_id=document["_id"], client_id=CLIENT, now=LATER)
    assert after is not None
    assert after == read(document["_id"])
    return after


@each_case("status", [S.SENT, S.DELIVERED, S.FAILED])
def test_deletion_keeps_everything_but_activity(status: DeliveryStatus) -> None:
    before = factories.settled(status)
    after = deleted(before)
    changed = {name for name, value in after.items() if value != before.get(name)}
    assert changed == {"is_active", "deleted_at", "search_keys", "updated_at"}
    assert (after["is_active"], after["deleted_at"]) == (False, LATER)


def test_deletion_cancels_what_is_pending() -> None:
    document = accepted(channels=[EMAIL, IN_APP], send_at=NOON + timedelta(days=1))
    after = deleted(document)
    for channel in (EMAIL, IN_APP):
        stored = delivery(after, channel)
        assert (stored["status"], stored["failure_reason"]) == (S.CANCELLED, DELETION_REASON)
    assert after["status"] == "cancelled"
    assert "due_at" not in after


def test_deletion_takes_the_claim_of_a_worker_that_did_not_start() -> None:
    claimed = factories.claimed()
    deleted(read(claimed.notification_id))
    assert factories.begin(claimed) == []


def test_attempt_in_progress_completes() -> None:
    begun = factories.started()
    deleted(read(begun.notification_id))
    leases.settle([factories.settlement(begun, S.SENT)], now=LATER)
    after = read(begun.notification_id)
    assert (delivery(after, EMAIL)["status"], after["is_active"]) == (S.SENT, False)


def test_retry_of_an_attempt_in_progress_is_marked_deleted() -> None:
    begun = factories.started()
    deleted(read(begun.notification_id))
    leases.settle([factories.settlement(begun, S.PENDING, next_attempt_at=LATER)], now=LATER)
    assert factories.claim(begun.notification_id, at=LATER).is_deleted


def test_deletion_is_of_the_clients_own_and_once() -> None:
    document = read(accepted()["_id"])
    other = ObjectId("d" * 24)
    assert removal.delete(notification_id=document["_id"], client_id=other, now=LATER) is None
    assert read(document["_id"]) == document
    after = deleted(document)
    again = LATER + timedelta(hours=1)
    assert removal.delete(notification_id=document["_id"], client_id=CLIENT, now=again) is None
    assert read(document["_id"]) == after


def test_deleted_notification_is_in_no_inbox_until_restored() -> None:
    document = read(accepted(channels=[IN_APP])["_id"])
    mark = {"inbox": Inbox(CLIENT, "ada"), "notification_id": document["_id"], "now": LATER}
    deleted(document)
    assert inbox.mark_read(**mark) is None
    assert inbox.mark_part_read(inbox=Inbox(CLIENT, "ada"), limit=1, now=LATER).count == 0
    restored = removal.restore(notification_id=document["_id"], now=LATER)
    assert restored == {**document, "updated_at": LATER}
    assert inbox.mark_read(**mark) is not None


def test_restoring_leaves_cancelled_deliveries_cancelled() -> None:
    document = accepted()
    deleted(document)
    restored = removal.restore(notification_id=document["_id"], now=LATER)
    assert restored is not None
    assert (restored["is_active"], restored["status"]) == (True, "cancelled")
    assert "deleted_at" not in restored
    assert removal.restore(notification_id=document["_id"], now=LATER) is None


def test_erased_notification_is_not_restored() -> None:
    document = accepted()
    deleted(document)
    removal.erase(removal.erasable(user_id="ada", limit=10), user_id="ada", now=LATER)
    assert removal.restore(notification_id=document["_id"], now=LATER) is None
    assert not read(document["_id"])["is_active"]


def test_deleted_notification_is_not_reopened() -> None:
    document = deleted(factories.settled(S.FAILED))
    later = LATER + timedelta(minutes=1)
    assert actions.reopen(notification_id=document["_id"], channels=[EMAIL], now=later) is None
    assert read(document["_id"]) == document
