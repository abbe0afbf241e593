"""Parking: a claimed delivery that is not sent now uses up no attempt."""

from datetime import timedelta
from typing import Any

import pytest

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.store import LEASE, ClaimedDelivery, Deferred
from tests.support.factories.notifications import (
    NOON,
    attempts,
    claim,
    claimed,
    delivery,
    read,
    started,
)

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
MINUTE = timedelta(minutes=1)
TAKEN_OVER = NOON + LEASE


def parked(one: ClaimedDelivery, status: DeliveryStatus, **fields: Any) -> Deferred:
    default: dict[str, Any] = {
        "claimed": one,
        "status": status,
        "code": FailureCode.QUIET_HOURS,
        "reason": "The person's quiet hours.",
        "next_attempt_at": NOON + 60 * MINUTE if status is S.PENDING else None,
    }
    return Deferred(**(default | fields))


@pytest.mark.parametrize(
    ("status", "overall"),
    [
        (S.PENDING, "created"),
        (S.FAILED, "failed"),
        (S.EXPIRED, "expired"),
        (S.SUPPRESSED, "cancelled"),
    ],
)
def test_what_is_not_sent_now_is_given_back_without_an_attempt(
    status: DeliveryStatus, overall: str
) -> None:
    one = claimed()
    assert store.defer([parked(one, status)], now=NOON) == 1
    document = read(one.notification_id)
    given_back = delivery(document)
    assert (given_back["status"], document["status"]) == (status.value, overall)
    assert (given_back["attempt_count"], given_back["claim_count"]) == (0, 0)
    assert given_back["claim"] is None
    assert given_back["failure_reason"] == "The person's quiet hours."
    assert document.get("due_at") == (NOON + 60 * MINUTE if status is S.PENDING else None)
    assert attempts(one.notification_id) == []


def test_only_a_failure_is_an_error() -> None:
    for status in (S.PENDING, S.EXPIRED, S.SUPPRESSED, S.FAILED):
        one = claimed()
        store.defer([parked(one, status)], now=NOON)
        document = read(one.notification_id)
        assert bool(document["error_history"]) is (status is S.FAILED)
        assert ("failed_at" in document) is (status is S.FAILED)


def test_what_was_taken_over_is_not_given_back() -> None:
    first = claimed()
    second = claim(first.notification_id, at=TAKEN_OVER)
    assert store.defer([parked(first, S.FAILED)], now=TAKEN_OVER) == 0
    assert delivery(read(first.notification_id))["claim"]["token"] == second.token


def test_what_is_being_sent_is_not_given_back() -> None:
    one = started()
    assert store.defer([parked(one, S.EXPIRED)], now=NOON) == 0
    assert delivery(read(one.notification_id))["status"] == "sending"


def test_nothing_is_given_back_of_nothing() -> None:
    assert store.defer([], now=NOON) == 0
