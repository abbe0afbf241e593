"""Combining results into one delivery status: one target, devices, ambiguous results."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from delivery.results import TargetResult, combine_results
from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from domain.retry import MAX_OUTAGE
from domain.states import AttemptStatus, DeliveryStatus, Priority
from notifications.store import Settlement
from providers.contract import SendResult
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.factories.push import combined as concluded
from tests.support.factories.push import settlement_summary as delivery_status
from tests.support.fakes.provider import (
    Outcome,
    accepted,
    channel_unavailable,
    invalid_token,
    provider_error,
    rate_limited,
    refused,
    timeout,
    unreachable,
)

S = DeliveryStatus

SECOND = timedelta(seconds=1)

MINUTE = timedelta(minutes=1)

ANSWER = ProviderResponse(status=503, code="busy", excerpt="Try again.")


def settled(result: SendResult | ProviderError, **fields: object) -> Settlement:
    one = TargetResult(
        device_id=None, outcome=result, started_at=NOON, finished_at=NOON, duration_ms=12
    )
    return combine_results(claimed(**fields), [one], provider="sendgrid", now=NOON, jitter=0)


def busy_provider(**details: Any) -> TransientError:
    return TransientError("busy", **{"code": FailureCode.PROVIDER_ERROR, **details})


@pytest.mark.parametrize(
    ("result", "status", "next_attempt_at", "code"),
    [
        (SendResult(provider_id="sg-1", response=ProviderResponse(status=202)), S.SENT, None, None),
        (SendResult(provider_id=None, response=ProviderResponse(status=202)), S.SENT, None, None),
        (
            SendResult(provider_id=None, response=ProviderResponse(status=200), is_delivered=True),
            *(S.DELIVERED, None, None),
        ),
        (busy_provider(), S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR),
        (
            busy_provider(code=FailureCode.RATE_LIMITED, retry_after=900),
            *(S.PENDING, NOON + 15 * MINUTE, FailureCode.RATE_LIMITED),
        ),
        (
            busy_provider(code=FailureCode.CONNECTION_FAILED),
            *(S.PENDING, NOON + 5 * MINUTE, FailureCode.CONNECTION_FAILED),
        ),
        (
            busy_provider(code=FailureCode.TIMEOUT, is_ambiguous=True),
            *(S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT),
        ),
        (
            busy_provider(code=FailureCode.CONNECTION_LOST, is_ambiguous=True),
            *(S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.CONNECTION_LOST),
        ),
        (
            PermanentError("no", code=FailureCode.REJECTED),
            *(S.FAILED, None, FailureCode.REJECTED),
        ),
        (
            PermanentError("too much", code=FailureCode.TOO_LARGE),
            *(S.FAILED, None, FailureCode.TOO_LARGE),
        ),
        (
            InvalidRecipientError("nobody", action=RecipientAction.SUSPECT),
            *(S.FAILED, None, FailureCode.INVALID_RECIPIENT),
        ),
        (
            ProviderUnavailableError("no credit"),
            *(S.PENDING, NOON + 30 * SECOND, FailureCode.CHANNEL_UNAVAILABLE),
        ),
        (
            ProviderUnavailableError("no credit", retry_after=120),
            *(S.PENDING, NOON + 2 * MINUTE, FailureCode.CHANNEL_UNAVAILABLE),
        ),
    ],
    ids=[
        *("accepted", "accepted without an id", "delivered", "busy", "rate limited"),
        *("not connected", "silent", "cut off", "rejected", "too large", "no such mailbox"),
        *("unavailable", "unavailable for a time"),
    ],
)
def test_an_answer_becomes_an_outcome(
    result: SendResult | ProviderError,
    status: DeliveryStatus,
    next_attempt_at: datetime | None,
    code: FailureCode | None,
) -> None:
    settlement = settled(result)
    assert settlement.status is status
    assert settlement.next_attempt_at == next_attempt_at
    assert settlement.code == code
    assert settlement.duration_ms == 12
    assert settlement.finished_at == NOON
    assert settlement.uncounted is isinstance(result, ProviderUnavailableError)


def test_the_last_attempt_that_fails_is_the_end() -> None:
    settlement = settled(busy_provider(), attempt_count=4, max_attempts=4)
    assert (settlement.status, settlement.next_attempt_at) == (S.FAILED, None)
    assert settlement.code is FailureCode.PROVIDER_ERROR


def test_an_outage_does_not_end_with_the_last_attempt() -> None:
    settlement = settled(ProviderUnavailableError("down"), attempt_count=4, max_attempts=4)
    assert (settlement.status, settlement.uncounted) == (S.PENDING, True)


def test_an_outage_that_outlasts_all_patience_is_a_failure_that_counts() -> None:
    settlement = settled(ProviderUnavailableError("down"), first_due_at=NOON - timedelta(hours=72))
    assert (settlement.status, settlement.uncounted) == (S.FAILED, False)
    assert settlement.code is FailureCode.CHANNEL_UNAVAILABLE


def test_an_urgent_message_is_tried_again_sooner() -> None:
    settlement = settled(busy_provider(), priority=Priority.CRITICAL)
    assert settlement.next_attempt_at == NOON + 15 * SECOND


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (ANSWER, {"status": 503, "code": "busy", "body": "Try again."}),
        (ProviderResponse(status=500), {"status": 500}),
        (None, None),
    ],
)
def test_what_the_provider_said_is_kept(
    answer: ProviderResponse | None, kept: Mapping[str, object] | None
) -> None:
    settlement = settled(busy_provider(response=answer))
    assert settlement.answer.provider == "sendgrid"
    assert settlement.answer.response == kept
    assert settlement.answer.message_id is None
    assert settlement.reason == "busy"


def test_the_providers_own_id_is_kept() -> None:
    result = SendResult(provider_id="sg-1", response=ProviderResponse(status=202))
    assert settled(result).answer.message_id == "sg-1"


HOUR = timedelta(hours=1)


def test_one_device_that_takes_it_is_enough() -> None:
    settlement = concluded(accepted(), invalid_token(), invalid_token())
    assert delivery_status(settlement) == (S.SENT, None, None)
    assert settlement.accepted_targets == ("d0",)
    assert settlement.reason is None


def test_devices_that_are_all_dead_are_the_end() -> None:
    settlement = concluded(invalid_token(), invalid_token(), invalid_token())
    assert delivery_status(settlement) == (S.FAILED, None, FailureCode.INVALID_RECIPIENT)
    assert settlement.reason == "Device token invalid"
    assert settlement.accepted_targets == ()


def test_what_one_device_did_not_take_is_tried_again_and_the_others_stay_told() -> None:
    settlement = concluded(accepted(), provider_error(), accepted())
    assert delivery_status(settlement) == (S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR)
    assert settlement.accepted_targets == ("d0", "d2")
    assert not settlement.uncounted


def test_devices_of_earlier_attempts_stay_told() -> None:
    settlement = concluded(accepted(), accepted_targets=("old",), attempt_count=2)
    assert settlement.accepted_targets == ("old", "d0")


def test_a_device_is_told_once_however_often_it_was_reached() -> None:
    settlement = concluded(accepted(), accepted_targets=("d0",), attempt_count=2)
    assert settlement.accepted_targets == ("d0",)


@pytest.mark.parametrize("outcome", [provider_error(), invalid_token(), refused(), timeout()])
def test_who_was_reached_before_is_reached_whatever_the_last_attempt_ends_with(
    outcome: Outcome,
) -> None:
    settlement = concluded(outcome, accepted_targets=("old",), attempt_count=4)
    assert delivery_status(settlement) == (S.SENT, None, None)
    assert settlement.accepted_targets == ("old",)


def test_retries_that_are_used_up_leave_it_sent_if_one_device_took_it() -> None:
    settlement = concluded(accepted(), provider_error(), attempt_count=4, max_attempts=4)
    assert delivery_status(settlement) == (S.SENT, None, None)


def test_retries_that_are_used_up_are_a_failure_if_none_took_it() -> None:
    settlement = concluded(invalid_token(), provider_error(), attempt_count=4, max_attempts=4)
    assert delivery_status(settlement) == (S.FAILED, None, FailureCode.PROVIDER_ERROR)


def test_a_device_that_has_it_already_makes_it_delivered() -> None:
    assert concluded(invalid_token(), accepted(is_delivered=True)).status is S.DELIVERED


@pytest.mark.parametrize("others", [[], [timeout()], [invalid_token()], [refused()]])
def test_a_doubt_is_a_doubt_while_nobody_is_known_to_have_it(others: list[Outcome]) -> None:
    settlement = concluded(timeout(), *others)
    assert delivery_status(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)
    assert not settlement.uncounted


def test_a_doubt_about_one_device_does_not_matter_if_another_has_it() -> None:
    settlement = concluded(timeout(), accepted())
    assert delivery_status(settlement) == (S.SENT, None, None)
    doubtful, _ = settlement.target_attempts
    assert (doubtful.status, doubtful.code) == (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT)


def test_an_urgent_doubt_is_decided_sooner() -> None:
    assert concluded(timeout(), priority=Priority.CRITICAL).next_attempt_at == NOON + 30 * SECOND


@pytest.mark.parametrize("not_taken", [channel_unavailable(), unreachable()])
def test_what_was_not_taken_goes_to_another_provider_at_once(not_taken: Outcome) -> None:
    settlement = concluded(not_taken, accepted(), has_failover=True)
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
    assert settlement.uncounted
    assert settlement.accepted_targets == ("d1",)


def test_what_may_have_been_taken_goes_to_no_other_provider() -> None:
    settlement = concluded(timeout(), has_failover=True)
    assert delivery_status(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)


@pytest.mark.parametrize(
    ("taken", "wait"), [(provider_error(), 5), (rate_limited(retry_after=900), 15)]
)
def test_what_a_provider_will_take_later_waits_for_it(taken: Outcome, wait: int) -> None:
    settlement = concluded(taken, has_failover=True)
    assert settlement.next_attempt_at == NOON + wait * MINUTE
    assert not settlement.uncounted


def test_an_outage_for_some_and_trouble_with_others_is_an_attempt_after_the_longer_wait() -> None:
    settlement = concluded(channel_unavailable(retry_after=3600), provider_error())
    assert delivery_status(settlement) == (S.PENDING, NOON + HOUR, FailureCode.PROVIDER_ERROR)
    assert not settlement.uncounted
    settlement = concluded(channel_unavailable(), provider_error())
    assert settlement.next_attempt_at == NOON + 5 * MINUTE


def test_an_outage_for_some_goes_on_when_the_others_have_used_up_their_attempts() -> None:
    settlement = concluded(channel_unavailable(), provider_error(), attempt_count=4, max_attempts=4)
    assert delivery_status(settlement) == (
        S.PENDING,
        NOON + 30 * SECOND,
        FailureCode.CHANNEL_UNAVAILABLE,
    )
    assert settlement.uncounted


def test_an_outage_does_not_outlast_all_patience() -> None:
    past = {"first_due_at": NOON - MAX_OUTAGE}
    assert concluded(channel_unavailable(), **past).status is S.FAILED
    assert concluded(channel_unavailable(), accepted(), **past).status is S.SENT


@pytest.mark.parametrize("outcome", [accepted(), invalid_token(), refused()])
def test_devices_of_a_platform_that_is_held_get_it_later(outcome: Outcome) -> None:
    settlement = concluded(outcome, blocked_until=NOON + 15 * MINUTE)
    assert delivery_status(settlement) == (
        S.PENDING,
        NOON + 15 * MINUTE,
        FailureCode.CHANNEL_UNAVAILABLE,
    )
    assert settlement.uncounted
    assert "platform" in (settlement.reason or "")


def test_a_retry_does_not_wait_for_a_platform_that_is_held() -> None:
    settlement = concluded(provider_error(), blocked_until=NOON + HOUR)
    assert delivery_status(settlement) == (S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR)
    assert not settlement.uncounted


@pytest.mark.parametrize(
    "fields",
    [{"first_due_at": NOON - MAX_OUTAGE}, {"expires_at": NOON + 15 * MINUTE}],
    ids=["no patience is left", "it expires before"],
)
def test_nobody_waits_for_a_platform_for_ever(fields: dict[str, Any]) -> None:
    held = {"blocked_until": NOON + 15 * MINUTE, **fields}
    assert delivery_status(concluded(accepted(), **held)) == (S.SENT, None, None)
    assert delivery_status(concluded(invalid_token(), **held)) == (
        S.FAILED,
        None,
        FailureCode.INVALID_RECIPIENT,
    )


def test_a_device_asleep_is_not_woken_later_if_another_has_it() -> None:
    assert concluded(accepted(), quiet_hours_end=NOON + HOUR).status is S.SENT


def test_a_device_asleep_is_told_in_the_morning_if_no_other_can_be() -> None:
    settlement = concluded(invalid_token(), refused(), quiet_hours_end=NOON + 8 * HOUR)
    assert delivery_status(settlement) == (S.PENDING, NOON + 8 * HOUR, FailureCode.QUIET_HOURS)
    assert settlement.uncounted


def test_a_morning_that_comes_too_late_is_not_waited_for() -> None:
    settlement = concluded(invalid_token(), quiet_hours_end=NOON + 8 * HOUR, expires_at=NOON + HOUR)
    assert settlement.status is S.FAILED


def test_devices_there_was_no_time_for_are_tried_at_once() -> None:
    settlement = concluded(accepted(), device_ids=("d0", "d1", "d2"))
    assert delivery_status(settlement) == (S.PENDING, NOON, FailureCode.PROVIDER_ERROR)
    assert settlement.uncounted
    assert settlement.accepted_targets == ("d0",)
    statuses = {one.device_id: one.status for one in settlement.target_attempts}
    not_begun = AttemptStatus.EXPIRED
    assert statuses == {"d0": AttemptStatus.SENT, "d1": not_begun, "d2": not_begun}


def test_devices_there_was_no_time_for_wait_for_the_retry_of_the_others() -> None:
    settlement = concluded(provider_error(), device_ids=("d0", "d1"))
    assert settlement.next_attempt_at == NOON + 5 * MINUTE
    assert not settlement.uncounted


def test_devices_there_was_no_time_for_do_not_wait_for_a_platform() -> None:
    settlement = concluded(accepted(), device_ids=("d0", "d1"), blocked_until=NOON + HOUR)
    assert settlement.next_attempt_at == NOON


def test_every_device_has_its_own_record() -> None:
    settlement = concluded(accepted(provider_id="m-1"), invalid_token(), provider_error())
    assert [(t.device_id, t.status, t.code, t.reason) for t in settlement.target_attempts] == [
        ("d0", AttemptStatus.SENT, None, None),
        ("d1", AttemptStatus.FAILED, FailureCode.INVALID_RECIPIENT, "Device token invalid"),
        ("d2", AttemptStatus.FAILED, FailureCode.PROVIDER_ERROR, "The provider is busy."),
    ]
    assert settlement.target_attempts[0].answer.message_id == "m-1"
    assert settlement.target_attempts[1].answer.message_id is None


def test_the_reason_tells_what_was_said_of_how_many() -> None:
    settlement = concluded(invalid_token(), provider_error(), invalid_token())
    assert settlement.reason == "Device token invalid (2 devices); The provider is busy. (1 device)"


def test_a_reason_that_all_share_is_told_once() -> None:
    assert concluded(provider_error(), provider_error()).reason == "The provider is busy."


def test_what_may_still_change_tells_more_than_what_is_over() -> None:
    assert concluded(invalid_token(), refused()).code is FailureCode.REJECTED
    assert concluded(refused(), channel_unavailable()).code is FailureCode.CHANNEL_UNAVAILABLE
    assert concluded(channel_unavailable(), provider_error()).code is FailureCode.PROVIDER_ERROR
    assert concluded(provider_error(), timeout()).code is FailureCode.TIMEOUT


DOUBTFUL: dict[str, Any] = {
    "ambiguous_targets": ("old",),
    "ambiguous_provider": "fcm",
    "attempt_count": 2,
}
"""What is known of a push that one more device may have, by its first attempt."""


@pytest.mark.parametrize(
    ("not_taken", "wait"),
    [
        (provider_error(), 5),
        (rate_limited(retry_after=900), 15),
        (unreachable(), 5),
        (channel_unavailable(), 0.5),
    ],
)
def test_who_has_certainly_not_got_it_is_tried_again_and_who_may_have_it_is_not(
    not_taken: Outcome, wait: float
) -> None:
    settlement = concluded(timeout(), not_taken, invalid_token())
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON + wait * MINUTE)
    assert settlement.ambiguous_targets == ("d0",)
    doubtful, *_ = settlement.target_attempts
    assert (doubtful.status, doubtful.code) == (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT)


@pytest.mark.parametrize("not_taken", [provider_error(), channel_unavailable()])
def test_an_attempt_that_may_have_reached_somebody_counts(not_taken: Outcome) -> None:
    """Or a device that never answers would be sent to for as long as another's platform is away."""
    assert not concluded(timeout(), not_taken).uncounted


