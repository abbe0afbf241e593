"""A push that was tried before: who has it already, and who is not to be asked again."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from devices import registration
from domain.errors import FailureCode
from domain.states import AttemptStatus, Channel, DeliveryStatus
from notifications import store
from notifications.store import ClaimedDelivery, ProviderAnswer, TargetAttempt
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, device, settlement
from tests.support.factories.push_targets import aim, aimed_at, parked, push
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")

PUSH = Channel.PUSH
S = DeliveryStatus
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


ENDS = {
    "sent": (AttemptStatus.SENT, None),
    "busy": (AttemptStatus.FAILED, FailureCode.PROVIDER_ERROR),
    "refused": (AttemptStatus.FAILED, FailureCode.REJECTED),
    "dead": (AttemptStatus.FAILED, FailureCode.INVALID_RECIPIENT),
    "unknown": (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT),
}


def attempt(
    one: ClaimedDelivery, status: DeliveryStatus, at: datetime, outcomes: dict[str, str]
) -> None:
    """Let an attempt end so at each device, and the delivery in ``status``."""
    begun = factories.start(replace(one, device_ids=tuple(outcomes)), at=at, provider="fcm")
    tries = [
        TargetAttempt(
            device_id=device_id,
            status=ENDS[end][0],
            finished_at=at,
            duration_ms=1,
            answer=ProviderAnswer(provider="fcm"),
            code=ENDS[end][1],
            reason=f"It was {end}.",
        )
        for device_id, end in outcomes.items()
    ]
    reached = [device_id for device_id, end in outcomes.items() if end == "sent"]
    have = (*begun.accepted_targets, *reached)
    outcome = settlement(begun, status, at=at, target_attempts=tuple(tries), accepted_targets=have)
    store.settle([outcome], now=at)


def tried(one: ClaimedDelivery, *, at: datetime = NOON, **outcomes: str) -> ClaimedDelivery:
    """Let an attempt end so at each device; return the delivery, claimed anew."""
    attempt(one, S.PENDING, at, outcomes)
    return factories.claim(one.notification_id, at=at + 5 * MINUTE, channel=PUSH)


def test_a_retry_goes_only_to_devices_that_have_not_got_it() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "sent", tablet: "busy"})
    assert aimed_at(again) == [tablet]


def test_it_is_sent_when_the_devices_that_are_left_have_it() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "sent", tablet: "busy"})
    registration.remove(device_id=tablet)
    assert parked(again).status is S.SENT


def test_what_is_called_off_when_one_device_has_it_is_sent() -> None:
    again = tried(push(), phone="sent", tablet="busy")
    after = store.cancel(
        notification_id=again.notification_id, channels=[PUSH], reason="Enough.", now=NOON
    )
    assert after is not None
    (withdrawn,) = after["delivery"]
    assert (withdrawn["status"], after["status"]) == ("sent", "sent")
    assert withdrawn["sent_at"] == NOON
    assert withdrawn["failure_code"] is withdrawn["failure_reason"] is None
    assert "due_at" not in after


def test_a_push_that_one_device_has_is_sent_when_its_person_is_erased() -> None:
    again = tried(push(user_id="ada"), phone="sent", tablet="busy")
    store.erase(store.erasable(user_id="ada", limit=1), user_id="ada", now=NOON)
    assert factories.read(again.notification_id)["status"] == "sent"


def test_what_is_called_off_when_no_device_has_it_is_cancelled() -> None:
    again = tried(push(), phone="busy", tablet="busy")
    store.cancel_pending(ids=[again.notification_id], reason="$Enough", now=NOON)
    (withdrawn,) = factories.read(again.notification_id)["delivery"]
    assert (withdrawn["status"], withdrawn["failure_reason"]) == ("cancelled", "$Enough")
    assert withdrawn.get("sent_at") is None


def test_a_device_that_refused_it_for_good_is_not_asked_again() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = tried(push(), **{phone: "refused", tablet: "busy", watch: "dead"})
    assert aimed_at(again) == [tablet]


def test_what_all_devices_that_are_left_refused_has_failed_of_that() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "refused", tablet: "busy"})
    registration.remove(device_id=tablet)
    why = parked(again)
    assert (why.status, why.code) == (S.FAILED, FailureCode.REJECTED)
    assert why.reason == "It was refused."


def test_what_an_operator_opens_again_goes_to_devices_that_refused_it_too() -> None:
    phone = device("phone")
    one = push()
    attempt(one, S.FAILED, NOON, {phone: "refused"})
    later, ids = NOON + HOUR, one.notification_id
    store.reopen(notification_id=ids, channels=[PUSH], extra_attempts=1, now=later)
    again = factories.claim(ids, at=later, channel=PUSH)
    assert aimed_at(again, now=later) == [phone]


def test_a_device_that_may_have_it_is_not_sent_a_second_copy_if_another_has_it() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = tried(push(), **{phone: "sent", tablet: "unknown", watch: "busy"})
    assert aimed_at(again) == [watch]


def test_a_device_that_may_have_it_is_tried_again_if_its_type_says_so_and_nobody_has_it() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "unknown", tablet: "busy"})
    assert set(aimed_at(again)) == {phone, tablet}


def test_the_last_attempt_at_a_device_is_the_one_that_says_how_it_stands() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = tried(push(), **{phone: "unknown", tablet: "busy", watch: "busy"})
    third = tried(again, at=NOON + 5 * MINUTE, **{phone: "busy", tablet: "sent", watch: "unknown"})
    assert aimed_at(third, now=NOON + 10 * MINUTE) == [phone]


def test_a_device_that_has_it_by_the_log_has_it() -> None:
    """The worker wrote the attempt's record and was lost before it wrote the delivery."""
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "sent", tablet: "busy"})
    forgetful = replace(again, accepted_targets=())
    assert aimed_at(forgetful) == [tablet]
    registration.remove(device_id=tablet)
    assert parked(forgetful).status is S.SENT


def test_earlier_attempts_are_read_only_if_there_were_any_and_by_their_index() -> None:
    phone, tablet = device("phone"), device("tablet")
    first = push()
    with plans("delivery_attempts") as found:
        aim(first)
    assert found == []
    again = tried(first, **{phone: "sent", tablet: "busy"})
    with plans("delivery_attempts") as found:
        aim(again)
    (plan,) = found
    assert plan.is_indexed
    assert (plan.examined, plan.sorts) == (2, False)
