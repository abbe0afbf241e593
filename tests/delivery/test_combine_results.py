"""What a provider's answer makes of a delivery."""

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
from domain.states import DeliveryStatus, Priority
from notifications.store import Settlement
from providers.contract import SendResult
from tests.support.factories.records import NOON, claimed

S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ANSWER = ProviderResponse(status=503, code="busy", excerpt="Try again.")


def settled(result: SendResult | ProviderError, **fields: object) -> Settlement:
    one = TargetResult(
        device_id=None, outcome=result, started_at=NOON, finished_at=NOON, duration_ms=12
    )
    return combine_results(claimed(**fields), [one], provider="sendgrid", now=NOON, jitter=0)


def busy(**details: Any) -> TransientError:
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
        (busy(), S.PENDING, NOON + 5 * MINUTE, FailureCode.PROVIDER_ERROR),
        (
            busy(code=FailureCode.RATE_LIMITED, retry_after=900),
            *(S.PENDING, NOON + 15 * MINUTE, FailureCode.RATE_LIMITED),
        ),
        (
            busy(code=FailureCode.CONNECTION_FAILED),
            *(S.PENDING, NOON + 5 * MINUTE, FailureCode.CONNECTION_FAILED),
        ),
        (
            busy(code=FailureCode.TIMEOUT, is_ambiguous=True),
            *(S.UNKNOWN, NOON + 5 * MINUTE, FailureCode.TIMEOUT),
        ),
        (
            busy(code=FailureCode.CONNECTION_LOST, is_ambiguous=True),
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
    settlement = settled(busy(), attempt_count=4, max_attempts=4)
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
    settlement = settled(busy(), priority=Priority.CRITICAL)
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
    settlement = settled(busy(response=answer))
    assert settlement.answer.provider == "sendgrid"
    assert settlement.answer.response == kept
    assert settlement.answer.message_id is None
    assert settlement.reason == "busy"


def test_the_providers_own_id_is_kept() -> None:
    result = SendResult(provider_id="sg-1", response=ProviderResponse(status=202))
    assert settled(result).answer.message_id == "sg-1"
