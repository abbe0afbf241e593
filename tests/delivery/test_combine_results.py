"""Combining results into one delivery status: one target, devices, ambiguous results."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

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
from domain.retry import MAX_OUTAGE, MAX_REFUSED_DELAY
from domain.states import AttemptStatus, DeliveryStatus, Priority
from domain.wait_reasons import WaitReason
from notifications.store.claims import Settlement
from providers.contract import SendResult
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.factories.push import combined
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
from tests.support.tables import each_case

S = DeliveryStatus
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
ANSWER = ProviderResponse(status=503, code="busy", excerpt="Try again.")


def settle_one(result: SendResult | ProviderError, **fields: object) -> Settlement:
    target_result = TargetResult(
        device_id=None, outcome=result, started_at=NOON, finished_at=NOON, duration_ms=12
    )
    return combine_results(
        claimed(**fields), [target_result], provider="sendgrid", now=NOON, jitter=0
    )


def busy_provider(**details: Any) -> TransientError:
    return TransientError("busy", **{"code": FailureCode.PROVIDER_ERROR, **details})


@each_case(
    "result, status, next_attempt_at, code",
    [
        (SendResult(provider_id="sg-1", response=ProviderResponse(status=202)), S.SENT, None, None),
        (SendResult(provider_id=None, response=ProviderResponse(status=202)), S.SENT, None, None),
        (
            SendResult(provider_id=None, response=ProviderResponse(status=200), is_delivered=True),
            S.DELIVERED,
            None,
            None,
        ),
        (busy_provider(), S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR),
        (
            busy_provider(code=FailureCode.RATE_LIMITED, retry_after=900),
            S.PENDING,
            NOON + 15 * MINUTE + MAX_REFUSED_DELAY,
            FailureCode.RATE_LIMITED,
        ),
        (
            busy_provider(code=FailureCode.CONNECTION_FAILED),
            S.PENDING,
            NOON + 5 * MINUTE,
            FailureCode.CONNECTION_FAILED,
        ),
        (
            busy_provider(code=FailureCode.TIMEOUT, is_ambiguous=True),
            S.UNKNOWN,
            NOON + 5 * MINUTE,
            FailureCode.TIMEOUT,
        ),
        (
            busy_provider(code=FailureCode.CONNECTION_LOST, is_ambiguous=True),
            S.UNKNOWN,
            NOON + 5 * MINUTE,
            FailureCode.CONNECTION_LOST,
        ),
        (PermanentError("no", code=FailureCode.REJECTED), S.FAILED, None, FailureCode.REJECTED),
        (
            PermanentError("too much", code=FailureCode.TOO_LARGE),
            S.FAILED,
            None,
            FailureCode.TOO_LARGE,
        ),
        (
            InvalidRecipientError("nobody", action=RecipientAction.SUSPECT),
            S.FAILED,
            None,
            FailureCode.INVALID_RECIPIENT,
        ),
        (
            ProviderUnavailableError("no credit"),
            S.PENDING,
            NOON + 30 * SECOND,
            FailureCode.CHANNEL_UNAVAILABLE,
        ),
        (
            ProviderUnavailableError("no credit", retry_after=120),
            S.PENDING,
            NOON + 2 * MINUTE + MAX_REFUSED_DELAY,
            FailureCode.CHANNEL_UNAVAILABLE,
        ),
    ],
)
def test_provider_result_determines_the_settlement(
    result: SendResult | ProviderError,
    status: DeliveryStatus,
    next_attempt_at: datetime | None,
    code: FailureCode | None,
) -> None:
    settlement = settle_one(result)
    assert settlement.status is status
    assert settlement.next_attempt_at == next_attempt_at
    assert settlement.code == code
    assert settlement.duration_ms == 12
    assert settlement.finished_at == NOON
    assert settlement.uncounted is (
        isinstance(result, ProviderUnavailableError) or code is FailureCode.RATE_LIMITED
    )


def test_rate_limited_delivery_is_held_as_such() -> None:
    """Operators see that it waits for the provider's limit, and not for a retry of its own."""
    settlement = settle_one(rate_limited(), attempt_count=4, max_attempts=4)
    assert (settlement.status, settlement.held_reason) == (S.PENDING, WaitReason.RATE_LIMITED)
    assert settle_one(busy_provider()).held_reason is None


def test_outage_does_not_use_up_the_last_attempt() -> None:
    settlement = settle_one(ProviderUnavailableError("down"), attempt_count=4, max_attempts=4)
    assert (settlement.status, settlement.uncounted) == (S.PENDING, True)


def test_outage_beyond_the_limit_is_a_counted_failure() -> None:
    settlement = settle_one(ProviderUnavailableError("down"), held_for=MAX_OUTAGE)
    assert (settlement.status, settlement.uncounted) == (S.FAILED, False)
    assert settlement.code is FailureCode.CHANNEL_UNAVAILABLE


