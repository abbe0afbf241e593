"""Leases: only one worker claims a delivery, and a deferral uses no attempt."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Recipient
from domain.errors import FailureCode
from domain.retry import MAX_OUTAGE
from domain.states import DeliveryStatus
from domain.wait_reasons import Hold, WaitReason
from notifications.store import acceptance, leases, recovery
from notifications.store.acceptance import Accepted
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.leases import LEASE, MAX_LATENESS
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    accepted,
    attempts,
    claimed,
    delivery,
    new,
    read,
    started,
)
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")


EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
MILLISECOND, MINUTE = timedelta(milliseconds=1), timedelta(minutes=1)
TAKEN_OVER = NOON + LEASE


def claim_ids(
    *ids: ObjectId, at: datetime = NOON, channel: Channel = EMAIL, worker: str = "w"
) -> list[ClaimedDelivery]:
    return leases.claim(
        ids=ids, channel=channel, worker=worker, now=at, include_poison_candidates=True
    )


def test_due_delivery_is_claimed_with_all_fields() -> None:
    document = accepted(
        channels=[EMAIL, IN_APP],
        recipient=Recipient(email="ada@example.com", name="Ada", device_ids=("d1",)),
        data={"order": "1"},
        expires_at=NOON + timedelta(hours=1),
        request_id="request-1",
    )
    (claim,) = claim_ids(document["_id"])
    assert (claim.notification_id, claim.channel) == (document["_id"], EMAIL)
    assert claim.recipient == Recipient(email="ada@example.com", name="Ada", device_ids=("d1",))
    assert claim.content.subject == "Paid"
    assert claim.data == {"order": "1"}
    assert claim.lease_until == NOON + LEASE
    assert claim.expires_at == NOON + timedelta(hours=1)
    assert claim.request_id == "request-1"
    assert (claim.claim_count, claim.attempt_count, claim.max_attempts) == (1, 0, 4)


def test_claim_is_a_lease_and_stays_due() -> None:
    claim = claimed()
    document = read(claim.notification_id)
    delivery = factories.delivery(document)
    assert delivery["status"] == "pending"
    assert delivery["claim"] == {
        "token": claim.token,
        "lease_until": NOON + LEASE,
        "worker": factories.WORKER,
    }
    assert document["due_at"] == NOON
    assert document["status"] == "queued"


@each_case(
    "send_at, is_claimed",
    [
        (NOON - timedelta(days=1), True),
        (NOON, True),
        (NOON + MILLISECOND, False),
        (NOON + timedelta(days=1), False),
    ],
)
def test_only_due_deliveries_are_claimed(send_at: datetime, is_claimed: bool) -> None:
    document = accepted(send_at=send_at, created_at=NOON - timedelta(days=1))
    assert bool(claim_ids(document["_id"])) is is_claimed


@each_case("status", [S.SENT, S.FAILED, S.UNKNOWN, S.PENDING])
def test_attempted_delivery_is_claimed_only_for_a_retry(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert claim_ids(document["_id"]) == []
    later = claim_ids(document["_id"], at=NOON + timedelta(minutes=5))
    assert bool(later) is (status is S.PENDING)


def test_started_delivery_is_not_claimed_after_its_lease() -> None:
    assert claim_ids(factories.started().notification_id, at=NOON + timedelta(days=1)) == []


def test_each_channel_is_claimed_separately() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    assert [c.channel for c in claim_ids(document["_id"])] == [EMAIL]
    assert [c.channel for c in claim_ids(document["_id"], channel=WHATSAPP)] == [WHATSAPP]
    assert claim_ids(document["_id"], channel=PUSH) == []


def test_empty_calls_change_nothing() -> None:
    assert claim_ids() == claim_ids(ObjectId()) == []
    assert acceptance.accept([], now=NOON) == []
    assert leases.start([], provider="sendgrid", worker="w", now=NOON) == []
    for write in (leases.release, leases.settle_not_sent, leases.settle, leases.return_unsent):
        assert write([], now=NOON) == 0
    assert recovery.resolve_unknown([], now=NOON) == 0


def test_batch_has_one_token() -> None:
    ids = [accepted()["_id"] for _ in range(20)]
    claims = claim_ids(*ids)
    assert {c.notification_id for c in claims} == set(ids)
    assert len({c.token for c in claims}) == 1


@pytest.mark.parametrize("round_", range(2))
def test_sixteen_workers_claim_each_delivery_once(round_: int) -> None:
    results = acceptance.accept([new() for _ in range(200)], now=NOON)
    ids = [r.document["_id"] for r in results if isinstance(r, Accepted)]
    shuffled = [ids[n:] + ids[:n] for n in range(0, 160, 10)]
    with ThreadPoolExecutor(16) as threads:
        claims = list(
            threads.map(lambda n: claim_ids(*shuffled[n], worker=f"worker-{n}"), range(16))
        )
    assert sorted([c.notification_id for some in claims for c in some]) == sorted(ids)
    holders = {c.notification_id: c.token for some in claims for c in some}
    for document in collection("notifications").find({}):
        delivery = factories.delivery(document)
        assert delivery["claim"]["token"] == holders[document["_id"]]
        assert delivery["claim_count"] == 1


def test_worker_name_is_stored_literally() -> None:
    document = accepted()
    claim_ids(document["_id"], worker="$$ROOT")
    assert factories.delivery(read(document["_id"]))["claim"]["worker"] == "$$ROOT"


def test_released_claim_leaves_no_trace() -> None:
    document = accepted()
    (claim,) = claim_ids(document["_id"])
    assert leases.release([claim], now=NOON) == 1
    after = read(document["_id"])
    assert after["due_at"] == NOON
    assert factories.delivery(after)["claim_count"] == 0
    assert factories.delivery(after)["claim"] is None
    assert len(claim_ids(document["_id"])) == 1


def test_started_delivery_is_not_released_or_deferred() -> None:
    begun = started()
    assert leases.release([begun], now=NOON) == 0
    assert leases.settle_not_sent([not_sent(begun, S.EXPIRED)], now=NOON) == 0
    assert delivery(read(begun.notification_id))["status"] == "sending"


def test_poison_candidate_is_claimed_only_on_request() -> None:
    lost, fresh = accepted()["_id"], accepted()["_id"]
    leases.claim(ids=[lost], channel=EMAIL, worker="lost", now=NOON)
    after = NOON + LEASE
    found = leases.claim(ids=[lost, fresh], channel=EMAIL, worker="w", now=after)
    assert [claim.notification_id for claim in found] == [fresh]
    assert leases.poison_candidates(ids=[lost, fresh], channel=EMAIL, now=after) == [lost]
    (alone,) = claim_ids(lost, at=after)
    assert alone.claim_count == 2


def test_active_claim_is_no_poison_candidate() -> None:
    lost = accepted()["_id"]
    (claim,) = leases.claim(ids=[lost], channel=EMAIL, worker="w", now=NOON)
    assert leases.poison_candidates(ids=[lost], channel=EMAIL, now=NOON) == []
    leases.release([claim], now=NOON)
    assert leases.poison_candidates(ids=[lost], channel=EMAIL, now=NOON) == [], "it was released"


def not_sent(claim: ClaimedDelivery, status: DeliveryStatus, **fields: Any) -> NotSent:
    default: dict[str, Any] = {
        "claimed": claim,
        "status": status,
        "code": FailureCode.QUIET_HOURS,
        "reason": "The person's quiet hours.",
        "next_attempt_at": NOON + 60 * MINUTE if status is S.PENDING else None,
    }
    return NotSent(**(default | fields))


@each_case(
    "status, overall",
    [
        (S.PENDING, "created"),
        (S.FAILED, "failed"),
        (S.EXPIRED, "expired"),
        (S.SUPPRESSED, "suppressed"),
    ],
)
def test_deferred_delivery_uses_no_attempt(status: DeliveryStatus, overall: str) -> None:
    claim = claimed()
    assert leases.settle_not_sent([not_sent(claim, status)], now=NOON) == 1
    document = read(claim.notification_id)
    delivery_ = delivery(document)
    assert (delivery_["status"], document["status"]) == (status.value, overall)
    assert (delivery_["attempt_count"], delivery_["claim_count"]) == (0, 0)
    assert delivery_["claim"] is None
    assert delivery_["failure_reason"] == "The person's quiet hours."
    assert document.get("due_at") == (NOON + 60 * MINUTE if status is S.PENDING else None)
    assert attempts(claim.notification_id) == []
    assert bool(document["error_history"]) is (status is S.FAILED)
    assert ("failed_at" in document) is (status is S.FAILED)


@each_case(
    "code, held_reason",
    [
        (FailureCode.QUIET_HOURS, None),
        (FailureCode.OVER_LIMIT, None),
        (FailureCode.OVER_DAILY_UNITS, None),
        (FailureCode.IN_DIGEST, None),
        (FailureCode.RATE_LIMITED, WaitReason.RATE_LIMITED),
        (FailureCode.RECIPIENT_RATE_LIMITED, WaitReason.RATE_LIMITED),
    ],
)
def test_own_waits_are_no_outage(code: FailureCode, held_reason: WaitReason | None) -> None:
    """However long a rule or our own rate holds a delivery, a first outage doesn't end it."""
    claim, until = claimed(), NOON + MAX_OUTAGE
    wait = {"code": code, "held_reason": held_reason, "next_attempt_at": until}
    leases.settle_not_sent([not_sent(claim, S.PENDING, **wait)], now=NOON)
    (again,) = claim_ids(claim.notification_id, at=until)
    assert again.held_for == timedelta(0)
    assert "held_ms" not in delivery(read(claim.notification_id))


