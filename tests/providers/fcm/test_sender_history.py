"""Push by FCM: a token of another sender, and whether the device or our project is wrong."""

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
from tests.support.factories.records import NOON
from tests.support.providers.fcm import Project, push
from tests.support.waiting import LIMIT

SECOND = timedelta(seconds=1)


def refusal(fcm: FCM, token: str = "wrong-sender-1") -> ProviderError:
    with pytest.raises(ProviderError) as error:
        fcm.send(push(token), timeout=LIMIT)
    return error.value


def test_a_project_that_has_taken_nothing_may_be_the_wrong_one(project: Project) -> None:
    error = refusal(project.fcm())
    assert type(error) is ProviderUnavailableError
    assert error.scope == responses.SENDER_SCOPE, "one device holds up nobody else"
    assert error.response is not None
    assert (error.response.status, error.response.code) == (403, "SENDER_ID_MISMATCH")


def test_a_token_is_suspect_at_a_project_that_takes_others(project: Project) -> None:
    fcm = project.fcm()
    fcm.send(push("device-1"), timeout=LIMIT)
    error = refusal(fcm)
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT
    assert error.reason == "Device token belongs to another Firebase project"


def test_so_many_devices_in_a_row_are_no_coincidence(project: Project) -> None:
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
def test_another_refusal_proves_nothing(project: Project, token: str) -> None:
    fcm = project.fcm()
    refusal(fcm, token)
    assert isinstance(refusal(fcm), ProviderUnavailableError)


def test_a_proof_is_good_for_an_hour() -> None:
    assert timedelta(hours=1) == RECENT_SUCCESS_PERIOD
    sender = SenderHistory()
    sender.record_accepted(now=NOON)
    assert sender.classify_mismatch("a", now=NOON + RECENT_SUCCESS_PERIOD) is MismatchCause.DEVICE
    assert (
        sender.classify_mismatch("a", now=NOON + RECENT_SUCCESS_PERIOD + SECOND)
        is MismatchCause.UNKNOWN
    )


def test_proofs_may_come_out_of_order() -> None:
    sender = SenderHistory()
    sender.record_accepted(now=NOON + RECENT_SUCCESS_PERIOD)
    sender.record_accepted(now=NOON)
    assert (
        sender.classify_mismatch("a", now=NOON + 2 * RECENT_SUCCESS_PERIOD) is MismatchCause.DEVICE
    )


def test_one_device_however_often_is_one() -> None:
    sender = SenderHistory()
    assert {sender.classify_mismatch("a", now=NOON) for _ in range(10 * MISMATCH_LIMIT)} == {
        MismatchCause.UNKNOWN
    }


def test_without_any_proof_too_so_many_devices_are_no_coincidence() -> None:
    sender = SenderHistory()
    assert MISMATCH_LIMIT == 5
    blames = [sender.classify_mismatch(str(n), now=NOON) for n in range(MISMATCH_LIMIT + 2)]
    assert blames == [MismatchCause.UNKNOWN] * (MISMATCH_LIMIT - 1) + [MismatchCause.PROJECT] * 3
    assert sender.classify_mismatch("0", now=NOON) is MismatchCause.PROJECT
    sender.record_accepted(now=NOON)
    assert sender.classify_mismatch("0", now=NOON) is MismatchCause.DEVICE


def test_nothing_of_a_token_is_kept() -> None:
    sender = SenderHistory()
    sender.classify_mismatch("secret-token", now=NOON)
    assert "secret-token" not in str(vars(sender))