@each_case(
    "answer, kept",
    [
        (ANSWER, {"status": 503, "code": "busy", "body": "Try again."}),
        (ProviderResponse(status=500), {"status": 500}),
        (None, None),
    ],
)
def test_provider_response_is_recorded(
    answer: ProviderResponse | None, kept: Mapping[str, object] | None
) -> None:
    settlement = settle_one(busy_provider(response=answer))
    assert settlement.provider == "sendgrid"
    assert settlement.response == kept
    assert settlement.provider_message_id is None
    assert settlement.reason == "busy"


def test_provider_message_id_is_recorded() -> None:
    result = SendResult(provider_id="sg-1", response=ProviderResponse(status=202))
    assert settle_one(result).provider_message_id == "sg-1"


HOUR = timedelta(hours=1)


@each_case("outcome", [provider_error(), invalid_token(), refused(), timeout()])
def test_earlier_acceptance_makes_it_sent_whatever_the_last_outcome(outcome: Outcome) -> None:
    settlement = combined(outcome, accepted_targets=("old",), attempt_count=4)
    assert delivery_status(settlement) == (S.SENT, None, None)
    assert settlement.accepted_targets == ("old",)


@each_case(
    "first, expected",
    [
        (accepted(), (S.SENT, None, None)),
        (invalid_token(), (S.FAILED, None, FailureCode.PROVIDER_ERROR)),
    ],
)
def test_exhausted_retries_leave_it_sent_only_if_one_device_accepted(
    first: Outcome, expected: tuple[Any, ...]
) -> None:
    settlement = combined(first, provider_error(), attempt_count=4, max_attempts=4)
    assert delivery_status(settlement) == expected


def test_delivered_device_makes_it_delivered() -> None:
    assert combined(invalid_token(), accepted(is_delivered=True)).status is S.DELIVERED


@each_case("others", [[], [timeout()], [invalid_token()], [refused()]])
def test_ambiguous_outcome_is_unknown_while_none_accepted(others: list[Outcome]) -> None:
    settlement = combined(timeout(), *others)
    assert delivery_status(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)
    assert not settlement.uncounted


def test_ambiguous_device_does_not_matter_if_another_accepted() -> None:
    settlement = combined(timeout(), accepted())
    assert delivery_status(settlement) == (S.SENT, None, None)
    ambiguous, _ = settlement.target_attempts
    assert (ambiguous.status, ambiguous.code) == (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT)


@each_case("not_taken", [channel_unavailable(), unreachable()])
def test_untaken_delivery_fails_over_at_once(not_taken: Outcome) -> None:
    settlement = combined(not_taken, accepted(), has_failover=True)
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
    assert settlement.uncounted
    assert settlement.accepted_targets == ("d1",)


def test_outage_beside_a_transient_error_counts_after_the_longer_wait() -> None:
    settlement = combined(channel_unavailable(retry_after=3600), provider_error())
    at = NOON + HOUR + MAX_REFUSED_DELAY
    assert delivery_status(settlement) == (S.PENDING, at, FailureCode.PROVIDER_ERROR)
    assert not settlement.uncounted
    settlement = combined(channel_unavailable(), provider_error())
    assert settlement.next_attempt_at == NOON + 5 * MINUTE


def test_outage_beside_exhausted_retries_stays_pending() -> None:
    settlement = combined(channel_unavailable(), provider_error(), attempt_count=4, max_attempts=4)
    assert delivery_status(settlement) == (
        S.PENDING,
        NOON + 30 * SECOND,
        FailureCode.CHANNEL_UNAVAILABLE,
    )
    assert settlement.uncounted


def test_outage_of_all_devices_ends_at_the_limit() -> None:
    past = {"held_for": MAX_OUTAGE}
    assert combined(channel_unavailable(), **past).status is S.FAILED
    assert combined(channel_unavailable(), accepted(), **past).status is S.SENT


@each_case("outcome", [accepted(), invalid_token(), refused()])
def test_blocked_platform_defers_its_devices(outcome: Outcome) -> None:
    settlement = combined(outcome, blocked_until=NOON + 15 * MINUTE)
    assert delivery_status(settlement) == (
        S.PENDING,
        NOON + 15 * MINUTE,
        FailureCode.CHANNEL_UNAVAILABLE,
    )
    assert settlement.uncounted
    assert "platform" in (settlement.reason or "")


def test_retry_does_not_wait_for_a_blocked_platform() -> None:
    settlement = combined(provider_error(), blocked_until=NOON + HOUR)
    assert delivery_status(settlement) == (S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR)
    assert not settlement.uncounted


@each_case("fields", [{"held_for": MAX_OUTAGE}, {"expires_at": NOON + 15 * MINUTE}])
def test_blocked_platform_is_not_waited_for_beyond_the_limit(fields: dict[str, Any]) -> None:
    held = {"blocked_until": NOON + 15 * MINUTE, **fields}
    assert delivery_status(combined(accepted(), **held)) == (S.SENT, None, None)
    assert delivery_status(combined(invalid_token(), **held)) == (
        S.FAILED,
        None,
        FailureCode.INVALID_RECIPIENT,
    )


def test_device_in_quiet_hours_is_skipped_if_another_accepted() -> None:
    assert combined(accepted(), quiet_hours_end=NOON + HOUR).status is S.SENT


