"""Rescheduling notifications that were not sent."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus, Priority
from notifications.documents.notification import NotificationDocument
from notifications.queueing import fair_queue
from notifications.store import actions, leases
from notifications.store.claims import ClaimedDelivery
from notifications.store.new_notifications import NewDelivery
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    CLIENT,
    NOON,
    accepted,
    claimed,
    delivery,
    read,
    started,
)
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TOMORROW = NOON + DAY
ROUNDS = 25


def reschedule(
    notification_id: ObjectId, *, send_at: datetime = TOMORROW
) -> NotificationDocument | None:
    return actions.reschedule(notification_id=notification_id, send_at=send_at, now=NOON)


def moved(document: NotificationDocument, *, send_at: datetime = TOMORROW) -> NotificationDocument:
    found = reschedule(document["_id"], send_at=send_at)
    assert found is not None
    assert found == read(document["_id"])
    return found


def test_pending_notification_is_due_at_the_new_time() -> None:
    document = moved(accepted())
    assert document["scheduled_at"] == document["due_at"] == TOMORROW
    assert document["status"] == "created"
    assert delivery(document)["first_due_at"] == delivery(document)["next_attempt_at"] == TOMORROW
    assert document["updated_at"] == NOON


def test_notification_can_be_brought_forward() -> None:
    document = moved(accepted(send_at=TOMORROW, scheduled_at=TOMORROW), send_at=NOON)
    assert (document["status"], document["due_at"]) == ("queued", NOON)


def test_notification_can_be_rescheduled_again() -> None:
    assert moved(moved(accepted()), send_at=TOMORROW + DAY)["due_at"] == TOMORROW + DAY


def test_later_step_keeps_its_delay() -> None:
    deliveries = (
        NewDelivery(channel=WHATSAPP, step=2, delay=HOUR),
        NewDelivery(channel=EMAIL),
    )
    document = moved(accepted(deliveries=deliveries))
    assert delivery(document, EMAIL)["next_attempt_at"] == TOMORROW
    assert delivery(document, WHATSAPP)["next_attempt_at"] == TOMORROW + HOUR


def test_skipped_and_cancelled_channels_stay_so() -> None:
    deliveries = (
        NewDelivery(channel=PUSH, status=S.SUPPRESSED, failure_code=FailureCode.NO_ADDRESS),
        NewDelivery(channel=EMAIL),
        NewDelivery(channel=WHATSAPP),
    )
    document = accepted(deliveries=deliveries)
    actions.cancel(notification_id=document["_id"], channels=[WHATSAPP], reason="x", now=NOON)
    statuses = [d["status"] for d in moved(document)["delivery"]]
    assert statuses == ["suppressed", "pending", "cancelled"]


def test_scheduled_in_app_moves() -> None:
    document = moved(accepted(channels=[IN_APP], send_at=NOON + HOUR, scheduled_at=NOON + HOUR))
    assert delivery(document, IN_APP)["next_attempt_at"] == TOMORROW


def test_relative_expiry_moves() -> None:
    document = moved(accepted(ttl_seconds=300, expires_at=NOON + timedelta(seconds=300)))
    assert document["expires_at"] == TOMORROW + timedelta(seconds=300)


def test_absolute_expiry_is_kept() -> None:
    assert moved(accepted(expires_at=TOMORROW + HOUR))["expires_at"] == TOMORROW + HOUR


@each_case("expires_at", [TOMORROW, NOON + HOUR])
def test_reschedule_beyond_an_absolute_expiry_is_refused(expires_at: datetime) -> None:
    document = accepted(expires_at=expires_at)
    assert reschedule(document["_id"]) is None
    assert read(document["_id"])["due_at"] == NOON


def test_notification_without_an_expiry_gets_none() -> None:
    assert "expires_at" not in moved(accepted())


@each_case("scheduled_at", [None, NOON + HOUR])
def test_purge_date_moves(scheduled_at: datetime | None) -> None:
    send_at = scheduled_at or NOON
    document = accepted(send_at=send_at, scheduled_at=scheduled_at, purge_at=send_at + 90 * DAY)
    assert moved(document)["purge_at"] == TOMORROW + 90 * DAY


def test_claimed_delivery_is_not_started_afterwards() -> None:
    claim = claimed()
    assert delivery(moved(read(claim.notification_id)))["claim"] is None
    assert leases.start([claim], provider="sendgrid", worker="w", now=NOON) == []


def test_started_partly_sent_or_unknown_notification_is_not_rescheduled() -> None:
    assert reschedule(started().notification_id) is None
    assert reschedule(accepted(channels=[EMAIL, IN_APP])["_id"]) is None
    assert reschedule(ObjectId()) is None


@each_case("status", [S.SENT, S.DELIVERED, S.FAILED, S.UNKNOWN, S.PENDING])
def test_attempted_delivery_is_not_rescheduled(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert reschedule(document["_id"]) is None
    assert read(document["_id"]) == document


@each_case("channels", [[EMAIL], [EMAIL, WHATSAPP]])
def test_cancelled_notification_is_not_rescheduled(channels: list[Channel]) -> None:
    document = accepted(channels=channels)
    actions.cancel(notification_id=document["_id"], channels=channels, reason="x", now=NOON)
    assert reschedule(document["_id"]) is None


def test_rescheduled_delivery_is_found_at_the_new_time() -> None:
    document = moved(accepted())
    queue = fair_queue.FairQueue(CLIENT, EMAIL, Priority.NORMAL)
    for at, expected in ((TOMORROW - timedelta(milliseconds=1), []), (TOMORROW, [document["_id"]])):
        found = fair_queue.due(queue, until=at, now=at, limit=10)
        assert [item.notification_id for item in found] == expected


def test_notification_is_rescheduled_or_started() -> None:
    with ThreadPoolExecutor(2) as threads:
        for _ in range(ROUNDS):
            claim = claimed()
            together = threading.Barrier(2)
            starting = threads.submit(_start, claim, together)
            together.wait()
            was_moved = reschedule(claim.notification_id) is not None
            assert was_moved != bool(starting.result())
            stored = read(claim.notification_id)
            assert delivery(stored)["status"] == ("pending" if was_moved else "sending")
            assert stored["due_at"] == (TOMORROW if was_moved else claim.lease_until)


def _start(claim: ClaimedDelivery, together: threading.Barrier) -> list[ClaimedDelivery]:
    together.wait()
    return leases.start([claim], provider="sendgrid", worker="w", now=NOON)
