"""Devices that may have it beside devices that certainly have not: the others are tried again."""

from datetime import timedelta
from typing import Any

import pytest

from domain.errors import FailureCode
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
DOUBTFUL: dict[str, Any] = {
    "ambiguous_targets": ("old",),
    "ambiguous_provider": "fcm",
    "attempt_count": 2,
}
"""What is known of a push that one more device may have, by its first attempt."""


# Who is tried again.


@pytest.mark.parametrize(
    ("not_taken", "wait"),
    [(busy(), 5), (slowed(retry_after=900), 15), (unreachable(), 5), (unavailable(), 0.5)],
)
def test_who_has_certainly_not_got_it_is_tried_again_and_who_may_have_it_is_not(
    not_taken: Outcome, wait: float
) -> None:
    settlement = concluded(silent(), not_taken, dead())
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON + wait * MINUTE)
    assert settlement.ambiguous_targets == ("d0",)
    doubtful, *_ = settlement.target_attempts
    assert (doubtful.status, doubtful.code) == (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT)


@pytest.mark.parametrize("not_taken", [busy(), unavailable()])
def test_an_attempt_that_may_have_reached_somebody_counts(not_taken: Outcome) -> None:
    """Or a device that never answers would be sent to for as long as another's platform is away."""
    assert not concluded(silent(), not_taken).uncounted


@pytest.mark.parametrize("not_taken", [unreachable(), unavailable()])
def test_nobody_else_is_asked_about_what_this_provider_may_have_taken(not_taken: Outcome) -> None:
    beside = concluded(silent(), not_taken, has_failover=True)
    before = concluded(not_taken, **DOUBTFUL, has_failover=True)
    for settlement in (beside, before):
        assert not settlement.fails_over
        assert settlement.next_attempt_at is not None
        assert settlement.next_attempt_at > NOON


def test_a_doubt_says_more_of_the_delivery_than_what_is_tried_again() -> None:
    settlement = concluded(silent(), busy())
    assert settlement.code is FailureCode.TIMEOUT
    assert settlement.reason == "No response came. (1 device); The provider is busy. (1 device)"


# Devices that were left out have not got it either.


def test_devices_there_was_no_time_for_are_tried_at_once() -> None:
    settlement = concluded(silent(), device_ids=("d0", "d1"))
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
    assert settlement.ambiguous_targets == ("d0",)


@pytest.mark.parametrize("left_out", ["blocked_until", "quiet_hours_end"])
def test_who_is_left_out_is_waited_for_no_longer_than_for_the_report(left_out: str) -> None:
    """For the type may want the device in doubt to be sent to again by then."""
    for wait, at in ((HOUR, NOON + 5 * MINUTE), (MINUTE, NOON + MINUTE)):
        settlement = concluded(silent(), **{left_out: NOON + wait})
        assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, at)
        assert settlement.ambiguous_targets == ("d0",)
        assert not settlement.uncounted
    urgent = concluded(silent(), **{left_out: NOON + HOUR}, priority=Priority.CRITICAL)
    assert urgent.next_attempt_at == NOON + 30 * SECOND


# What comes of it.


def test_one_device_that_has_it_ends_every_doubt() -> None:
    settlement = concluded(accepted(), **DOUBTFUL)
    assert fate(settlement) == (S.SENT, None, None)
    assert (settlement.accepted_targets, settlement.ambiguous_targets) == (("d0",), ())
    settlement = concluded(accepted(), silent(), busy())
    assert (settlement.status, settlement.ambiguous_targets) == (S.PENDING, ())


def test_a_doubt_lasts_while_the_others_are_tried_again() -> None:
    settlement = concluded(busy(), silent(), **DOUBTFUL)
    assert (settlement.status, settlement.ambiguous_targets) == (S.PENDING, ("old", "d1"))


@pytest.mark.parametrize("outcome", [dead(), refused(), busy()])
def test_when_the_others_cannot_get_it_the_doubt_is_to_be_decided(outcome: Outcome) -> None:
    settlement = concluded(outcome, **DOUBTFUL | {"attempt_count": 4})
    assert fate(settlement) == (S.UNKNOWN, NOON, FailureCode.OUTCOME_UNKNOWN)
    assert settlement.ambiguous_targets == ()


def test_a_new_doubt_beside_the_old_one_waits_for_its_own_report() -> None:
    settlement = concluded(silent(), **DOUBTFUL)
    assert fate(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)


@pytest.mark.parametrize("outcome", [dead(), busy()])
def test_a_device_in_doubt_that_was_sent_to_again_stands_as_the_last_answer_says(
    outcome: Outcome,
) -> None:
    again = {"ambiguous_targets": ("d0",), "attempt_count": 4}
    settlement = concluded(outcome, **DOUBTFUL | again)
    assert settlement.status is S.FAILED
