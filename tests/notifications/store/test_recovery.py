"""Recovery of expired leases: lost workers and unknown outcomes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from bson import ObjectId

from domain.errors import FailureCode
from domain.retry import UNKNOWN_WAIT, GiveUp, RetryAt
from domain.states import AttemptStatus, Channel, DeliveryStatus, Priority
from notifications import store
from notifications.store import (
    LEASE,
    ClaimedDelivery,
    ProviderAnswer,
    Settlement,
    TargetAttempt,
    leases,
)
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

pytestmark = pytest.mark.usefixtures("db")


EMAIL, PUSH, WHATSAPP, IN_APP = Channel

S = DeliveryStatus

MILLISECOND = timedelta(milliseconds=1)

MINUTE = timedelta(minutes=1)

OVER = NOON + LEASE

GIVE_UP = GiveUp(FailureCode.OUTCOME_UNKNOWN)


@pytest.mark.parametrize("priority", list(Priority))
def test_what_was_being_sent_when_its_worker_was_lost_is_unknown(priority: Priority) -> None:
    one = started(priority=priority)
    assert store.expire_leases(now=OVER) == 1
    document = read(one.notification_id)
    lost = delivery(document)
    assert (lost["status"], document["status"]) == ("unknown", "processing")
    assert lost["claim"] is None
    assert lost["failure_code"] == "worker_lost"
    assert lost["next_attempt_at"] == document["due_at"] == OVER + UNKNOWN_WAIT[priority]
    assert document["error_history"][0]["code"] == "worker_lost"


def test_the_lost_attempt_is_closed_as_unknown() -> None:
    one = started()
    store.expire_leases(now=OVER)
    (record,) = attempts(one.notification_id)
    assert (record["status"], record["error_code"]) == ("unknown", "worker_lost")
    assert (record["attempted_at"], record["finished_at"]) == (NOON, OVER)


def test_a_worker_within_its_lease_is_left_alone() -> None:
    one = started()
    assert store.expire_leases(now=OVER - MILLISECOND) == 0
    assert delivery(read(one.notification_id))["status"] == "sending"


def test_what_was_only_claimed_needs_no_rescue() -> None:
    one = claimed()
    assert store.expire_leases(now=OVER + MINUTE) == 0
    assert delivery(read(one.notification_id))["status"] == "pending"


@pytest.mark.parametrize("status", [S.SENT, S.FAILED, S.PENDING, S.UNKNOWN])
def test_what_is_settled_needs_no_rescue(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    assert store.expire_leases(now=OVER + timedelta(days=1)) == 0
    assert read(document["_id"]) == document


def test_an_attempt_that_was_never_recorded_is_recorded_now() -> None:
    """The worker was lost between the two writes of its start."""
    one = started(purge_at=NOON + timedelta(days=90))
    collection("delivery_attempts").delete_many({})
    store.expire_leases(now=OVER)
    (record,) = attempts(one.notification_id)
    assert record == {
        "_id": one.reference,
        "notification_id": one.notification_id,
        "channel": "email",
        "attempt_number": 1,
        "status": "unknown",
        "provider": "sendgrid",
        "worker": factories.WORKER,
        "attempted_at": NOON,
        "finished_at": OVER,
        "error_code": "worker_lost",
        "error_message": record["error_message"],
        "purge_at": NOON + timedelta(days=90),
    }


def test_an_attempt_with_an_answer_keeps_it() -> None:
    """The worker was lost between the two writes of its settling."""
    one = started()
    answered = {"status": "sent", "provider_message_id": "sg-1", "finished_at": NOON}
    collection("delivery_attempts").update_one({"_id": one.reference}, {"$set": answered})
    store.expire_leases(now=OVER)
    (record,) = attempts(one.notification_id)
    assert (record["status"], record["finished_at"]) == ("sent", NOON)
    assert "error_code" not in record


def test_one_lost_channel_leaves_the_others_as_they_are() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP], send_at=NOON)
    start(claim(document["_id"]))
    assert store.expire_leases(now=OVER) == 1
    after = read(document["_id"])
    assert delivery(after, WHATSAPP) == delivery(document, WHATSAPP)
    assert after["due_at"] == NOON


def test_several_lost_channels_of_one_notification_are_rescued_together() -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    for channel in (EMAIL, WHATSAPP):
        start(claim(document["_id"], channel=channel))
    assert store.expire_leases(now=OVER) == 2
    after = read(document["_id"])
    assert [d["status"] for d in after["delivery"]] == ["unknown", "unknown"]
    assert len(after["error_history"]) == 2


def test_several_rescuers_at_once_rescue_each_once() -> None:
    ones = [started() for _ in range(30)]
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(lambda _: store.expire_leases(now=OVER), range(8)))
    assert sum(counts) == len(ones)
    for one in ones:
        assert len(read(one.notification_id)["error_history"]) == 1
        assert len(attempts(one.notification_id)) == 1


def test_a_rescue_takes_no_more_than_it_was_told() -> None:
    for _ in range(7):
        started()
    assert [store.expire_leases(now=OVER, limit=3) for _ in range(4)] == [3, 3, 1, 0]


def test_a_worker_that_comes_back_after_its_rescue_changes_nothing() -> None:
    one = started()
    store.expire_leases(now=OVER)
    assert store.settle([factories.settlement(one, S.SENT)], now=OVER) == 0
    assert delivery(read(one.notification_id))["status"] == "unknown"


@pytest.mark.parametrize("decision", [RetryAt(OVER), GiveUp(FailureCode.OUTCOME_UNKNOWN)])
def test_what_a_late_worker_recorded_as_taken_is_sent_whatever_its_type_says(
    decision: RetryAt | GiveUp,
) -> None:
    one = started()
    store.expire_leases(now=OVER)
    store.settle([factories.settlement(one, S.SENT)], now=OVER)
    later = OVER + timedelta(hours=1)
    (doubt,) = store.unknown_outcomes(now=later)
    assert store.resolve_unknown([(doubt, decision)], now=later) == 1
    resolved = delivery(read(one.notification_id))
    assert (resolved["status"], resolved["failure_code"]) == ("sent", None)
    assert resolved["provider_message_id"] == "sg-1"
    assert store.unknown_outcomes(now=later) == []


def unknown() -> ClaimedDelivery:
    one = started()
    store.settle([factories.settlement(one, S.UNKNOWN)], now=NOON)
    return one


def test_an_unknown_outcome_is_unresolved_when_the_wait_is_over() -> None:
    one = unknown()
    assert store.unknown_outcomes(now=NOON + 5 * MINUTE - MILLISECOND) == []
    (found,) = store.unknown_outcomes(now=NOON + 5 * MINUTE)
    assert (found.notification_id, found.channel) == (one.notification_id, EMAIL)
    assert found.type == "payment_confirmed"
    assert (found.retry_state.attempt_count, found.retry_state.max_attempts) == (1, 4)
    assert found.retry_state.first_due_at == NOON


def test_only_unknown_outcomes_are_unresolved() -> None:
    for status in (S.SENT, S.FAILED, S.PENDING):
        factories.settled(status)
    started()
    assert store.unknown_outcomes(now=NOON + timedelta(days=1)) == []


def test_a_retry_re_opens_it() -> None:
    one = unknown()
    now = NOON + 5 * MINUTE
    assert (
        store.resolve_unknown([(u, RetryAt(now)) for u in store.unknown_outcomes(now=now)], now=now)
        == 1
    )
    document = read(one.notification_id)
    assert (delivery(document)["status"], document["status"]) == ("pending", "retrying")
    assert delivery(document)["next_attempt_at"] == document["due_at"] == now
    again = claim(one.notification_id, at=now)
    assert again.attempt_count == 1


def test_giving_up_fails_it_and_says_why() -> None:
    one = unknown()
    now = NOON + 5 * MINUTE
    assert (
        store.resolve_unknown([(u, GIVE_UP) for u in store.unknown_outcomes(now=now)], now=now) == 1
    )
    document = read(one.notification_id)
    failed = delivery(document)
    assert (failed["status"], document["status"]) == ("failed", "failed")
    assert (failed["failure_code"], failed["failed_at"]) == ("outcome_unknown", now)
    assert "due_at" not in document
    assert [line["code"] for line in document["error_history"]] == [
        "provider_error",
        "outcome_unknown",
    ]


def test_a_receipt_that_came_meanwhile_wins() -> None:
    one = unknown()
    now = NOON + 5 * MINUTE
    waiting = store.unknown_outcomes(now=now)
    assert factories.arrive(one.notification_id, at=now)
    for decision in (RetryAt(now), GIVE_UP):
        assert store.resolve_unknown([(u, decision) for u in waiting], now=now) == 0
    assert delivery(read(one.notification_id))["status"] == "delivered"


def test_a_decision_about_an_earlier_attempt_does_not_touch_a_later_one() -> None:
    """It was decided, tried again, and is unknown again: the new wait is not over."""
    one = unknown()
    now = NOON + 5 * MINUTE
    waiting = store.unknown_outcomes(now=now)
    store.resolve_unknown([(u, RetryAt(now)) for u in waiting], now=now)
    again = start(claim(one.notification_id, at=now), at=now)
    store.settle([factories.settlement(again, S.UNKNOWN, at=now)], now=now)
    assert store.resolve_unknown([(u, RetryAt(now)) for u in waiting], now=now) == 0
    assert delivery(read(one.notification_id))["status"] == "unknown"


def test_two_that_decide_at_once_decide_once() -> None:
    one = unknown()
    now = NOON + 5 * MINUTE
    waiting = store.unknown_outcomes(now=now)
    with ThreadPoolExecutor(2) as threads:
        decided = threads.map(
            lambda decision: store.resolve_unknown([(u, decision) for u in waiting], now=now),
            [RetryAt(now), GIVE_UP],
        )
    assert sorted(decided) == [0, 1]
    assert delivery(read(one.notification_id))["status"] in ("pending", "failed")


def test_nothing_is_resolved_of_nothing() -> None:
    assert store.resolve_unknown([], now=NOON) == 0


def test_lost_and_unknown_ones_are_found_however_many_others_are_due() -> None:
    """A sweep costs the same with a million due as with none."""
    store.accept([factories.new() for _ in range(1_000)], now=NOON)
    started()
    unknown()
    with plans("notifications") as found:
        store.expire_leases(now=OVER)
        store.unknown_outcomes(now=NOON + 5 * MINUTE)
    reads = [plan for plan in found if "find" in plan.command]
    assert len(reads) == 2
    for plan in reads:
        assert plan.is_indexed
        assert plan.examined <= 10


SECOND = timedelta(seconds=1)


class Killed(BaseException):
    """The process ends here."""


def lose(outcome: Settlement, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the worker when it has written the record and not the delivery."""

    def die(*_args: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(leases, "_write", die)
        with pytest.raises(Killed):
            store.settle([outcome], now=outcome.finished_at)


def attempt(one: ClaimedDelivery, **outcomes: AttemptStatus) -> Settlement:
    """Return what became of a push at each device."""
    outcome = settlement(one, S.PENDING, at=NOON + SECOND)
    have = tuple(d for d, status in outcomes.items() if status is AttemptStatus.SENT)
    each = [
        TargetAttempt(
            device_id=device_id,
            status=status,
            finished_at=NOON + SECOND,
            duration_ms=1,
            answer=ProviderAnswer(provider="fcm"),
            code=None if status is AttemptStatus.SENT else FailureCode.PROVIDER_ERROR,
        )
        for device_id, status in outcomes.items()
    ]
    return replace(outcome, target_attempts=tuple(each), accepted_targets=have)


def pushed(**outcomes: AttemptStatus) -> Settlement:
    one = factories.claimed(channel=PUSH)
    begun = factories.start(replace(one, device_ids=tuple(outcomes)), provider="fcm")
    return attempt(begun, **outcomes)


SENT = AttemptStatus.SENT

FAILED = AttemptStatus.FAILED


def test_a_mail_that_the_provider_took_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    one = factories.started()
    lose(settlement(one, S.SENT, at=NOON + SECOND), monkeypatch)
    assert store.expire_leases(now=OVER) == 1
    document = read(one.notification_id)
    rescued = delivery(document)
    assert (rescued["status"], document["status"]) == ("sent", "sent")
    assert (rescued["sent_at"], rescued["provider_message_id"]) == (NOON + SECOND, "sg-1")
    assert (rescued["claim"], rescued["next_attempt_at"]) == (None, None)
    assert (document["error_history"], "due_at" in document) == ([], False)


def test_a_message_in_the_inbox_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    later = NOON + 60 * SECOND
    one = factories.started(channel=IN_APP, at=later, send_at=later)
    lose(settlement(one, S.DELIVERED, at=later), monkeypatch)
    store.expire_leases(now=later + LEASE)
    rescued = delivery(read(one.notification_id), IN_APP)
    assert (rescued["status"], rescued["delivered_at"]) == ("delivered", later)


@pytest.mark.parametrize("status", [S.FAILED, S.PENDING, S.UNKNOWN])
def test_a_mail_that_the_provider_did_not_take_is_in_doubt(
    status: DeliveryStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = factories.started()
    lose(settlement(one, status), monkeypatch)
    store.expire_leases(now=OVER)
    assert delivery(read(one.notification_id))["status"] == "unknown"


def test_a_push_that_all_devices_have_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = pushed(phone=SENT, tablet=SENT)
    lose(outcome, monkeypatch)
    store.expire_leases(now=OVER)
    one = outcome.claimed.notification_id
    assert delivery_status(one) == ("sent", None)
    assert set(state(one)["accepted_targets"]) == {"phone", "tablet"}


def doubtful_push(monkeypatch: pytest.MonkeyPatch) -> tuple[ObjectId, str, str]:
    """Return a push in doubt, the device that has it and the one that has not."""
    phone, tablet = device("phone"), device("tablet")
    outcome = pushed(**{phone: SENT, tablet: FAILED})
    lose(outcome, monkeypatch)
    store.expire_leases(now=OVER)
    return outcome.claimed.notification_id, phone, tablet


def test_a_push_that_some_devices_have_is_in_doubt_and_they_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, phone, tablet = doubtful_push(monkeypatch)
    assert (delivery_status(one), state(one)["accepted_targets"]) == (
        ("unknown", "worker_lost"),
        [phone],
    )
    assert tries(one) == {(1, phone): ("sent", None), (1, tablet): ("failed", "provider_error")}


def test_a_doubt_that_nothing_dispels_ends_as_sent_if_one_device_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, *_ = doubtful_push(monkeypatch)
    later = OVER + timedelta(hours=1)
    (doubt,) = store.unknown_outcomes(now=later)
    store.resolve_unknown([(doubt, GiveUp(FailureCode.OUTCOME_UNKNOWN))], now=later)
    assert delivery_status(one) == ("sent", None)


@pytest.mark.usefixtures("broker")
def test_who_has_it_gets_no_second_copy_if_its_type_says_to_send_again(
    monkeypatch: pytest.MonkeyPatch, fcm: ScriptedProvider
) -> None:
    one, _, tablet = doubtful_push(monkeypatch)
    later = OVER + timedelta(hours=1)
    (doubt,) = store.unknown_outcomes(now=later)
    store.resolve_unknown([(doubt, RetryAt(later))], now=later)
    fcm.always(sent)
    assert deliver(one, at=later).counts == {"sent": 1}
    assert tokens(fcm) == ["tablet"]
    assert tries(one)[2, tablet] == ("sent", None)


@pytest.mark.usefixtures("broker")
def test_a_device_in_doubt_gets_no_second_copy_if_another_has_it(fcm: ScriptedProvider) -> None:
    """The second attempt's worker was lost; the first had reached another device."""
    phone, tablet = device("phone"), device("tablet")
    first = pushed(**{phone: SENT, tablet: FAILED})
    store.settle([first], now=NOON)
    one = first.claimed.notification_id
    at = NOON + timedelta(minutes=6)
    again = factories.claim(one, at=at, channel=PUSH)
    factories.start(replace(again, device_ids=(tablet,)), at=at, provider="fcm")
    store.expire_leases(now=at + LEASE)
    assert delivery_status(one)[0] == "unknown"
    later = at + timedelta(hours=1)
    (doubt,) = store.unknown_outcomes(now=later)
    store.resolve_unknown([(doubt, RetryAt(later))], now=later)
    assert deliver(one, at=later).counts == {"sent": 1}
    assert tokens(fcm) == []
