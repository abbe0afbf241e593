"""Recovery of expired leases: lost workers and unknown outcomes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.errors import FailureCode
from domain.retry import UNKNOWN_WAIT, GiveUp, RetryAt
from domain.states import AttemptStatus, DeliveryStatus, Priority
from notifications.store import acceptance, actions, leases, recovery
from notifications.store.claims import ClaimedDelivery, Settlement, TargetAttempt
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    accepted,
    attempts,
    claim,
    claimed,
    delivery,
    device,
    read,
    settlement,
    start,
    started,
    tries,
)
from tests.support.factories.push import deliver, delivery_status, state, tokens
from tests.support.fakes.provider import ScriptedProvider
from tests.support.fakes.provider import accepted as sent
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")


EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
MILLISECOND = timedelta(milliseconds=1)
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
LEASE_END = NOON + LEASE
GIVE_UP = GiveUp(FailureCode.OUTCOME_UNKNOWN)
SENT, FAILED = AttemptStatus.SENT, AttemptStatus.FAILED


@each_case("priority", list(Priority))
def test_lost_attempt_becomes_unknown(priority: Priority) -> None:
    begun = started(priority=priority)
    assert recovery.expire_leases(now=LEASE_END) == 1
    document = read(begun.notification_id)
    lost = delivery(document)
    assert (lost["status"], document["status"]) == ("unknown", "processing")
    assert lost["claim"] is None
    assert lost["failure_code"] == "worker_lost"
    assert lost["next_attempt_at"] == document["due_at"] == LEASE_END + UNKNOWN_WAIT[priority]
    assert document["error_history"][0]["code"] == "worker_lost"
    (record,) = attempts(begun.notification_id)
    assert (record["status"], record["error_code"]) == ("unknown", "worker_lost")
    assert (record["attempted_at"], record["finished_at"]) == (NOON, LEASE_END)


def test_active_lease_and_claimed_delivery_are_left_alone() -> None:
    active, pending = started(), claimed()
    assert recovery.expire_leases(now=LEASE_END - MILLISECOND) == 0
    assert delivery(read(active.notification_id))["status"] == "sending"
    assert recovery.expire_leases(now=LEASE_END + MINUTE) == 1
    assert delivery(read(pending.notification_id))["status"] == "pending"


@each_case("status", [S.SENT, S.FAILED, S.PENDING, S.UNKNOWN])
def test_settled_delivery_is_left_alone(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert recovery.expire_leases(now=LEASE_END + timedelta(days=1)) == 0
    assert read(document["_id"]) == document


def test_missing_attempt_record_is_added() -> None:
    """The worker was lost between the two writes of the start."""
    begun = started(purge_at=NOON + timedelta(days=90))
    collection("delivery_attempts").delete_many({})
    recovery.expire_leases(now=LEASE_END)
    (record,) = attempts(begun.notification_id)
    assert record == {
        "_id": begun.reference,
        "notification_id": begun.notification_id,
        "channel": "email",
        "attempt_number": 1,
        "status": "unknown",
        "provider": "sendgrid",
        "worker": factories.WORKER,
        "attempted_at": NOON,
        "finished_at": LEASE_END,
        "error_code": "worker_lost",
        "error_message": record["error_message"],
        "purge_at": NOON + timedelta(days=90),
    }


def test_answered_attempt_record_is_kept() -> None:
    """The worker was lost between the two writes of the settlement."""
    begun = started()
    leases._log_ended({begun.reference: (begun, {"status": "sent", "finished_at": NOON})})
    recovery.expire_leases(now=LEASE_END)
    (record,) = attempts(begun.notification_id)
    assert (record["status"], record["finished_at"]) == ("sent", NOON)
    assert "error_code" not in record


def test_lost_channel_leaves_others_unchanged() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP], send_at=NOON)
    start(claim(document["_id"]))
    assert recovery.expire_leases(now=LEASE_END) == 1
    after = read(document["_id"])
    assert delivery(after, WHATSAPP) == delivery(document, WHATSAPP)
    assert after["due_at"] == NOON


def test_several_lost_channels_are_recovered_together() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    for channel in (EMAIL, WHATSAPP):
        start(claim(document["_id"], channel=channel))
    assert recovery.expire_leases(now=LEASE_END) == 2
    after = read(document["_id"])
    assert [d["status"] for d in after["delivery"]] == ["unknown", "unknown"]
    assert len(after["error_history"]) == 2


def test_concurrent_recoveries_recover_each_once() -> None:
    ones = [started() for _ in range(30)]
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(lambda _: recovery.expire_leases(now=LEASE_END), range(8)))
    assert sum(counts) == len(ones)
    for ambiguous in ones:
        assert len(read(ambiguous.notification_id)["error_history"]) == 1
        assert len(attempts(ambiguous.notification_id)) == 1


def test_recovery_respects_its_limit() -> None:
    for _ in range(7):
        started()
    assert [recovery.expire_leases(now=LEASE_END, limit=3) for _ in range(4)] == [3, 3, 1, 0]


@pytest.mark.parametrize("decision", [RetryAt(LEASE_END), GiveUp(FailureCode.OUTCOME_UNKNOWN)])
def test_late_acceptance_wins_over_the_policy(decision: RetryAt | GiveUp) -> None:
    begun = started()
    recovery.expire_leases(now=LEASE_END)
    leases.settle([factories.settlement(begun, S.SENT)], now=LEASE_END)
    later = LEASE_END + timedelta(hours=1)
    (unknown_,) = recovery.unknown_outcomes(now=later)
    assert recovery.resolve_unknown([(unknown_, decision)], now=later) == 1
    resolved = delivery(read(begun.notification_id))
    assert (resolved["status"], resolved["failure_code"]) == ("sent", None)
    assert resolved["provider_message_id"] == "sg-1"
    assert recovery.unknown_outcomes(now=later) == []


def unknown() -> ClaimedDelivery:
    begun = started()
    leases.settle([factories.settlement(begun, S.UNKNOWN)], now=NOON)
    return begun


def test_unknown_outcome_is_due_after_its_wait() -> None:
    ambiguous = unknown()
    assert recovery.unknown_outcomes(now=NOON + 5 * MINUTE - MILLISECOND) == []
    (found,) = recovery.unknown_outcomes(now=NOON + 5 * MINUTE)
    assert (found.notification_id, found.channel) == (ambiguous.notification_id, EMAIL)
    assert found.type == "payment_confirmed"
    assert (found.retry_state.attempt_count, found.retry_state.max_attempts) == (1, 4)


@pytest.mark.parametrize("decision", [RetryAt(NOON + DAY), GIVE_UP])
def test_unknown_outcome_after_a_retry_by_staff_is_resolved(decision: RetryAt | GiveUp) -> None:
    notification_id = factories.settled(S.FAILED)["_id"]
    actions.reopen(notification_id=notification_id, channels=[EMAIL], now=NOON)
    again = start(claim(notification_id))
    leases.settle([factories.settlement(again, S.UNKNOWN)], now=NOON)
    (found,) = recovery.unknown_outcomes(now=NOON + DAY)
    assert (found.attempt_count, found.retry_state.attempt_count) == (2, 1)
    assert recovery.resolve_unknown([(found, decision)], now=NOON + DAY) == 1
    assert recovery.unknown_outcomes(now=NOON + DAY) == []


def test_only_unknown_outcomes_are_listed() -> None:
    for status in (S.SENT, S.FAILED, S.PENDING):
        factories.settled(status)
    started()
    assert recovery.unknown_outcomes(now=NOON + timedelta(days=1)) == []


def test_retry_reopens_the_delivery() -> None:
    ambiguous = unknown()
    now = NOON + 5 * MINUTE
    waiting = recovery.unknown_outcomes(now=now)
    assert recovery.resolve_unknown([(u, RetryAt(now)) for u in waiting], now=now) == 1
    document = read(ambiguous.notification_id)
    assert (delivery(document)["status"], document["status"]) == ("pending", "retrying")
    assert delivery(document)["next_attempt_at"] == document["due_at"] == now
    assert claim(ambiguous.notification_id, at=now).attempt_count == 1


def test_giving_up_fails_the_delivery_with_its_code() -> None:
    ambiguous = unknown()
    now = NOON + 5 * MINUTE
    waiting = recovery.unknown_outcomes(now=now)
    assert recovery.resolve_unknown([(u, GIVE_UP) for u in waiting], now=now) == 1
    document = read(ambiguous.notification_id)
    failed = delivery(document)
    assert (failed["status"], document["status"]) == ("failed", "failed")
    assert (failed["failure_code"], failed["failed_at"]) == ("outcome_unknown", now)
    assert "due_at" not in document
    codes = [line["code"] for line in document["error_history"]]
    assert codes == ["provider_error", "outcome_unknown"]


def test_receipt_wins_over_a_decision() -> None:
    ambiguous = unknown()
    now = NOON + 5 * MINUTE
    waiting = recovery.unknown_outcomes(now=now)
    assert factories.arrive(ambiguous.notification_id, at=now)
    for decision in (RetryAt(now), GIVE_UP):
        assert recovery.resolve_unknown([(u, decision) for u in waiting], now=now) == 0
    assert delivery(read(ambiguous.notification_id))["status"] == "delivered"


def test_decision_about_an_earlier_attempt_is_ignored() -> None:
    """The next attempt is unknown, too, and must wait for its own receipt."""
    ambiguous = unknown()
    now = NOON + 5 * MINUTE
    waiting = recovery.unknown_outcomes(now=now)
    recovery.resolve_unknown([(u, RetryAt(now)) for u in waiting], now=now)
    again = start(claim(ambiguous.notification_id, at=now), at=now)
    leases.settle([factories.settlement(again, S.UNKNOWN, at=now)], now=now)
    assert recovery.resolve_unknown([(u, RetryAt(now)) for u in waiting], now=now) == 0
    assert delivery(read(ambiguous.notification_id))["status"] == "unknown"


def test_concurrent_decisions_apply_once() -> None:
    ambiguous = unknown()
    now = NOON + 5 * MINUTE
    waiting = recovery.unknown_outcomes(now=now)
    with ThreadPoolExecutor(2) as threads:
        decided = threads.map(
            lambda decision: recovery.resolve_unknown([(u, decision) for u in waiting], now=now),
            [RetryAt(now), GIVE_UP],
        )
    assert sorted(decided) == [0, 1]
    assert delivery(read(ambiguous.notification_id))["status"] in ("pending", "failed")


def test_lost_and_unknown_deliveries_are_found_by_indexes() -> None:
    """The cost of a sweep doesn't depend on the number of due deliveries."""
    acceptance.accept([factories.new() for _ in range(1_000)], now=NOON)
    started()
    unknown()
    with plans("notifications") as found:
        recovery.expire_leases(now=LEASE_END)
        recovery.unknown_outcomes(now=NOON + 5 * MINUTE)
    reads = [plan for plan in found if "find" in plan.command]
    assert len(reads) == 2
    for plan in reads:
        assert plan.is_indexed
        assert plan.examined <= 10


