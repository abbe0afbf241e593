"""The four errors a provider may raise."""

from domain.errors import (
    RECEIPT_FAILURES,
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from tests.support.tables import each_case

ANSWER = ProviderResponse(status=503, code="busy", excerpt="Try again.")


@each_case(
    "error",
    [
        TransientError("r", code=FailureCode.RATE_LIMITED, response=ANSWER),
        PermanentError("r", code=FailureCode.REJECTED, response=ANSWER),
        InvalidRecipientError("r", action=RecipientAction.SUSPECT, response=ANSWER),
        ProviderUnavailableError("r", response=ANSWER),
    ],
)
def test_every_error_has_reason_and_response(error: ProviderError) -> None:
    assert error.reason == str(error) == "r"
    assert error.response == ANSWER


def test_error_defaults_to_certain_without_retry_after() -> None:
    error = TransientError("r", code=FailureCode.PROVIDER_ERROR)
    assert not error.is_ambiguous
    assert error.retry_after is None
    assert error.response is None


def test_invalid_recipient_is_permanent_with_its_code() -> None:
    error = InvalidRecipientError("r", action=RecipientAction.DEACTIVATE)
    assert isinstance(error, PermanentError)
    assert error.code is FailureCode.INVALID_RECIPIENT
    assert error.action is RecipientAction.DEACTIVATE


def test_unavailable_provider_is_neither_permanent_nor_transient() -> None:
    error = ProviderUnavailableError("r", retry_after=30.0)
    assert not isinstance(error, PermanentError | TransientError)
    assert error.code is FailureCode.CHANNEL_UNAVAILABLE
    assert error.retry_after == 30.0


def test_codes_are_their_lower_case_names() -> None:
    assert all(code.value == code.name.lower() for code in FailureCode)


def test_receipt_failures_are_listed() -> None:
    assert {code.value for code in RECEIPT_FAILURES} == {
        "bounced",
        "blocked",
        "dropped",
        "destination_disabled",
        "filtered",
        "sender_unregistered",
        "reported_failed",
    }