def test_end_of_quiet_hours_beyond_the_expiry_is_a_failure() -> None:
    settlement = combined(invalid_token(), quiet_hours_end=NOON + 8 * HOUR, expires_at=NOON + HOUR)
    assert settlement.status is S.FAILED


def test_unsent_devices_wait_for_the_retry_of_the_others() -> None:
    settlement = combined(provider_error(), device_ids=("d0", "d1"))
    assert settlement.next_attempt_at == NOON + 5 * MINUTE
    assert not settlement.uncounted


def test_unsent_devices_do_not_wait_for_a_platform() -> None:
    settlement = combined(accepted(), device_ids=("d0", "d1"), blocked_until=NOON + HOUR)
    assert settlement.next_attempt_at == NOON


def test_reason_counts_devices_by_error() -> None:
    settlement = combined(invalid_token(), provider_error(), invalid_token())
    assert settlement.reason == "Device token invalid (2 devices); The provider is busy. (1 device)"


def test_reason_shared_by_all_appears_once() -> None:
    assert combined(provider_error(), provider_error()).reason == "The provider is busy."


def test_most_changeable_code_is_reported() -> None:
    assert combined(invalid_token(), refused()).code is FailureCode.REJECTED
    assert combined(refused(), channel_unavailable()).code is FailureCode.CHANNEL_UNAVAILABLE
    assert combined(channel_unavailable(), provider_error()).code is FailureCode.PROVIDER_ERROR
    assert combined(provider_error(), timeout()).code is FailureCode.TIMEOUT


AMBIGUOUS: dict[str, Any] = {
    "ambiguous_targets": ("old",),
    "ambiguous_provider": "fcm",
    "attempt_count": 2,
}
"""Fields of a push whose first attempt had an ambiguous device."""


@each_case(
    "not_taken, wait",
    [
        (provider_error(), 5),
        (rate_limited(retry_after=900), 15 + MAX_REFUSED_DELAY / MINUTE),
        (unreachable(), 5),
        (channel_unavailable(), 0.5),
    ],
)
def test_definite_failures_are_retried_without_ambiguous_devices(
    not_taken: Outcome, wait: float
) -> None:
    settlement = combined(timeout(), not_taken, invalid_token())
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON + wait * MINUTE)
    assert settlement.ambiguous_targets == ("d0",)
    ambiguous, *_ = settlement.target_attempts
    assert (ambiguous.status, ambiguous.code) == (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT)


def test_ambiguous_outcome_determines_the_code() -> None:
    settlement = combined(timeout(), provider_error())
    assert settlement.code is FailureCode.TIMEOUT
    assert settlement.reason == "No response came. (1 device); The provider is busy. (1 device)"


def test_unsent_devices_beside_ambiguous_ones_are_retried_at_once() -> None:
    settlement = combined(timeout(), device_ids=("d0", "d1"))
    assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, NOON)
    assert settlement.ambiguous_targets == ("d0",)


@each_case("skipped", ["blocked_until", "quiet_hours_end"])
def test_skipped_devices_wait_no_longer_than_for_the_receipt(skipped: str) -> None:
    """The type may retry the ambiguous device after the wait for its receipt."""
    for wait, at in ((HOUR, NOON + 5 * MINUTE), (MINUTE, NOON + MINUTE)):
        settlement = combined(timeout(), **{skipped: NOON + wait})
        assert (settlement.status, settlement.next_attempt_at) == (S.PENDING, at)
        assert settlement.ambiguous_targets == ("d0",)
        assert not settlement.uncounted
    urgent = combined(timeout(), **{skipped: NOON + HOUR}, priority=Priority.CRITICAL)
    assert urgent.next_attempt_at == NOON + 30 * SECOND


def test_accepted_device_resolves_ambiguous_ones() -> None:
    settlement = combined(accepted(), **AMBIGUOUS)
    assert delivery_status(settlement) == (S.SENT, None, None)
    assert (settlement.accepted_targets, settlement.ambiguous_targets) == (("d0",), ())
    settlement = combined(accepted(), timeout(), provider_error())
    assert (settlement.status, settlement.ambiguous_targets) == (S.PENDING, ())


@each_case("outcome", [invalid_token(), refused(), provider_error()])
def test_exhausted_others_leave_the_outcome_unknown(outcome: Outcome) -> None:
    settlement = combined(outcome, **AMBIGUOUS | {"attempt_count": 4})
    assert delivery_status(settlement) == (S.UNKNOWN, NOON, FailureCode.OUTCOME_UNKNOWN)
    assert settlement.ambiguous_targets == ()


def test_new_ambiguous_device_waits_for_its_own_receipt() -> None:
    settlement = combined(timeout(), **AMBIGUOUS)
    assert delivery_status(settlement) == (S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT)


@each_case("outcome", [invalid_token(), provider_error()])
def test_ambiguous_device_takes_the_result_of_its_next_attempt(outcome: Outcome) -> None:
    again = {"ambiguous_targets": ("d0",), "attempt_count": 4}
    assert combined(outcome, **AMBIGUOUS | again).status is S.FAILED