class Killed(BaseException):
    """Stands for the end of the process."""


def lose_worker(outcome: Settlement, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the worker between the writes of the record and the delivery."""

    def die(*_args: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(leases, "_write", die)
        with pytest.raises(Killed):
            leases.settle([outcome], now=outcome.finished_at)


def pushed(**outcomes: AttemptStatus) -> Settlement:
    """Return the settlement of a started push with a status for each device."""
    push_claim = replace(factories.claimed(channel=PUSH), device_ids=tuple(outcomes))
    outcome = settlement(factories.start(push_claim, provider="fcm"), S.PENDING, at=NOON + SECOND)
    have = tuple(d for d, status in outcomes.items() if status is SENT)
    each = [
        TargetAttempt(
            device_id=device_id,
            status=status,
            finished_at=NOON + SECOND,
            duration_ms=1,
            code=None if status is SENT else FailureCode.PROVIDER_ERROR,
        )
        for device_id, status in outcomes.items()
    ]
    return replace(outcome, target_attempts=tuple(each), accepted_targets=have)


def test_accepted_email_is_recovered_as_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = factories.started()
    lose_worker(settlement(begun, S.SENT, at=NOON + SECOND), monkeypatch)
    assert recovery.expire_leases(now=LEASE_END) == 1
    document = read(begun.notification_id)
    recovered = delivery(document)
    assert (recovered["status"], document["status"]) == ("sent", "sent")
    assert (recovered["sent_at"], recovered["provider_message_id"]) == (NOON + SECOND, "sg-1")
    assert (recovered["claim"], recovered["next_attempt_at"]) == (None, None)
    assert (document["error_history"], "due_at" in document) == ([], False)


def test_in_app_is_recovered_as_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    later = NOON + 60 * SECOND
    begun = factories.started(channel=IN_APP, at=later, send_at=later)
    lose_worker(settlement(begun, S.DELIVERED, at=later), monkeypatch)
    recovery.expire_leases(now=later + LEASE)
    recovered = delivery(read(begun.notification_id), IN_APP)
    assert (recovered["status"], recovered["delivered_at"]) == ("delivered", later)


@each_case("status", [S.FAILED, S.PENDING, S.UNKNOWN])
def test_unaccepted_email_is_recovered_as_unknown(
    status: DeliveryStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = factories.started()
    lose_worker(settlement(begun, status), monkeypatch)
    recovery.expire_leases(now=LEASE_END)
    assert delivery(read(begun.notification_id))["status"] == "unknown"


def test_push_accepted_by_all_devices_is_recovered_as_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = pushed(phone=SENT, tablet=SENT)
    lose_worker(outcome, monkeypatch)
    recovery.expire_leases(now=LEASE_END)
    notification_id = outcome.claimed.notification_id
    assert delivery_status(notification_id) == ("sent", None)
    assert set(state(notification_id)["accepted_targets"]) == {"phone", "tablet"}


def partly_accepted_push(monkeypatch: pytest.MonkeyPatch) -> tuple[ObjectId, str, str]:
    """Return an unknown push, its accepted device, and its failed device."""
    phone, tablet = device("phone"), device("tablet")
    outcome = pushed(**{phone: SENT, tablet: FAILED})
    lose_worker(outcome, monkeypatch)
    recovery.expire_leases(now=LEASE_END)
    return outcome.claimed.notification_id, phone, tablet


def test_push_accepted_by_some_devices_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    notification_id, phone, tablet = partly_accepted_push(monkeypatch)
    assert delivery_status(notification_id) == ("unknown", "worker_lost")
    assert state(notification_id)["accepted_targets"] == [phone]
    assert tries(notification_id) == {
        (1, phone): ("sent", None),
        (1, tablet): ("failed", "provider_error"),
    }


def test_giving_up_on_a_partly_accepted_push_makes_it_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    notification_id, *_ = partly_accepted_push(monkeypatch)
    later = LEASE_END + timedelta(hours=1)
    (unknown_,) = recovery.unknown_outcomes(now=later)
    recovery.resolve_unknown([(unknown_, GiveUp(FailureCode.OUTCOME_UNKNOWN))], now=later)
    assert delivery_status(notification_id) == ("sent", None)


@pytest.mark.usefixtures("broker")
def test_retry_of_a_partly_accepted_push_skips_accepted_devices(
    monkeypatch: pytest.MonkeyPatch, fcm: ScriptedProvider
) -> None:
    notification_id, _, tablet = partly_accepted_push(monkeypatch)
    later = LEASE_END + timedelta(hours=1)
    (unknown_,) = recovery.unknown_outcomes(now=later)
    recovery.resolve_unknown([(unknown_, RetryAt(later))], now=later)
    fcm.always(sent)
    assert deliver(notification_id, at=later).counts == {"sent": 1}
    assert tokens(fcm) == ["tablet"]
    assert tries(notification_id)[2, tablet] == ("sent", None)


@pytest.mark.usefixtures("broker")
def test_ambiguous_device_gets_no_second_copy_if_another_accepted(fcm: ScriptedProvider) -> None:
    """One device accepted the first attempt, and the worker of the second attempt was lost."""
    phone, tablet = device("phone"), device("tablet")
    first = pushed(**{phone: SENT, tablet: FAILED})
    leases.settle([first], now=NOON)
    notification_id = first.claimed.notification_id
    at = NOON + timedelta(minutes=6)
    again = factories.claim(notification_id, at=at, channel=PUSH)
    factories.start(replace(again, device_ids=(tablet,)), at=at, provider="fcm")
    recovery.expire_leases(now=at + LEASE)
    assert delivery_status(notification_id)[0] == "unknown"
    later = at + timedelta(hours=1)
    (unknown_,) = recovery.unknown_outcomes(now=later)
    recovery.resolve_unknown([(unknown_, RetryAt(later))], now=later)
    assert deliver(notification_id, at=later).counts == {"sent": 1}
    assert tokens(fcm) == []
