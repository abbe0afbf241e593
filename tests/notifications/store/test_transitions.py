"""What people do to a notification: cancel, re-open, resend."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from bson import ObjectId

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.store import Document
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    accepted,
    claim,
    claimed,
    delivery,
    read,
    start,
    started,
)

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
LATER = NOON + timedelta(minutes=5)
ROUNDS = 50


def cancel(notification_id: ObjectId, *channels: Channel, reason: str = "x") -> Document | None:
    return store.cancel(
        notification_id=notification_id, channels=channels or [EMAIL], reason=reason, now=NOON
    )


def requeue(notification_id: ObjectId, *channels: Channel, extra: int = 4) -> Document | None:
    return store.reopen(
        notification_id=notification_id,
        channels=channels or [EMAIL],
        extra_attempts=extra,
        now=LATER,
    )


# Cancel.


def test_what_is_pending_is_withdrawn() -> None:
    document = cancel(accepted()["_id"], reason="Not needed any more.")
    assert document is not None
    assert document == read(document["_id"])
    withdrawn = delivery(document)
    assert (withdrawn["status"], document["status"]) == ("cancelled", "cancelled")
    assert withdrawn["failure_reason"] == "Not needed any more."
    assert "due_at" not in document
    assert document["error_history"] == []


def test_what_waits_for_another_try_is_withdrawn() -> None:
    assert cancel(factories.settled(S.PENDING)["_id"]) is not None


def test_a_worker_that_has_claimed_and_not_started_loses_it() -> None:
    one = claimed()
    assert cancel(one.notification_id) is not None
    assert store.start([one], provider="sendgrid", worker="w", now=NOON) == []


def test_a_worker_that_has_started_wins() -> None:
    one = started()
    assert cancel(one.notification_id) is None
    assert store.settle([factories.settlement(one, S.SENT)], now=NOON) == 1


@pytest.mark.parametrize("status", [S.SENT, S.DELIVERED, S.FAILED, S.UNKNOWN])
def test_what_was_sent_or_has_ended_is_not_withdrawn(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert cancel(document["_id"]) is None
    assert read(document["_id"]) == document


def test_what_is_withdrawn_is_not_withdrawn_again() -> None:
    document = accepted()
    assert [cancel(document["_id"]) is not None for _ in range(2)] == [True, False]


def test_only_the_channels_named_are_withdrawn() -> None:
    document = cancel(accepted(channels=[EMAIL, PUSH, WHATSAPP])["_id"], EMAIL, WHATSAPP)
    assert document is not None
    assert [d["status"] for d in document["delivery"]] == ["cancelled", "pending", "cancelled"]
    assert document["status"] == "queued"


def test_of_several_channels_what_is_pending_is_withdrawn() -> None:
    sent = accepted(channels=[EMAIL, WHATSAPP])
    store.settle([factories.settlement(start(claim(sent["_id"])), S.SENT)], now=NOON)
    document = cancel(sent["_id"], EMAIL, WHATSAPP)
    assert document is not None
    assert [d["status"] for d in document["delivery"]] == ["sent", "cancelled"]
    assert document["status"] == "sent"


def test_what_is_not_there_is_not_withdrawn() -> None:
    assert cancel(ObjectId()) is None
    assert cancel(accepted()["_id"], WHATSAPP) is None


@pytest.mark.parametrize("text", ["$$ROOT", "$delivery", "{{ x }}"])
def test_a_reason_is_stored_literally(text: str) -> None:
    document = cancel(accepted()["_id"], reason=text)
    assert document is not None
    assert delivery(document)["failure_reason"] == text


def test_a_notification_is_cancelled_or_started_and_never_both() -> None:
    with ThreadPoolExecutor(2) as threads:
        outcomes = [race(threads) for _ in range(ROUNDS)]
    for notification_id, was_cancelled, was_started in outcomes:
        assert was_cancelled != was_started
        expected = "cancelled" if was_cancelled else "sending"
        assert delivery(read(notification_id))["status"] == expected
        assert len(factories.attempts(notification_id)) == int(was_started)


def race(threads: ThreadPoolExecutor) -> tuple[ObjectId, bool, bool]:
    """Let a worker and a person at one notification; return who of them succeeded."""
    notification_id = accepted()["_id"]
    together = threading.Barrier(2)

    def withdraw() -> bool:
        together.wait()
        return cancel(notification_id) is not None

    def work() -> bool:
        together.wait()
        claims = store.claim(ids=[notification_id], channel=EMAIL, worker="w", now=NOON)
        return bool(store.start(claims, provider="sendgrid", worker="w", now=NOON))

    person, worker = threads.submit(withdraw), threads.submit(work)
    return notification_id, person.result(), worker.result()


# Re-open.


def test_what_failed_is_due_again_with_more_attempts() -> None:
    document = requeue(factories.settled(S.FAILED)["_id"])
    assert document is not None
    reopened = delivery(document)
    assert (reopened["status"], document["status"]) == ("pending", "retrying")
    assert (reopened["attempt_count"], reopened["max_attempts"]) == (1, 5)
    assert reopened["next_attempt_at"] == reopened["first_due_at"] == document["due_at"] == LATER
    assert "failed_at" not in document
    assert reopened["failed_at"] is None


def test_the_attempts_made_stay_counted_and_the_excused_ones_stay_excused() -> None:
    one = started()
    excused = factories.settlement(one, S.PENDING, uncounted=True, next_attempt_at=NOON)
    store.settle([excused], now=NOON)
    again = start(claim(one.notification_id))
    store.settle([factories.settlement(again, S.FAILED)], now=NOON)
    document = requeue(one.notification_id, extra=2)
    assert document is not None
    reopened = delivery(document)
    assert (reopened["attempt_count"], reopened["excused_count"]) == (2, 1)
    assert reopened["max_attempts"] == 3


def test_what_failed_before_it_was_ever_sent_is_re_opened_as_new() -> None:
    one = claimed()
    parked = store.Deferred(
        claimed=one,
        status=S.FAILED,
        code=FailureCode.CHANNEL_UNAVAILABLE,
        reason="No provider.",
    )
    store.defer([parked], now=NOON)
    document = requeue(one.notification_id)
    assert document is not None
    assert document["status"] == "queued"
    assert delivery(document)["max_attempts"] == 4


def test_a_re_opened_delivery_is_sent() -> None:
    failed = factories.settled(S.FAILED)
    requeue(failed["_id"])
    one = start(claim(failed["_id"], at=LATER), at=LATER)
    store.settle([factories.settlement(one, S.SENT, at=LATER)], now=LATER)
    document = read(failed["_id"])
    assert document["status"] == "sent"
    assert one.attempt_count == 2
    assert "failed_at" not in document


@pytest.mark.parametrize("status", [S.SENT, S.DELIVERED, S.PENDING, S.UNKNOWN])
def test_only_what_failed_is_re_opened(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert requeue(document["_id"]) is None
    assert read(document["_id"]) == document


def test_what_was_withdrawn_is_not_re_opened() -> None:
    document = accepted()
    cancel(document["_id"])
    assert requeue(document["_id"]) is None


@pytest.mark.parametrize(
    ("expires_at", "is_reopened"),
    [(LATER, False), (LATER - timedelta(days=1), False), (LATER + timedelta(seconds=1), True)],
)
def test_what_has_expired_is_not_re_opened(expires_at: object, is_reopened: bool) -> None:
    document = factories.settled(S.FAILED, expires_at=expires_at)
    assert (requeue(document["_id"]) is not None) is is_reopened


def test_several_that_re_open_at_once_re_open_once() -> None:
    document = factories.settled(S.FAILED)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: requeue(document["_id"]), range(8)))
    assert sum(result is not None for result in results) == 1


def test_only_the_channels_named_are_re_opened() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    for channel in (EMAIL, WHATSAPP):
        one = start(claim(document["_id"], channel=channel))
        store.settle([factories.settlement(one, S.FAILED)], now=NOON)
    after = requeue(document["_id"], WHATSAPP)
    assert after is not None
    assert [d["status"] for d in after["delivery"]] == ["failed", "pending"]
    assert after["status"] == "retrying"


# Resend.


def test_a_resend_is_linked_once() -> None:
    document, resend_id = accepted(), ObjectId()
    for _ in range(2):
        store.link_resend(original_id=document["_id"], resend_id=resend_id, now=LATER)
    after = read(document["_id"])
    assert after["resent_as"] == [resend_id]
    assert after["updated_at"] == LATER
