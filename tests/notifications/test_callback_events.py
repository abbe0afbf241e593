"""Callback events of notifications: each is published once, even after crashes."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import AutoReconnect

from callbacks import outbox, subscriptions
from callbacks.events import EventType
from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications import callback_events
from notifications.actions import actions
from notifications.documents.notification import NotificationDocument
from notifications.store import callback_marks, leases, receipts
from notifications.store.claims import NotSent
from notifications.store.new_notifications import NewDelivery
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from notifyproject.db.collections import collection
from tests.support.factories.notifications import (
    CLIENT,
    NOON,
    accepted,
    claim,
    claimed,
    new,
    read,
    settled,
    started,
)
from tests.support.factories.notifications import settlement as outcome
from tests.support.fakes.callback_receiver import called_back
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S, E = DeliveryStatus, EventType
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
CALLBACK_URL = "http://127.0.0.1:9/hooks"


@pytest.fixture(autouse=True)
def _callback(db: None) -> None:
    called_back(CALLBACK_URL)


def event_types(notification_id: ObjectId | None = None) -> list[str]:
    wanted = {} if notification_id is None else {"notification_id": notification_id}
    return [d["type"] for d in collection("callback_messages").find(wanted).sort("_id", 1)]


def report(document: NotificationDocument, status: DeliveryStatus, **fields: Any) -> None:
    default = DeliveryReceipt(
        reference=AttemptReference(document["_id"], EMAIL, 1),
        status=status,
        at=NOON + MINUTE,
        provider="sendgrid",
    )
    receipts.apply_receipt(replace(default, **fields), now=NOON + MINUTE)


def test_sent_delivery_and_completion_are_published_once() -> None:
    document = settled(S.SENT, has_callback=True)
    assert document["callback_due_at"] == NOON, "the mark is part of the write"
    assert callback_events.publish_events(now=NOON) == 1
    assert callback_events.publish_events(now=NOON) == 0
    assert event_types(document["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_SENT]


def test_open_notifications_are_not_read() -> None:
    started(has_callback=True)
    claimed(has_callback=True)
    accepted(has_callback=True)
    assert callback_events.publish_events(now=NOON) == 0
    assert event_types() == []


def test_notifications_without_a_callback_have_no_mark() -> None:
    document = settled(S.SENT, client_id=ObjectId())
    assert not {"callback_revision", "callback_due_at"} & set(document)
    assert callback_events.publish_events(now=NOON) == 0


@each_case(
    "status, events",
    [
        (S.SENT, [E.DELIVERY_SENT]),
        (S.FAILED, [E.DELIVERY_FAILED]),
        (S.UNKNOWN, [E.DELIVERY_UNKNOWN]),
        (S.PENDING, []),
    ],
)
def test_attempt_outcome_is_published(status: DeliveryStatus, events: list[EventType]) -> None:
    document = settled(status, has_callback=True)
    callback_events.publish_events(now=NOON)
    is_over = status in (S.SENT, S.FAILED)
    assert sorted(event_types(document["_id"])) == sorted(
        [*events, *([E.NOTIFICATION_COMPLETED] if is_over else [])]
    )


@each_case("status", [S.EXPIRED, S.SUPPRESSED, S.CANCELLED])
def test_unsent_delivery_is_published(status: DeliveryStatus) -> None:
    claim = claimed(has_callback=True)
    not_sent = NotSent(claimed=claim, status=status, code=FailureCode.SUPPRESSED, reason="No more.")
    leases.settle_not_sent([not_sent], now=NOON)
    callback_events.publish_events(now=NOON)
    assert f"delivery.{status.value}" in event_types(claim.notification_id)


def test_intermediate_states_are_published() -> None:
    document = settled(S.SENT, has_callback=True)
    report(document, S.DELIVERED)
    report(document, S.READ)
    callback_events.publish_events(now=NOON)
    assert event_types(document["_id"]) == [
        E.NOTIFICATION_COMPLETED,
        E.DELIVERY_DELIVERED,
        E.DELIVERY_READ,
        E.DELIVERY_SENT,
    ]


def test_bounce_is_published_after_the_sent_event() -> None:
    document = settled(S.SENT, has_callback=True)
    callback_events.publish_events(now=NOON)
    report(document, S.FAILED, code=FailureCode.BOUNCED)
    callback_events.publish_events(now=NOON)
    assert sorted(event_types(document["_id"])) == [
        E.DELIVERY_FAILED,
        E.DELIVERY_SENT,
        E.NOTIFICATION_COMPLETED,
    ]


@each_case(
    "delivery, event",
    [
        (NewDelivery(channel=IN_APP), E.DELIVERY_DELIVERED),
        (NewDelivery(channel=EMAIL, status=S.SUPPRESSED), E.DELIVERY_SUPPRESSED),
    ],
)
def test_end_on_acceptance_is_published(delivery: NewDelivery, event: EventType) -> None:
    document = accepted(deliveries=(delivery,), has_callback=True)
    callback_events.publish_events(now=NOON)
    assert event_types(document["_id"]) == [E.NOTIFICATION_COMPLETED, event]


def test_completion_is_published_when_no_channel_is_open() -> None:
    begun = started(channels=(EMAIL, WHATSAPP), has_callback=True)
    leases.settle([outcome(begun, S.SENT)], now=NOON)
    callback_events.publish_events(now=NOON)
    assert event_types(begun.notification_id) == [E.DELIVERY_SENT]


def test_second_failure_after_a_retry_is_published() -> None:
    document = settled(S.FAILED, has_callback=True)
    callback_events.publish_events(now=NOON)
    actions.retry(notification_id=document["_id"], channels=None, now=NOON + HOUR)
    delivery = claim(document["_id"], at=NOON + HOUR)
    not_sent = NotSent(
        claimed=delivery, status=S.FAILED, code=FailureCode.QUARANTINED, reason="Again."
    )
    leases.settle_not_sent([not_sent], now=NOON + HOUR)
    callback_events.publish_events(now=NOON + HOUR)
    assert sorted(event_types(document["_id"])) == [
        E.DELIVERY_FAILED,
        E.DELIVERY_FAILED,
        E.NOTIFICATION_COMPLETED,
        E.NOTIFICATION_COMPLETED,
    ]


def message_of(document: NotificationDocument, kind: EventType) -> dict[str, Any]:
    wanted = {"notification_id": document["_id"], "type": kind.value}
    found = collection("callback_messages").find_one(wanted)
    assert found is not None
    return found


def test_message_holds_ids_and_no_personal_data() -> None:
    document = settled(S.FAILED, has_callback=True, external_id="order-7", data={"code": "481516"})
    callback_events.publish_events(now=NOON)
    body = message_of(document, E.DELIVERY_FAILED)["body"]
    # An ID may contain one of these by chance.
    text = re.sub(r"\b[0-9a-f]{24}\b", "", body)
    for private in ("ada", "@", "+351", "481516", "Paid"):
        assert private not in text
    assert '"type":"delivery.failed"' in body
    assert '"external_id":"order-7"' in body
    assert f'"notification_id":"{document["_id"]}"' in body
    assert '"failure_code":"provider_error"' in body
    assert "." not in message_of(document, E.DELIVERY_FAILED)["_id"]


def test_only_subscribed_events_are_published() -> None:
    called_back(CALLBACK_URL, events=[E.DELIVERY_FAILED])
    settled(S.SENT, has_callback=True)
    settled(S.FAILED, has_callback=True)
    callback_events.publish_events(now=NOON)
    assert event_types() == [E.DELIVERY_FAILED]


class Crash(Exception):
    """Stands for the end of the process."""


def test_crash_before_clearing_the_mark_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    document = settled(S.SENT, has_callback=True)

    def crash(_: Sequence[NotificationDocument]) -> int:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(callback_marks, "clear_marks", crash)
        with pytest.raises(Crash):
            callback_events.publish_events(now=NOON)
    before = list(collection("callback_messages").find().sort("_id", 1))
    assert callback_events.publish_events(now=NOON + HOUR) == 1
    assert list(collection("callback_messages").find().sort("_id", 1)) == before
    assert "callback_due_at" not in read(document["_id"])


def test_change_during_publishing_keeps_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    document = settled(S.SENT, has_callback=True)
    record = outbox.record_events

    def record_and_change(events: Any, *, now: Any) -> None:
        record(events, now=now)
        report(document, S.DELIVERED)

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "record_events", record_and_change)
        callback_events.publish_events(now=NOON)
    assert event_types(document["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_SENT]
    assert callback_events.publish_events(now=NOON) == 1
    assert E.DELIVERY_DELIVERED in event_types(document["_id"])


def test_failed_publishing_keeps_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    settled(S.SENT, has_callback=True)

    def fail(*_: Any, **__: Any) -> None:
        raise AutoReconnect("no primary")

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "record_events", fail)
        with pytest.raises(AutoReconnect):
            callback_events.publish_events(now=NOON)
    assert callback_events.publish_events(now=NOON) == 1


def test_missed_mark_is_backfilled() -> None:
    client_id = ObjectId()
    before = settled(S.SENT, client_id=client_id, created_at=NOON - SECOND, send_at=NOON - SECOND)
    called_back(CALLBACK_URL, client_id=client_id)
    collection("callbacks").update_one({"_id": client_id}, {"$set": {"backfill_from": NOON}})
    missed = settled(S.SENT, client_id=client_id)
    assert callback_events.publish_events(now=NOON + SECOND) == 0
    assert callback_events.publish_events(now=NOON + MINUTE) == 1
    assert event_types(missed["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_SENT]
    assert event_types(before["_id"]) == []
    assert callback_events.publish_events(now=NOON + 2 * MINUTE) == 0


def test_notification_of_a_subscriber_is_marked() -> None:
    own, other = callback_events.mark_for_callbacks([new(), new(client_id=ObjectId())])
    assert (own.has_callback, other.has_callback) == (True, False)


def test_repeated_changes_send_one_wakeup(broker: Any) -> None:
    for _ in range(20):
        callback_events.enqueue_publisher(now=NOON)
    assert broker.llen("callbacks") == 1


def test_wakeup_needs_a_subscriber(broker: Any) -> None:
    collection("callbacks").delete_one({"_id": CLIENT})
    callback_events.clear()
    subscriptions.invalidate_subscribers()
    callback_events.enqueue_publisher(now=NOON)
    assert broker.llen("callbacks") == 0
