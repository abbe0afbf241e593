"""Settling attempts by the owner of the claim."""

from dataclasses import replace
from datetime import timedelta

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.wait_reasons import Hold, WaitReason
from notifications.store import leases, recovery
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.pipelines import ERROR_HISTORY_LENGTH, ERROR_LENGTH
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    accepted,
    attempts,
    batch,
    begin,
    claim,
    delivery,
    read,
    settlement,
    start,
    started,
)
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
MINUTE = timedelta(minutes=1)


@each_case(
    "status, overall, attempt",
    [
        (S.SENT, "sent", "sent"),
        (S.DELIVERED, "delivered", "sent"),
        (S.PENDING, "retrying", "failed"),
        (S.UNKNOWN, "processing", "unknown"),
        (S.FAILED, "failed", "failed"),
    ],
)
def test_outcome_is_written_to_delivery_notification_and_attempt(
    status: DeliveryStatus, overall: str, attempt: str
) -> None:
    begun = started()
    assert leases.settle([settlement(begun, status)], now=NOON) == 1
    document = read(begun.notification_id)
    assert (delivery(document)["status"], document["status"]) == (status.value, overall)
    assert delivery(document)["claim"] is None
    (record,) = attempts(begun.notification_id)
    assert record["status"] == attempt
    assert (record["finished_at"], record["duration_ms"]) == (NOON, 12)


def test_sent_delivery_has_a_provider_id_and_is_not_due() -> None:
    document = factories.settled(S.SENT)
    sent = delivery(document)
    assert (sent["provider_message_id"], sent["sent_at"]) == ("sg-1", NOON)
    assert document["sent_at"] == NOON
    assert "due_at" not in document
    assert "failed_at" not in document
    assert attempts(document["_id"])[0]["provider_message_id"] == "sg-1"


def test_delivered_delivery_has_its_times() -> None:
    document = factories.settled(S.DELIVERED)
    assert delivery(document)["sent_at"] == delivery(document)["delivered_at"] == NOON


def test_retry_is_due_by_the_policy() -> None:
    document = factories.settled(S.PENDING)
    assert delivery(document)["next_attempt_at"] == document["due_at"] == NOON + 5 * MINUTE
    assert document["error"] == "The provider had a problem of its own. (503)"


def test_unknown_outcome_is_due_after_its_wait() -> None:
    assert factories.settled(S.UNKNOWN)["due_at"] == NOON + 5 * MINUTE


def test_failure_is_recorded_in_delivery_and_history() -> None:
    document = factories.settled(S.FAILED)
    failed = delivery(document)
    assert (failed["failure_code"], failed["failed_at"]) == ("provider_error", NOON)
    assert document["failed_at"] == NOON
    assert "due_at" not in document
    assert document["error_history"] == [
        {
            "timestamp": NOON,
            "channel": "email",
            "code": "provider_error",
            "error": "The provider had a problem of its own. (503)",
        }
    ]
    (record,) = attempts(document["_id"])
    assert record["error_code"] == "provider_error"
    assert record["platform_response"] == {"status": 503}


def test_uncounted_attempt_is_counted_separately() -> None:
    begun = started()
    leases.settle([settlement(begun, S.PENDING, uncounted=True)], now=NOON)
    waiting = delivery(read(begun.notification_id))
    assert (waiting["attempt_count"], waiting["uncounted_attempts"]) == (1, 1)


def lose_claim(claim: ClaimedDelivery, cause: str) -> None:
    """Make the worker lose its claim, by a recovery or a receipt."""
    if cause == "recovered":
        assert recovery.expire_leases(now=claim.lease_until) == 1
    else:
        assert factories.arrive(claim.notification_id)


@each_case("cause", ["recovered", "reported"])
@each_case("status", [S.SENT, S.PENDING, S.UNKNOWN, S.FAILED])
def test_replaced_claim_writes_only_its_attempt(cause: str, status: DeliveryStatus) -> None:
    begun = started()
    lose_claim(begun, cause)
    before = read(begun.notification_id)
    assert leases.settle([settlement(begun, status)], now=NOON + MINUTE) == 0
    assert read(begun.notification_id) == before
    (record,) = attempts(begun.notification_id)
    assert record["status"] == {S.SENT: "sent", S.UNKNOWN: "unknown"}.get(status, "failed")


def test_repeated_settlement_is_applied_once() -> None:
    begun = started()
    first = settlement(begun, S.FAILED)
    assert [leases.settle([first], now=NOON) for _ in range(3)] == [1, 0, 0]
    assert len(read(begun.notification_id)["error_history"]) == 1


