"""What the answers for a person's devices make of one delivery."""

from datetime import timedelta
from typing import Any

import pytest

from domain.errors import FailureCode
from domain.retry import MAX_OUTAGE
from domain.states import AttemptStatus, DeliveryStatus, Priority
from tests.support.factories.push_results import concluded, fate
from tests.support.factories.records import NOON
from tests.support.fakes.provider import (
    Outcome,
    accepted,
    busy,
    dead,
    refused,
    silent,
    slowed,
    unavailable,
    unreachable,
)

S = DeliveryStatus
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


# Who has it.


def test_one_device_that_takes_it_is_enough() -> None:
    settlement = concluded(accepted(), dead(), dead())
    assert fate(settlement) == (S.SENT, None, None)
    assert settlement.accepted_targets == ("d0",)
    assert settlement.reason is None


def test_devices_that_are_all_dead_are_the_end() -> None:
    settlement = concluded(dead(), dead(), dead())
    assert fate(settlement) == (S.FAILED, None, FailureCode.INVALID_RECIPIENT)
    assert settlement.reason == "Device token invalid"
    assert settlement.accepted_targets == ()


def test_what_one_device_did_not_take_is_tried_again_and_the_others_stay_told() -> None:
    settlement = concluded(accepted(), busy(), accepted())
    assert fate(settlement) == (S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR)
    assert settlement.accepted_targets == ("d0", "d2")
    assert not settlement.uncounted


def test_devices_of_earlier_attempts_stay_told() -> None:
    settlement = concluded(accepted(), accepted_targets=("old",), attempt_count=2)
    assert settlement.accepted_targets == ("old", "d0")


def test_a_device_is_told_once_however_often_it_was_reached() -> None:
    settlement = concluded(accepted(), accepted_targets=("d0",), attempt_count=2)
    assert settlement.accepted_targets == ("d0",)


@pytest.mark.parametrize("outcome", [busy(), dead(), refused(), silent()])
def test_who_was_reached_before_is_reached_whatever_the_last_attempt_ends_with(
    outcome: Outcome,
) -> None:
    settlement = concluded(outcome, accepted_targets=("old",), attempt_count=4)
    assert fate(settlement) == (S.SENT, None, None)
    assert settlement.accepted_targets == ("old",)


def test_retries_that_are_used_up_leave_it_sent_if_one_device_took_it() -> None:
    settlement = concluded(accepted(), busy(), attempt_count=4, max_attempts=4)
    assert fate(settlement) == (S.SENT, None, None)


def test_retries_that_are_used_up_are_a_failure_if_none_took_it() -> None:
    settlement = concluded(dead(), busy(), attempt_count=4, max_attempts=4)
    assert fate(settlement) == (S.FAILED, None, FailureCode.PROVIDER_ERROR)


def test_a_device_that_has_it_already_makes_it_delivered() -> None:
    assert concluded(dead(), accepted(is_delivered=True)).status is S.DELIVERED


# Who may have it.


@pytest.mark.parametrize("others", [[], [silent()], [dead()], [refused()]])
def test_a_doubt_is_a_doubt_while_nobody_is_known_to_have_it(others: list[Outcome]) -> None:
    settlement = concluded(silent(), *others)
    assert fate(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)
    assert not settlement.uncounted


def test_a_doubt_about_one_device_does_not_matter_if_another_has_it() -> None:
    settlement = concluded(silent(), accepted())
    assert fate(settlement) == (S.SENT, None, None)
    doubtful, _ = settlement.target_attempts
    assert (doubtful.status, doubtful.code) == (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT)


def test_an_urgent_doubt_is_decided_sooner() -> None:
    assert concluded(silent(), priority=Priority.CRITICAL).next_attempt_at == NOON + 30 * SECOND


# Outages: they use up no attempt.


@pytest.mark.parametrize("not_taken", [unavailable(), unreachable()])
def test_what_was_not_taken_goes_to_another_provider_at_once(not_taken: Outcome) -> None:
    settlement = concluded(not_taken, accepted(), has_failover=True)
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
    assert settlement.uncounted
    assert settlement.accepted_targets == ("d1",)


def test_what_may_have_been_taken_goes_to_no_other_provider() -> None:
    settlement = concluded(silent(), has_failover=True)
    assert fate(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)


@pytest.mark.parametrize(("taken", "wait"), [(busy(), 5), (slowed(retry_after=900), 15)])
def test_what_a_provider_will_take_later_waits_for_it(taken: Outcome, wait: int) -> None:
    settlement = concluded(taken, has_failover=True)
    assert settlement.next_attempt_at == NOON + wait * MINUTE
    assert not settlement.uncounted


def test_an_outage_for_some_and_trouble_with_others_is_an_attempt_after_the_longer_wait() -> None:
    settlement = concluded(unavailable(retry_after=3600), busy())
    assert fate(settlement) == (S.PENDING, NOON + HOUR, FailureCode.PROVIDER_ERROR)
    assert not settlement.uncounted
    settlement = concluded(unavailable(), busy())
    assert settlement.next_attempt_at == NOON + 5 * MINUTE


