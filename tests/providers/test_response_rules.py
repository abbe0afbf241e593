from hypothesis import given
from hypothesis import strategies as st

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
from providers.response_rules import ResponseKind, ResponseRule, build_error, classify
from tests.support.tables import each_case

TABLE = [
    ResponseRule(
        statuses=(400,), field=r"to\..*", kind=ResponseKind.INVALID_RECIPIENT, reason="Nobody."
    ),
    ResponseRule(
        statuses=(400,), kind=ResponseKind.PERMANENT, code=FailureCode.REJECTED, reason="Refused."
    ),
    ResponseRule(statuses=range(300, 400), kind=ResponseKind.UNAVAILABLE, reason="Elsewhere."),
    ResponseRule(
        statuses=(429,),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.RATE_LIMITED,
        reason="Slower.",
    ),
    ResponseRule(
        statuses=(504,), kind=ResponseKind.AMBIGUOUS, code=FailureCode.TIMEOUT, reason="Silent."
    ),
]


def error(status: int, *fields: str, retry_after: float | None = None) -> ProviderError:
    return classify(
        TABLE, response=ProviderResponse(status=status), fields=fields, retry_after=retry_after
    )


@each_case(
    "status, fields, kind, code",
    [
        (400, ["to.email"], InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        (400, ["subject", "to.email"], InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        (400, ["subject"], PermanentError, FailureCode.REJECTED),
        (400, ["into.email"], PermanentError, FailureCode.REJECTED),
        (400, [""], PermanentError, FailureCode.REJECTED),
        (400, [], PermanentError, FailureCode.REJECTED),
        (302, [], ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (429, [], TransientError, FailureCode.RATE_LIMITED),
        (504, [], TransientError, FailureCode.TIMEOUT),
        (418, [], PermanentError, FailureCode.REJECTED),
        (499, ["to.email"], PermanentError, FailureCode.REJECTED),
        *((status, [], TransientError, FailureCode.PROVIDER_ERROR) for status in (500, 599, 200)),
        *((status, [], TransientError, FailureCode.PROVIDER_ERROR) for status in (100, 999)),
    ],
)
def test_first_matching_rule_decides(
    status: int, fields: list[str], kind: type[ProviderError], code: FailureCode
) -> None:
    found = error(status, *fields)
    assert type(found) is kind
    assert found.code is code


@each_case("status", [200, 204, 100, 304 - 204, 600, 999])
def test_undocumented_answer_is_ambiguous(status: int) -> None:
    found = error(status)
    assert isinstance(found, TransientError)
    assert found.is_ambiguous


@given(status=st.integers(0, 999), fields=st.lists(st.text(max_size=20), max_size=3))
def test_every_answer_has_its_status_in_the_reason(status: int, fields: list[str]) -> None:
    found = error(status, *fields)
    assert found.reason.endswith(f"({status})")
    assert found.response == ProviderResponse(status=status)


@each_case("status, kind", [(429, TransientError), (302, ProviderUnavailableError)])
def test_retry_after_is_passed_on(
    status: int, kind: type[TransientError | ProviderUnavailableError]
) -> None:
    found = error(status, retry_after=7.5)
    assert isinstance(found, kind)
    assert found.retry_after == 7.5


def test_ambiguous_outcome_has_no_pause() -> None:
    found = error(504, retry_after=7.5)
    assert isinstance(found, TransientError)
    assert found.retry_after is None


def test_error_has_the_recipient_action() -> None:
    for action in RecipientAction:
        found = build_error(
            ResponseKind.INVALID_RECIPIENT,
            "Gone.",
            code=None,
            action=action,
            response=ProviderResponse(status=410),
            retry_after=None,
        )
        assert isinstance(found, InvalidRecipientError)
        assert found.action is action
