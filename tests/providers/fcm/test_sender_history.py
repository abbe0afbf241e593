"""Sender mismatches: an error of the device or of the project."""

from datetime import timedelta

import pytest

from domain.errors import (
    InvalidRecipientError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
)
from providers.fcm import responses
from providers.fcm.provider import FCM
from providers.fcm.responses import (
    MISMATCH_LIMIT,
    RECENT_SUCCESS_PERIOD,
    MismatchCause,
    SenderHistory,
)
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.fcm import Project, push
from tests.support.waiting import LIMIT

SECOND = timedelta(seconds=1)


def refusal(fcm: FCM, token: str = "wrong-sender-1") -> ProviderError:
    with pytest.raises(ProviderError) as error:
        fcm.send(push(token), timeout=LIMIT)
    return error.value


def test_mismatch_at_an_unproven_project_is_about_the_project(project: Project) -> None:
    error = refusal(project.fcm())
    assert type(error) is ProviderUnavailableError
    assert error.scope == responses.SENDER_SCOPE, "other devices are unaffected"
    assert error.response is not None
    assert (error.response.status, error.response.code) == (403, "SENDER_ID_MISMATCH")


def test_mismatch_at_a_proven_project_is_about_the_token(project: Project) -> None:
    fcm = project.fcm()
    fcm.send(push("device-1"), timeout=LIMIT)
    error = refusal(fcm)
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT
    assert error.reason == "Device token belongs to another Firebase project"


def test_several_mismatches_in_a_row_are_about_the_project(project: Project) -> None:
    fcm = project.fcm()
    fcm.send(push("device-1"), timeout=LIMIT)
    errors = [refusal(fcm, f"wrong-sender-{n}") for n in range(MISMATCH_LIMIT)]
    assert [type(e) for e in errors] == [InvalidRecipientError] * (MISMATCH_LIMIT - 1) + [
        ProviderUnavailableError
    ]
    (*_, last) = errors
    assert isinstance(last, ProviderUnavailableError)
    assert last.scope is None
    fcm.send(push("device-1"), timeout=LIMIT)
    assert isinstance(refusal(fcm), InvalidRecipientError)


@pytest.mark.parametrize("token", ["unregistered-1", "invalid-1", "ratelimit-1", "bad-field-1"])
def test_other_refusal_proves_nothing(project: Project, token: str) -> None:
    fcm = project.fcm()
    refusal(fcm, token)
    assert isinstance(refusal(fcm), ProviderUnavailableError)


def test_proof_lasts_an_hour() -> None:
    assert timedelta(hours=1) == RECENT_SUCCESS_PERIOD
    sender = SenderHistory()
    sender.record_accepted(now=FIXED_NOON)
    assert (
        sender.classify_mismatch("a", now=FIXED_NOON + RECENT_SUCCESS_PERIOD)
        is MismatchCause.DEVICE
    )
    assert (
        sender.classify_mismatch("a", now=FIXED_NOON + RECENT_SUCCESS_PERIOD + SECOND)
        is MismatchCause.UNKNOWN
    )


def test_proofs_may_come_out_of_order() -> None:
    sender = SenderHistory()
    sender.record_accepted(now=FIXED_NOON + RECENT_SUCCESS_PERIOD)
    sender.record_accepted(now=FIXED_NOON)
    assert (
        sender.classify_mismatch("a", now=FIXED_NOON + 2 * RECENT_SUCCESS_PERIOD)
        is MismatchCause.DEVICE
    )


def test_one_device_counts_once() -> None:
    sender = SenderHistory()
    assert {sender.classify_mismatch("a", now=FIXED_NOON) for _ in range(10 * MISMATCH_LIMIT)} == {
        MismatchCause.UNKNOWN
    }


def test_several_devices_without_proof_are_about_the_project() -> None:
    sender = SenderHistory()
    assert MISMATCH_LIMIT == 5
    causes = [sender.classify_mismatch(str(n), now=FIXED_NOON) for n in range(MISMATCH_LIMIT + 2)]
    assert causes == [MismatchCause.UNKNOWN] * (MISMATCH_LIMIT - 1) + [MismatchCause.PROJECT] * 3
    assert sender.classify_mismatch("0", now=FIXED_NOON) is MismatchCause.PROJECT
    sender.record_accepted(now=FIXED_NOON)
    assert sender.classify_mismatch("0", now=FIXED_NOON) is MismatchCause.DEVICE


def test_token_is_not_kept() -> None:
    sender = SenderHistory()
    sender.classify_mismatch("secret-token", now=FIXED_NOON)
    assert "secret-token" not in str(vars(sender))