def test_an_outage_for_some_goes_on_when_the_others_have_used_up_their_attempts() -> None:
    settlement = concluded(unavailable(), busy(), attempt_count=4, max_attempts=4)
    assert fate(settlement) == (S.PENDING, NOON + 30 * SECOND, FailureCode.CHANNEL_UNAVAILABLE)
    assert settlement.uncounted


def test_an_outage_does_not_outlast_all_patience() -> None:
    past = {"first_due_at": NOON - MAX_OUTAGE}
    assert concluded(unavailable(), **past).status is S.FAILED
    assert concluded(unavailable(), accepted(), **past).status is S.SENT


# Devices that were left out: of a platform that nothing goes to, asleep, or there was no time.


@pytest.mark.parametrize("outcome", [accepted(), dead(), refused()])
def test_devices_of_a_platform_that_is_held_get_it_later(outcome: Outcome) -> None:
    settlement = concluded(outcome, blocked_until=NOON + 15 * MINUTE)
    assert fate(settlement) == (S.PENDING, NOON + 15 * MINUTE, FailureCode.CHANNEL_UNAVAILABLE)
    assert settlement.uncounted
    assert "platform" in (settlement.reason or "")


def test_a_retry_does_not_wait_for_a_platform_that_is_held() -> None:
    settlement = concluded(busy(), blocked_until=NOON + HOUR)
    assert fate(settlement) == (S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR)
    assert not settlement.uncounted


@pytest.mark.parametrize(
    "fields",
    [{"first_due_at": NOON - MAX_OUTAGE}, {"expires_at": NOON + 15 * MINUTE}],
    ids=["no patience is left", "it expires before"],
)
def test_nobody_waits_for_a_platform_for_ever(fields: dict[str, Any]) -> None:
    held = {"blocked_until": NOON + 15 * MINUTE, **fields}
    assert fate(concluded(accepted(), **held)) == (S.SENT, None, None)
    assert fate(concluded(dead(), **held)) == (S.FAILED, None, FailureCode.INVALID_RECIPIENT)


def test_a_device_asleep_is_not_woken_later_if_another_has_it() -> None:
    assert concluded(accepted(), quiet_hours_end=NOON + HOUR).status is S.SENT


def test_a_device_asleep_is_told_in_the_morning_if_no_other_can_be() -> None:
    settlement = concluded(dead(), refused(), quiet_hours_end=NOON + 8 * HOUR)
    assert fate(settlement) == (S.PENDING, NOON + 8 * HOUR, FailureCode.QUIET_HOURS)
    assert settlement.uncounted


def test_a_morning_that_comes_too_late_is_not_waited_for() -> None:
    settlement = concluded(dead(), quiet_hours_end=NOON + 8 * HOUR, expires_at=NOON + HOUR)
    assert settlement.status is S.FAILED


def test_devices_there_was_no_time_for_are_tried_at_once() -> None:
    settlement = concluded(accepted(), device_ids=("d0", "d1", "d2"))
    assert fate(settlement) == (S.PENDING, NOON, FailureCode.PROVIDER_ERROR)
    assert settlement.uncounted
    assert settlement.accepted_targets == ("d0",)
    statuses = {one.device_id: one.status for one in settlement.target_attempts}
    not_begun = AttemptStatus.EXPIRED
    assert statuses == {"d0": AttemptStatus.SENT, "d1": not_begun, "d2": not_begun}


def test_devices_there_was_no_time_for_wait_for_the_retry_of_the_others() -> None:
    settlement = concluded(busy(), device_ids=("d0", "d1"))
    assert settlement.next_attempt_at == NOON + 5 * MINUTE
    assert not settlement.uncounted


def test_devices_there_was_no_time_for_do_not_wait_for_a_platform() -> None:
    settlement = concluded(accepted(), device_ids=("d0", "d1"), blocked_until=NOON + HOUR)
    assert settlement.next_attempt_at == NOON


# What is told of it.


def test_every_device_has_its_own_record() -> None:
    settlement = concluded(accepted(provider_id="m-1"), dead(), busy())
    assert [(t.device_id, t.status, t.code, t.reason) for t in settlement.target_attempts] == [
        ("d0", AttemptStatus.SENT, None, None),
        ("d1", AttemptStatus.FAILED, FailureCode.INVALID_RECIPIENT, "Device token invalid"),
        ("d2", AttemptStatus.FAILED, FailureCode.PROVIDER_ERROR, "The provider is busy."),
    ]
    assert settlement.target_attempts[0].answer.message_id == "m-1"
    assert settlement.target_attempts[1].answer.message_id is None


def test_the_reason_tells_what_was_said_of_how_many() -> None:
    settlement = concluded(dead(), busy(), dead())
    assert settlement.reason == "Device token invalid (2 devices); The provider is busy. (1 device)"


def test_a_reason_that_all_share_is_told_once() -> None:
    assert concluded(busy(), busy()).reason == "The provider is busy."


def test_what_may_still_change_tells_more_than_what_is_over() -> None:
    assert concluded(dead(), refused()).code is FailureCode.REJECTED
    assert concluded(refused(), unavailable()).code is FailureCode.CHANNEL_UNAVAILABLE
    assert concluded(unavailable(), busy()).code is FailureCode.PROVIDER_ERROR
    assert concluded(busy(), silent()).code is FailureCode.TIMEOUT