@pytest.mark.parametrize("not_taken", [unreachable(), channel_unavailable()])
def test_nobody_else_is_asked_about_what_this_provider_may_have_taken(not_taken: Outcome) -> None:
    beside = concluded(timeout(), not_taken, has_failover=True)
    before = concluded(not_taken, **DOUBTFUL, has_failover=True)
    for settlement in (beside, before):
        assert not settlement.fails_over
        assert settlement.next_attempt_at is not None
        assert settlement.next_attempt_at > NOON


def test_a_doubt_says_more_of_the_delivery_than_what_is_tried_again() -> None:
    settlement = concluded(timeout(), provider_error())
    assert settlement.code is FailureCode.TIMEOUT
    assert settlement.reason == "No response came. (1 device); The provider is busy. (1 device)"


def test_devices_there_was_no_time_for_beside_ambiguous_ones_are_tried_at_once() -> None:
    settlement = concluded(timeout(), device_ids=("d0", "d1"))
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
    assert settlement.ambiguous_targets == ("d0",)


@pytest.mark.parametrize("left_out", ["blocked_until", "quiet_hours_end"])
def test_who_is_left_out_is_waited_for_no_longer_than_for_the_report(left_out: str) -> None:
    """For the type may want the device in doubt to be sent to again by then."""
    for wait, at in ((HOUR, NOON + 5 * MINUTE), (MINUTE, NOON + MINUTE)):
        settlement = concluded(timeout(), **{left_out: NOON + wait})
        assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, at)
        assert settlement.ambiguous_targets == ("d0",)
        assert not settlement.uncounted
    urgent = concluded(timeout(), **{left_out: NOON + HOUR}, priority=Priority.CRITICAL)
    assert urgent.next_attempt_at == NOON + 30 * SECOND