def test_outages_add_up_without_the_waits_between_them() -> None:
    """Nor does a night between two of them, and a worker that comes late is part of the outage."""
    hold = Hold(reason=WaitReason.CIRCUIT_OPEN, provider="sendgrid", since=NOON)
    outage = {"code": FailureCode.CHANNEL_UNAVAILABLE, "held_reason": hold.reason, "hold": hold}
    notification_id, at, found = accepted()["_id"], NOON, []
    waits = [(outage, 0), (outage, 5), (outage, 0), ({}, 0), (outage, 5)]
    for fields, late in waits:
        at += late * MINUTE
        (claim,) = claim_ids(notification_id, at=at)
        until = at + 10 * MINUTE
        deferred = not_sent(claim, S.PENDING, **fields, next_attempt_at=until)
        leases.settle_not_sent([deferred], now=at)
        at = until
        (again,) = claim_ids(notification_id, at=at)
        leases.release([again], now=at)
        found.append(again.held_for // MINUTE)
    assert found == [10, 25, 35, 35, 45]


def test_time_in_a_long_queue_after_an_outage_is_no_outage() -> None:
    """Nor is a weekend without workers."""
    hold = Hold(reason=WaitReason.CIRCUIT_OPEN, provider="sendgrid", since=NOON)
    outage = {"code": FailureCode.CHANNEL_UNAVAILABLE, "held_reason": hold.reason, "hold": hold}
    notification_id, at = accepted()["_id"], NOON
    for wait in (10 * MINUTE, MINUTE):
        (claim,) = claim_ids(notification_id, at=at)
        until = at + wait
        leases.settle_not_sent(
            [not_sent(claim, S.PENDING, **outage, next_attempt_at=until)], now=at
        )
        at = until + timedelta(hours=75)
    (again,) = claim_ids(notification_id, at=at)
    assert again.held_for == 11 * MINUTE + MAX_LATENESS
