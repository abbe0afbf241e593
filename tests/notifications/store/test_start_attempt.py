"""Starting attempts: recorded before sending, by the owner of the claim."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.store import actions, leases, recovery
from notifications.store.leases import LEASE
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    WORKER,
    attempts,
    batch,
    begin,
    claim,
    claimed,
    delivery,
    read,
    start,
    started,
)

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
MINUTE = timedelta(minutes=1)
TAKEN_OVER = NOON + LEASE


def test_start_is_recorded_before_any_byte_is_sent() -> None:
    begun = started()
    document = read(begun.notification_id)
    sending = delivery(document)
    assert (sending["status"], document["status"]) == ("sending", "processing")
    assert (sending["attempt_count"], sending["claim_count"]) == (1, 0)
    assert sending["provider"] == "sendgrid"
    assert sending["last_attempt_at"] == NOON
    assert sending["next_attempt_at"] is None
    assert document["due_at"] == sending["claim"]["lease_until"] == NOON + LEASE
    assert sending["claim"]["worker"] == WORKER


def test_attempt_is_logged_when_it_ends() -> None:
    """Until then the delivery itself records it."""
    begun = started()
    assert attempts(begun.notification_id) == []
    leases.settle([factories.settlement(begun, S.SENT)], now=NOON + MINUTE)
    (attempt,) = attempts(begun.notification_id)
    assert (attempt["_id"], attempt["status"]) == (begun.reference, "sent")
    assert (attempt["attempt_number"], attempt["worker"]) == (1, WORKER)
    assert (attempt["attempted_at"], attempt["provider"]) == (NOON, "sendgrid")


def test_late_outcome_replaces_the_record_of_a_lost_attempt() -> None:
    begun = started()
    recovery.expire_leases(now=TAKEN_OVER)
    (lost,) = attempts(begun.notification_id)
    assert (lost["status"], lost["attempted_at"]) == ("unknown", NOON)
    leases.settle([factories.settlement(begun, S.SENT)], now=TAKEN_OVER)
    (attempt,) = attempts(begun.notification_id)
    assert (attempt["_id"], attempt["status"]) == (begun.reference, "sent")


def test_start_renews_the_lease() -> None:
    claim = claimed()
    (begun,) = begin(claim, at=NOON + MINUTE)
    assert begun.lease_until == NOON + MINUTE + LEASE
    claim_ = delivery(read(claim.notification_id))["claim"]
    assert (claim_["lease_until"], claim_["token"]) == (begun.lease_until, claim.token)


def test_started_claim_has_its_attempt_reference() -> None:
    claim = claimed()
    (begun,) = begin(claim)
    assert begun.attempt_count == claim.attempt_count + 1
    assert begun.reference == f"{claim.notification_id}.email.1"


def test_start_clears_the_previous_failure() -> None:
    document = factories.settled(S.PENDING)
    start(claim(document["_id"], at=NOON + 5 * MINUTE), at=NOON + 5 * MINUTE)
    sending = delivery(read(document["_id"]))
    assert (sending["failure_code"], sending["failure_reason"]) == (None, None)
    assert [a["attempt_number"] for a in attempts(document["_id"])] == [1]


def test_replaced_claim_is_not_started() -> None:
    first = claimed()
    second = claim(first.notification_id, at=TAKEN_OVER)
    assert begin(first, at=TAKEN_OVER) == []
    assert delivery(read(first.notification_id))["claim"]["token"] == second.token
    assert attempts(first.notification_id) == []


def test_cancelled_claim_is_not_started() -> None:
    claim = claimed()
    actions.cancel(notification_id=claim.notification_id, channels=[EMAIL], reason="x", now=NOON)
    assert begin(claim) == []
    assert attempts(claim.notification_id) == []


def test_repeated_start_counts_one_attempt() -> None:
    claim = claimed()
    assert len(begin(claim)) == 1
    begin(claim)
    assert delivery(read(claim.notification_id))["attempt_count"] == 1


def test_only_valid_claims_of_a_batch_are_started() -> None:
    claims = batch(10)
    lost = {claims[2].notification_id, claims[7].notification_id}
    for notification_id in lost:
        actions.cancel(notification_id=notification_id, channels=[EMAIL], reason="x", now=NOON)
    begun = begin(*claims)
    assert {c.notification_id for c in begun} == {c.notification_id for c in claims} - lost
    assert all(c.attempt_count == 1 for c in begun)
    statuses = Counter(delivery(read(c.notification_id))["status"] for c in claims)
    assert statuses == {"sending": 8, "cancelled": 2}


def test_batch_with_lost_claims_is_started_in_rounds() -> None:
    """Each round returns only the claims that this round started."""
    claims = batch(6)
    begin(*claims[:3])
    actions.cancel(
        notification_id=claims[4].notification_id, channels=[EMAIL], reason="x", now=NOON
    )
    begun = begin(*claims[3:])
    assert [c.notification_id for c in begun] == [
        claims[3].notification_id,
        claims[5].notification_id,
    ]


def test_batch_records_which_attempts_repeat_others() -> None:
    plain, second, third = batch(3)
    begun = begin(plain, replace(second, series_first=1), replace(third, series_first=2))
    assert len(begun) == 3
    series = [
        (d.get("series_first"), d.get("series_last"))
        for c in (plain, second, third)
        for d in read(c.notification_id)["delivery"]
    ]
    assert series == [(None, None), (1, 1), (2, 1)]


def test_unsent_attempt_is_due_again_and_uncounted() -> None:
    begun = started()
    late = NOON + MINUTE
    assert leases.return_unsent([begun], now=late) == 1
    document = read(begun.notification_id)
    again = delivery(document)
    assert (again["status"], document["status"]) == ("pending", "retrying")
    assert again["next_attempt_at"] == document["due_at"] == late
    assert again["attempt_count"] - again["uncounted_attempts"] == 0
    assert again["claim"] is None
    assert document["error_history"] == []


def test_unsent_attempt_is_recorded_as_expired() -> None:
    begun = started()
    leases.return_unsent([begun], now=NOON + MINUTE)
    (attempt,) = attempts(begun.notification_id)
    assert (attempt["_id"], attempt["status"]) == (begun.reference, "expired")
    assert (attempt["attempted_at"], attempt["finished_at"]) == (NOON, NOON + MINUTE)


def test_recovered_attempt_is_not_returned() -> None:
    begun = started()
    recovery.expire_leases(now=TAKEN_OVER)
    assert leases.return_unsent([begun], now=TAKEN_OVER) == 0
    assert delivery(read(begun.notification_id))["status"] == "unknown"