def test_one_device_that_has_it_ends_every_doubt() -> None:
    settlement = concluded(accepted(), **DOUBTFUL)
    assert delivery_status(settlement) == (S.SENT, None, None)
    assert (settlement.accepted_targets, settlement.ambiguous_targets) == (("d0",), ())
    settlement = concluded(accepted(), timeout(), provider_error())
    assert (settlement.status, settlement.ambiguous_targets) == (S.PENDING, ())


def test_a_doubt_lasts_while_the_others_are_tried_again() -> None:
    settlement = concluded(provider_error(), timeout(), **DOUBTFUL)
    assert (settlement.status, settlement.ambiguous_targets) == (S.PENDING, ("old", "d1"))


@pytest.mark.parametrize("outcome", [invalid_token(), refused(), provider_error()])
def test_when_the_others_cannot_get_it_the_doubt_is_to_be_decided(outcome: Outcome) -> None:
    settlement = concluded(outcome, **DOUBTFUL | {"attempt_count": 4})
    assert delivery_status(settlement) == (S.UNKNOWN, NOON, FailureCode.OUTCOME_UNKNOWN)
    assert settlement.ambiguous_targets == ()


def test_a_new_doubt_beside_the_old_one_waits_for_its_own_report() -> None:
    settlement = concluded(timeout(), **DOUBTFUL)
    assert delivery_status(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)


@pytest.mark.parametrize("outcome", [invalid_token(), provider_error()])
def test_a_device_in_doubt_that_was_sent_to_again_stands_as_the_last_answer_says(
    outcome: Outcome,
) -> None:
    again = {"ambiguous_targets": ("d0",), "attempt_count": 4}
    settlement = concluded(outcome, **DOUBTFUL | again)
    assert settlement.status is S.FAILED
