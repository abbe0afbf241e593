"""What apps are told of their notifications: everything, once, whatever stops in between."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import AutoReconnect

from callbacks import outbox, subscriptions
from callbacks.events import EventType
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifications import callback_events, store
from notifications.resend import actions
from notifications.store import AttemptReference, Deferred, DeliveryReceipt, Document, NewDelivery
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

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S, E = DeliveryStatus, EventType
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
ELSEWHERE = "http://127.0.0.1:9/hooks"


@pytest.fixture(autouse=True)
def _callback(db: None) -> None:
    called_back(ELSEWHERE)


def told(notification_id: ObjectId | None = None) -> list[str]:
    """Return the types of what apps are told, in the order of their ids."""
    wanted = {} if notification_id is None else {"notification_id": notification_id}
    return [d["type"] for d in collection("callback_messages").find(wanted).sort("_id", 1)]


def report(document: Document, status: DeliveryStatus, **fields: Any) -> None:
    default = DeliveryReceipt(
        reference=AttemptReference(document["_id"], EMAIL, 1),
        status=status,
        at=NOON + MINUTE,
        provider="sendgrid",
    )
    store.apply_receipt(replace(default, **fields), now=NOON + MINUTE)


def test_a_delivery_that_is_sent_is_told_once_and_so_is_the_end() -> None:
    document = settled(S.SENT, has_callback=True)
    assert callback_events.publish_events(now=NOON) == 1
    assert callback_events.publish_events(now=NOON) == 0
    assert told(document["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_SENT]


def test_what_has_not_begun_to_end_is_not_looked_at() -> None:
    started(has_callback=True)
    claimed(has_callback=True)
    accepted(has_callback=True)
    assert callback_events.publish_events(now=NOON) == 0
    assert told() == []


def test_the_notifications_of_an_app_without_a_callback_bear_no_mark() -> None:
    document = settled(S.SENT, client_id=ObjectId())
    assert not {"callback_revision", "callback_due_at"} & set(document)
    assert callback_events.publish_events(now=NOON) == 0


@pytest.mark.parametrize(
    ("status", "events"),
    [
        (S.SENT, [E.DELIVERY_SENT]),
        (S.FAILED, [E.DELIVERY_FAILED]),
        (S.UNKNOWN, [E.DELIVERY_UNKNOWN]),
        (S.PENDING, []),
    ],
)
def test_what_is_told_of_the_end_of_an_attempt(
    status: DeliveryStatus, events: list[EventType]
) -> None:
    document = settled(status, has_callback=True)
    callback_events.publish_events(now=NOON)
    is_over = status in (S.SENT, S.FAILED)
    assert sorted(told(document["_id"])) == sorted(
        [*events, *([E.NOTIFICATION_COMPLETED] if is_over else [])]
    )


@pytest.mark.parametrize("status", [S.EXPIRED, S.SUPPRESSED, S.CANCELLED])
def test_what_is_told_of_a_delivery_that_is_given_up_unsent(status: DeliveryStatus) -> None:
    one = claimed(has_callback=True)
    parked = Deferred(claimed=one, status=status, code=FailureCode.SUPPRESSED, reason="No more.")
    store.defer([parked], now=NOON)
    callback_events.publish_events(now=NOON)
    assert f"delivery.{status.value}" in told(one.notification_id)


def test_states_that_were_passed_through_meanwhile_are_told_too() -> None:
    document = settled(S.SENT, has_callback=True)
    report(document, S.DELIVERED)
    report(document, S.READ)
    callback_events.publish_events(now=NOON)
    assert told(document["_id"]) == [
        *(E.NOTIFICATION_COMPLETED, E.DELIVERY_DELIVERED, E.DELIVERY_READ, E.DELIVERY_SENT)
    ]


def test_a_bounce_is_told_after_what_it_takes_back() -> None:
    document = settled(S.SENT, has_callback=True)
    callback_events.publish_events(now=NOON)
    report(document, S.FAILED, code=FailureCode.BOUNCED)
    callback_events.publish_events(now=NOON)
    assert sorted(told(document["_id"])) == [
        *(E.DELIVERY_FAILED, E.DELIVERY_SENT, E.NOTIFICATION_COMPLETED)
    ]


def test_what_is_delivered_by_being_accepted_is_told() -> None:
    document = accepted(channels=[IN_APP], has_callback=True)
    callback_events.publish_events(now=NOON)
    assert told(document["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_DELIVERED]


def test_what_is_suppressed_by_being_accepted_is_told() -> None:
    held_back = NewDelivery(channel=EMAIL, status=S.SUPPRESSED)
    document = accepted(deliveries=(held_back,), has_callback=True)
    callback_events.publish_events(now=NOON)
    assert told(document["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_SUPPRESSED]


def test_an_end_is_told_only_when_no_channel_is_open() -> None:
    one = started(channels=(EMAIL, WHATSAPP), has_callback=True)
    store.settle([outcome(one, S.SENT)], now=NOON)
    callback_events.publish_events(now=NOON)
    assert told(one.notification_id) == [E.DELIVERY_SENT]


def test_what_fails_again_after_somebody_re_opened_it_is_told_again() -> None:
    document = settled(S.FAILED, has_callback=True)
    callback_events.publish_events(now=NOON)
    actions.retry(notification_id=document["_id"], channels=None, now=NOON + HOUR)
    one = claim(document["_id"], at=NOON + HOUR)
    parked = Deferred(claimed=one, status=S.FAILED, code=FailureCode.QUARANTINED, reason="Again.")
    store.defer([parked], now=NOON + HOUR)
    callback_events.publish_events(now=NOON + HOUR)
    assert sorted(told(document["_id"])) == [
        *(E.DELIVERY_FAILED, E.DELIVERY_FAILED),
        *(E.NOTIFICATION_COMPLETED, E.NOTIFICATION_COMPLETED),
    ]


def message_of(document: Document, kind: EventType) -> Document:
    wanted = {"notification_id": document["_id"], "type": kind.value}
    found = collection("callback_messages").find_one(wanted)
    assert found is not None
    return found


def test_a_message_holds_ids_and_words_and_nothing_of_the_person() -> None:
    document = settled(S.FAILED, has_callback=True, external_id="order-7", data={"code": "481516"})
    callback_events.publish_events(now=NOON)
    body = message_of(document, E.DELIVERY_FAILED)["body"]
    for private in ("ada", "@", "+351", "481516", "Paid"):
        assert private not in body
    assert '"type":"delivery.failed"' in body
    assert '"external_id":"order-7"' in body
    assert f'"notification_id":"{document["_id"]}"' in body
    assert '"failure_code":"provider_error"' in body
    assert "." not in message_of(document, E.DELIVERY_FAILED)["_id"]


def test_only_what_the_app_chose_is_told() -> None:
    called_back(ELSEWHERE, events=[E.DELIVERY_FAILED])
    settled(S.SENT, has_callback=True)
    settled(S.FAILED, has_callback=True)
    callback_events.publish_events(now=NOON)
    assert told() == [E.DELIVERY_FAILED]


# What stops in between.


class Crash(Exception):
    """The process is gone."""


def test_a_crash_between_the_write_and_the_telling_loses_nothing() -> None:
    """The mark is in the write itself: whoever looks next finds it."""
    document = settled(S.SENT, has_callback=True)
    assert document["callback_due_at"] == NOON
    callback_events.publish_events(now=NOON + HOUR)
    assert E.DELIVERY_SENT in told(document["_id"])


def test_a_crash_between_the_telling_and_the_mark_tells_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = settled(S.SENT, has_callback=True)

    def crash(_: Sequence[Document]) -> int:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(store, "clear_marks", crash)
        with pytest.raises(Crash):
            callback_events.publish_events(now=NOON)
    before = list(collection("callback_messages").find().sort("_id", 1))
    assert callback_events.publish_events(now=NOON + HOUR) == 1
    assert list(collection("callback_messages").find().sort("_id", 1)) == before
    assert "callback_due_at" not in read(document["_id"])


def test_what_changes_while_it_is_told_keeps_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    document = settled(S.SENT, has_callback=True)
    tell = outbox.record_events

    def slowly(events: Any, *, now: Any) -> None:
        tell(events, now=now)
        report(document, S.DELIVERED)

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "record_events", slowly)
        callback_events.publish_events(now=NOON)
    assert told(document["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_SENT]
    assert callback_events.publish_events(now=NOON) == 1
    assert E.DELIVERY_DELIVERED in told(document["_id"])


def test_what_cannot_be_recorded_keeps_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    settled(S.SENT, has_callback=True)

    def away(*_: Any, **__: Any) -> None:
        raise AutoReconnect("no primary")

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "record_events", away)
        with pytest.raises(AutoReconnect):
            callback_events.publish_events(now=NOON)
    assert callback_events.publish_events(now=NOON) == 1


def test_what_was_accepted_by_a_process_that_did_not_know_the_callback_is_caught_up_with() -> None:
    client_id = ObjectId()
    before = settled(S.SENT, client_id=client_id, created_at=NOON - SECOND, send_at=NOON - SECOND)
    called_back(ELSEWHERE, client_id=client_id)
    collection("callbacks").update_one({"_id": client_id}, {"$set": {"enrols_from": NOON}})
    missed = settled(S.SENT, client_id=client_id)
    assert callback_events.publish_events(now=NOON + SECOND) == 0
    assert callback_events.publish_events(now=NOON + MINUTE) == 1
    assert told(missed["_id"]) == [E.NOTIFICATION_COMPLETED, E.DELIVERY_SENT]
    assert told(before["_id"]) == []
    assert callback_events.publish_events(now=NOON + 2 * MINUTE) == 0


# Who is asked, and when.


def test_what_is_accepted_is_marked_if_its_app_has_a_callback() -> None:
    own, other = callback_events.mark_for_callbacks([new(), new(client_id=ObjectId())])
    assert (own.has_callback, other.has_callback) == (True, False)


def test_a_burst_of_changes_is_hinted_at_once(broker: Any) -> None:
    for _ in range(20):
        callback_events.enqueue_publisher(now=NOON)
    assert broker.llen("callbacks") == 1


def test_without_a_callback_anywhere_nobody_is_hinted_at(broker: Any) -> None:
    collection("callbacks").delete_one({"_id": CLIENT})
    callback_events.clear()
    subscriptions.invalidate_subscribers()
    callback_events.enqueue_publisher(now=NOON)
    assert broker.llen("callbacks") == 0
