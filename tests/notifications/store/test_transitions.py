"""Transitions by clients and staff: cancel, reopen, resend."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.store import actions, leases
from notifications.store.claims import NotSent
from notifyproject.db.collections import collection
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
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
LATER = NOON + timedelta(minutes=5)
ROUNDS = 25


def cancel(
    notification_id: ObjectId, *channels: Channel, reason: str = "x"
) -> NotificationDocument | None:
    return actions.cancel(
        notification_id=notification_id, channels=channels or [EMAIL], reason=reason, now=NOON
    )


def reopen(notification_id: ObjectId, *channels: Channel) -> NotificationDocument | None:
    return actions.reopen(
        notification_id=notification_id,
        channels=channels or [EMAIL],
        now=LATER,
    )


def test_pending_delivery_is_cancelled() -> None:
    document = cancel(accepted()["_id"], reason="Not needed any more.")
    assert document is not None
    assert document == read(document["_id"])
    cancelled = delivery(document)
    assert (cancelled["status"], document["status"]) == ("cancelled", "cancelled")
    assert cancelled["failure_reason"] == "Not needed any more."
    assert "due_at" not in document
    assert document["error_history"] == []


def test_pending_retry_is_cancelled_once_and_an_unknown_delivery_never() -> None:
    retry = factories.settled(S.PENDING)["_id"]
    assert [cancel(retry) is not None for _ in range(2)] == [True, False]
    assert cancel(ObjectId()) is None
    assert cancel(accepted()["_id"], WHATSAPP) is None


def test_started_delivery_is_not_cancelled() -> None:
    begun = started()
    assert cancel(begun.notification_id) is None
    assert leases.settle([factories.settlement(begun, S.SENT)], now=NOON) == 1


@each_case("status", [S.SENT, S.DELIVERED, S.FAILED, S.UNKNOWN])
def test_sent_or_ended_delivery_is_not_cancelled(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert cancel(document["_id"]) is None
    assert read(document["_id"]) == document


def test_only_named_channels_are_cancelled() -> None:
    document = cancel(accepted(channels=[EMAIL, PUSH, WHATSAPP])["_id"], EMAIL, WHATSAPP)
    assert document is not None
    assert [d["status"] for d in document["delivery"]] == ["cancelled", "pending", "cancelled"]
    assert document["status"] == "queued"


def test_only_pending_channels_are_cancelled() -> None:
    sent = accepted(channels=[EMAIL, WHATSAPP])
    leases.settle([factories.settlement(start(claim(sent["_id"])), S.SENT)], now=NOON)
    document = cancel(sent["_id"], EMAIL, WHATSAPP)
    assert document is not None
    assert [d["status"] for d in document["delivery"]] == ["sent", "cancelled"]
    assert document["status"] == "sent"


@each_case("text", ["$$ROOT", "$delivery", "{{ x }}"])
def test_reason_is_stored_literally(text: str) -> None:
    document = cancel(accepted()["_id"], reason=text)
    assert document is not None
    assert delivery(document)["failure_reason"] == text


def test_notification_is_cancelled_or_started() -> None:
    with ThreadPoolExecutor(2) as threads:
        outcomes = [race(threads) for _ in range(ROUNDS)]
    for notification_id, was_cancelled, was_started in outcomes:
        assert was_cancelled != was_started
        expected = "cancelled" if was_cancelled else "sending"
        assert delivery(read(notification_id))["status"] == expected


def race(threads: ThreadPoolExecutor) -> tuple[ObjectId, bool, bool]:
    notification_id = accepted()["_id"]
    together = threading.Barrier(2)

    def cancel_it() -> bool:
        together.wait()
        return cancel(notification_id) is not None

    def work() -> bool:
        together.wait()
        claims = leases.claim(ids=[notification_id], channel=EMAIL, worker="w", now=NOON)
        return bool(leases.start(claims, provider="sendgrid", worker="w", now=NOON))

    person, worker = threads.submit(cancel_it), threads.submit(work)
    return notification_id, person.result(), worker.result()


def test_failed_delivery_is_reopened_with_more_attempts() -> None:
    document = reopen(factories.settled(S.FAILED)["_id"])
    assert document is not None
    reopened = delivery(document)
    assert (reopened["status"], document["status"]) == ("pending", "retrying")
    assert (reopened["attempt_count"], reopened["max_attempts"]) == (1, 5)
    assert reopened["next_attempt_at"] == reopened["first_due_at"] == document["due_at"] == LATER
    assert "failed_at" not in document
    assert reopened["failed_at"] is None


def test_reopening_starts_retries_and_waits_over_and_keeps_attempt_numbers() -> None:
    begun = started(max_attempts=2)
    held = {"uncounted": True, "next_attempt_at": LATER}
    uncounted = factories.settlement(begun, S.PENDING, **held)
    leases.settle([uncounted], now=NOON)
    for reopenings in range(1, 4):
        failing = start(claim(begun.notification_id, at=LATER), at=LATER)
        assert failing.attempt_count == 1 + reopenings
        leases.settle([factories.settlement(failing, S.FAILED)], now=LATER)
        document = reopen(begun.notification_id)
        assert document is not None
        reopened = delivery(document)
        assert (reopened["attempt_count"], reopened["uncounted_attempts"]) == (1 + reopenings, 0)
        assert reopened["max_attempts"] == reopened["attempt_count"] + 2
        again = claim(begun.notification_id, at=LATER)
        state = again.retry_state
        assert (state.attempt_count, state.uncounted_attempts, state.max_attempts) == (0, 0, 2)
        assert state.held_for == timedelta(0)
        leases.release([again], now=LATER)


def test_delivery_reopened_by_an_earlier_version_is_reopened_again() -> None:
    notification_id = factories.settled(S.FAILED)["_id"]
    collection("notifications").update_one(
        {"_id": notification_id}, {"$set": {"delivery.0.max_attempts": 5}}
    )
    document = reopen(notification_id)
    assert document is not None
    assert delivery(document)["max_attempts"] == 6


def test_unattempted_failure_is_reopened_as_new() -> None:
    claim = claimed()
    not_sent = NotSent(
        claimed=claim, status=S.FAILED, code=FailureCode.CHANNEL_UNAVAILABLE, reason="No provider."
    )
    leases.settle_not_sent([not_sent], now=NOON)
    document = reopen(claim.notification_id)
    assert document is not None
    assert document["status"] == "queued"
    assert delivery(document)["max_attempts"] == 4


def test_reopened_delivery_is_sent() -> None:
    failed = factories.settled(S.FAILED)
    reopen(failed["_id"])
    begun = start(claim(failed["_id"], at=LATER), at=LATER)
    leases.settle([factories.settlement(begun, S.SENT, at=LATER)], now=LATER)
    document = read(failed["_id"])
    assert document["status"] == "sent"
    assert begun.attempt_count == 2
    assert "failed_at" not in document


@each_case("status", [S.SENT, S.DELIVERED, S.PENDING, S.UNKNOWN])
def test_only_failed_deliveries_are_reopened(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert reopen(document["_id"]) is None
    assert read(document["_id"]) == document


def test_cancelled_delivery_is_not_reopened() -> None:
    document = accepted()
    cancel(document["_id"])
    assert reopen(document["_id"]) is None


@each_case(
    "expires_at, is_reopened",
    [(LATER, False), (LATER - timedelta(days=1), False), (LATER + timedelta(seconds=1), True)],
)
def test_expired_delivery_is_not_reopened(expires_at: object, is_reopened: bool) -> None:
    document = factories.settled(S.FAILED, expires_at=expires_at)
    assert (reopen(document["_id"]) is not None) is is_reopened


def test_concurrent_reopening_happens_once() -> None:
    document = factories.settled(S.FAILED)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: reopen(document["_id"]), range(8)))
    assert sum(result is not None for result in results) == 1


def test_only_named_channels_are_reopened() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    for channel in (EMAIL, WHATSAPP):
        begun = start(claim(document["_id"], channel=channel))
        leases.settle([factories.settlement(begun, S.FAILED)], now=NOON)
    after = reopen(document["_id"], WHATSAPP)
    assert after is not None
    assert [d["status"] for d in after["delivery"]] == ["failed", "pending"]
    assert after["status"] == "retrying"


def test_resend_is_linked_once() -> None:
    document, resend_id = accepted(), ObjectId()
    for _ in range(2):
        actions.link_resend(original_id=document["_id"], resend_id=resend_id, now=LATER)
    after = read(document["_id"])
    assert after["resent_as"] == [resend_id]
    assert after["updated_at"] == LATER