def test_each_of_a_batch_is_settled_separately() -> None:
    begun = begin(*batch(6))
    outcomes = [S.SENT, S.FAILED, S.PENDING, S.UNKNOWN, S.SENT, S.DELIVERED]
    lose_claim(begun[4], "reported")
    settlements = [settlement(c, s) for c, s in zip(begun, outcomes, strict=True)]
    assert leases.settle(settlements, now=NOON) == 5
    statuses = [delivery(read(c.notification_id))["status"] for c in begun]
    assert statuses == ["sent", "failed", "pending", "unknown", "delivered", "delivered"]


def test_several_channels_of_a_notification_are_settled_together() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    mail = start(claim(document["_id"]))
    whatsapp = start(claim(document["_id"], channel=WHATSAPP))
    outcomes = [settlement(mail, S.FAILED), settlement(whatsapp, S.SENT)]
    assert leases.settle(outcomes, now=NOON) == 2
    after = read(document["_id"])
    assert [d["status"] for d in after["delivery"]] == ["failed", "sent"]
    assert [line["channel"] for line in after["error_history"]] == ["email"]


@each_case("status", [S.EXPIRED, S.CANCELLED, S.SUPPRESSED, S.SENDING])
def test_invalid_transition_is_refused(status: DeliveryStatus) -> None:
    begun = started()
    with pytest.raises(ValueError, match="no transition from sending"):
        leases.settle([settlement(begun, status)], now=NOON)
    assert delivery(read(begun.notification_id))["status"] == "sending"


def test_long_reason_is_truncated() -> None:
    begun = started()
    leases.settle([settlement(begun, S.FAILED, reason="x" * 5_000)], now=NOON)
    document = read(begun.notification_id)
    texts = [document["error"], delivery(document)["failure_reason"]]
    texts += [attempts(begun.notification_id)[0]["error_message"]]
    texts += [document["error_history"][0]["error"]]
    assert [len(text) for text in texts] == [ERROR_LENGTH] * 4


@each_case("status", [S.SENT, S.DELIVERED])
def test_error_ends_when_its_channel_succeeds(status: DeliveryStatus) -> None:
    document = accepted(channels=[Channel.EMAIL, Channel.WHATSAPP])
    later = NOON + timedelta(hours=1)
    first = start(claim(document["_id"]))
    leases.settle([settlement(first, S.PENDING, next_attempt_at=later)], now=NOON)
    text = read(document["_id"])["error"]
    other = start(claim(document["_id"], channel=Channel.WHATSAPP), provider="whatsapp")
    leases.settle([settlement(other, status)], now=NOON)
    assert read(document["_id"])["error"] == text
    again = start(claim(document["_id"], at=later), at=later)
    leases.settle([settlement(again, status, at=later)], now=later)
    after = read(document["_id"])
    assert "error" not in after
    assert len(after["error_history"]) == 1


def test_error_history_keeps_the_last_errors() -> None:
    document = accepted(max_attempts=100)
    at = NOON
    for number in range(ERROR_HISTORY_LENGTH + 5):
        begun = start(claim(document["_id"], at=at), at=at)
        reason = f"error {number}"
        leases.settle([settlement(begun, S.PENDING, reason=reason, next_attempt_at=at)], now=at)
    history = read(document["_id"])["error_history"]
    expected = [f"error {n}" for n in range(5, ERROR_HISTORY_LENGTH + 5)]
    assert [line["error"] for line in history] == expected
    assert len(attempts(document["_id"])) == ERROR_HISTORY_LENGTH + 5


@each_case("text", ["$$ROOT", "$delivery", "$", "$$d.claim.token", "{{ x }}"])
def test_texts_are_stored_literally(text: str) -> None:
    begun = started()
    answer = {"provider": text, "provider_message_id": text, "response": {"body": text}}
    leases.settle([settlement(begun, S.FAILED, reason=text, **answer)], now=NOON)
    document = read(begun.notification_id)
    failed = delivery(document)
    assert failed["failure_reason"] == failed["provider"] == failed["provider_message_id"] == text
    assert document["error"] == document["error_history"][0]["error"] == text
    assert attempts(begun.notification_id)[0]["platform_response"] == {"body": text}


def test_settlement_of_an_unknown_notification_changes_nothing() -> None:
    ghost = replace(started(), notification_id=ObjectId())
    assert leases.settle([settlement(ghost, S.SENT)], now=NOON) == 0


@each_case("status", [S.EXPIRED, S.FAILED])
def test_end_in_an_outage_names_the_provider(status: DeliveryStatus) -> None:
    """A step of a plan ends before it is tried: the hold is as new as its end."""
    notification_id = accepted()["_id"]
    held = WaitReason.CIRCUIT_OPEN
    hold = Hold(reason=held, provider="smtp", since=NOON)
    ended = NotSent(
        claim(notification_id), status, FailureCode.EXPIRED, "Expires.", held_reason=held, hold=hold
    )
    leases.settle_not_sent([ended], now=NOON)
    assert delivery(read(notification_id))["provider"] == "smtp"
