"""Messages to Twilio, and its recorded responses."""

from datetime import timedelta
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderUnavailableError,
    Reach,
    RecipientAction,
    TransientError,
)
from providers.contract import NotAttemptedError, ScopedProvider, SendResult, SendTarget
from providers.twilio.responses import CODE_RULES, FAILURE_RULES
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.twilio import (
    CALLBACK,
    PHONE,
    REFERENCE,
    SERVICE,
    SID,
    account,
    answer,
    attempt,
    created,
    refused,
    sms,
)
from tests.support.tables import each_case

F = FailureCode


def test_message_has_twilios_parameters() -> None:
    result, [parameters] = attempt(sms(), created())
    assert isinstance(result, SendResult)
    assert (result.provider_id, result.response.code, result.units) == (SID, "accepted", None)
    assert parameters == {
        "To": PHONE,
        "MessagingServiceSid": SERVICE,
        "Body": "Your code is 123456.",
        "StatusCallback": f"{CALLBACK}?ref={REFERENCE}#rc=3&rp=5xx,ct,rt",
    }


@each_case(
    "sender, name",
    [
        (SERVICE, "MessagingServiceSid"),
        ("+15005550006", "From"),
        ("Shop", "From"),
        ("MG Motor", "From"),
    ],
)
def test_sender_is_a_service_a_number_or_a_name(sender: str, name: str) -> None:
    _, [parameters] = attempt(sms(), created(), sender=sender)
    assert {key: parameters.get(key) for key in ("MessagingServiceSid", "From")} == {
        "MessagingServiceSid": None,
        "From": None,
    } | {name: sender}


def test_message_without_a_reachable_address_asks_for_no_callback() -> None:
    _, [parameters] = attempt(sms(), created(), callback_url="")
    assert "StatusCallback" not in parameters


@each_case(
    "seconds, period",
    [(None, None), (0.5, "1"), (59.9, "59"), (36_000, "36000"), (86_400, "36000")],
)
def test_validity_ends_with_the_message(seconds: float | None, period: str | None) -> None:
    expires_at = None if seconds is None else FIXED_NOON + timedelta(seconds=seconds)
    _, [parameters] = attempt(sms(expires_at=expires_at), created())
    assert parameters.get("ValidityPeriod") == period


@each_case(
    "category, check", [("security", None), ("transactional", None), ("marketing", "disable")]
)
def test_only_a_campaign_is_sent_without_protection_from_pumping(
    category: str, check: str | None
) -> None:
    _, [parameters] = attempt(sms(category=category), created())
    assert parameters.get("RiskCheck") == check


def test_expired_message_is_not_sent() -> None:
    error, requests = attempt(sms(expires_at=FIXED_NOON), created())
    assert isinstance(error, NotAttemptedError)
    assert requests == []


def test_text_that_is_no_text_is_not_sent() -> None:
    error, requests = attempt(sms("Half an emoji: \ud83d"), created())
    assert (type(error), error.code, requests) == (PermanentError, F.RENDER_FAILED, [])


@each_case(
    "segments, units",
    [("2", 2), ("0", None), (None, None), (3, None), ("many", None), ("9999", None)],
)
def test_parts_are_counted_by_twilio_once_it_has_a_sender(segments: Any, units: int | None) -> None:
    result, _ = attempt(sms(), created(num_segments=segments))
    assert result.units == units


@each_case(
    "body, status",
    [
        ({}, 201),
        ({"sid": None}, 201),
        ({"sid": "CA" + "0" * 32}, 201),
        ({"sid": SID}, 202),
        ([], 201),
        ("created", 200),
    ],
)
def test_other_success_is_ambiguous(body: Any, status: int) -> None:
    error, _ = attempt(sms(), answer(body, status))
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


@each_case(
    "status, code, expected",
    [
        ("failed", 30450, F.FILTERED),
        ("failed", 30034, F.SENDER_UNREGISTERED),
        ("undelivered", 30005, F.REPORTED_FAILED),
        ("failed", 99999, F.REJECTED),
        ("canceled", None, F.REJECTED),
    ],
)
def test_message_that_failed_when_it_was_created_is_refused(
    status: str, code: int | None, expected: FailureCode
) -> None:
    """No callback follows about the first status of a message."""
    error, _ = attempt(sms(), created(status=status, error_code=code))
    assert (type(error), error.code) == (PermanentError, expected)


UNAVAILABLE = ProviderUnavailableError
RULES: dict[int, tuple[type[Exception], FailureCode, Reach]] = {
    20429: (TransientError, F.RATE_LIMITED, Reach.ACCOUNT),
    21611: (TransientError, F.RATE_LIMITED, Reach.ACCOUNT),
    14107: (TransientError, F.RECIPIENT_RATE_LIMITED, Reach.RECIPIENT),
    **dict.fromkeys((20500, 20503), (TransientError, F.PROVIDER_ERROR, Reach.ACCOUNT)),
    **dict.fromkeys(
        (20003, 20005, 20403, 20404, 20426, 21212, 21603, 21607, 21609),
        (UNAVAILABLE, F.CHANNEL_UNAVAILABLE, Reach.ACCOUNT),
    ),
    **dict.fromkeys(
        (21701, 21702, 21703, 21705, 21708, 21709),
        (UNAVAILABLE, F.CHANNEL_UNAVAILABLE, Reach.ACCOUNT),
    ),
    **dict.fromkeys((21606, 21608, 21704), (UNAVAILABLE, F.CHANNEL_UNAVAILABLE, Reach.UNCERTAIN)),
    **dict.fromkeys((21408, 21612), (PermanentError, F.DESTINATION_DISABLED, Reach.RECIPIENT)),
    **dict.fromkeys(
        (21211, 21265, 21266, 21604, 21610, 21614),
        (InvalidRecipientError, F.INVALID_RECIPIENT, Reach.RECIPIENT),
    ),
    **dict.fromkeys((30610, 30640), (PermanentError, F.FILTERED, Reach.RECIPIENT)),
    21617: (PermanentError, F.TOO_LARGE, Reach.RECIPIENT),
    **dict.fromkeys(
        (20001, 21602, 21618, 21624, 90007), (PermanentError, F.REJECTED, Reach.RECIPIENT)
    ),
}


def test_every_code_is_covered() -> None:
    assert RULES.keys() == {code for rule in CODE_RULES for code in rule.codes}


@each_case("code", RULES)
def test_code_decides_whatever_the_status(code: int) -> None:
    for status in (400, 401, 429, 500, 200):
        error, _ = attempt(sms(), refused(code, status=status))
        assert (type(error), error.code, error.reach) == RULES[code]
        assert error.response.code == str(code)
        assert f"({code})" in error.reason
        assert not getattr(error, "is_ambiguous", False)


@each_case(
    "code, action",
    [
        (21610, RecipientAction.UNSUBSCRIBE),
        (21211, RecipientAction.SUSPECT),
        (21614, RecipientAction.SUSPECT),
    ],
)
def test_stop_suppresses_and_an_invalid_number_is_suspect(
    code: int, action: RecipientAction
) -> None:
    error, _ = attempt(sms(), refused(code))
    assert error.action is action


@each_case(
    "status, body, error_class, code",
    [
        (429, {"code": 29999}, TransientError, F.RATE_LIMITED),
        (429, {}, TransientError, F.RATE_LIMITED),
        (408, {}, TransientError, F.PROVIDER_ERROR),
        (401, {"code": 29999}, UNAVAILABLE, F.CHANNEL_UNAVAILABLE),
        (403, {"code": 29999}, UNAVAILABLE, F.CHANNEL_UNAVAILABLE),
        (407, {}, UNAVAILABLE, F.CHANNEL_UNAVAILABLE),
        (302, {}, UNAVAILABLE, F.CHANNEL_UNAVAILABLE),
        (404, {}, UNAVAILABLE, F.CHANNEL_UNAVAILABLE),
        (404, {"code": 29999}, PermanentError, F.REJECTED),
        (400, {"code": 29999}, PermanentError, F.REJECTED),
        (400, {"code": True}, PermanentError, F.REJECTED),
        (400, {"code": "21610"}, InvalidRecipientError, F.INVALID_RECIPIENT),
        (500, {"code": 10**9}, TransientError, F.PROVIDER_ERROR),
        (503, {}, TransientError, F.PROVIDER_ERROR),
    ],
)
def test_status_decides_without_a_known_code(
    status: int, body: Any, error_class: type[Exception], code: FailureCode
) -> None:
    error, _ = attempt(sms(), answer(body, status))
    assert (type(error), error.code) == (error_class, code)


@each_case(
    "code, scope, expected",
    [
        (21606, "PT", ("PT", Reach.UNCERTAIN)),
        (21704, "PT", ("PT", Reach.UNCERTAIN)),
        (21607, "PT", (None, Reach.ACCOUNT)),
        (21606, None, (None, Reach.UNCERTAIN)),
        (21608, "PT", (None, Reach.UNCERTAIN)),
        (20003, "PT", (None, Reach.ACCOUNT)),
        (20429, "PT", (None, Reach.ACCOUNT)),
    ],
)
def test_missing_sender_concerns_one_country(
    code: int, scope: str | None, expected: tuple[str | None, Reach]
) -> None:
    error, _ = attempt(sms(scope=scope), refused(code))
    assert (error.scope, error.reach) == expected


@each_case("number, country", [("+351912345678", "PT"), (PHONE, "GB"), ("+88216123456", "")])
def test_scope_is_the_country_of_the_number(number: str, country: str) -> None:
    provider = account()
    assert isinstance(provider, ScopedProvider)
    assert provider.scope(SendTarget(address=number)) == country


def test_pause_is_that_of_retry_after() -> None:
    error, _ = attempt(sms(), refused(20429, status=429, headers=("Retry-After: 7",)))
    assert error.retry_after == 7


def test_error_has_no_number_and_no_secret() -> None:
    error, _ = attempt(sms(), refused(21211))
    provider = account()
    shown = f"{error} {error.response} {provider!r} {provider.account}"
    for hidden in (PHONE, PHONE[1:], "the-api-secret", *provider.auth_tokens):
        assert hidden not in shown


def test_account_is_another_for_another_sender() -> None:
    accounts = {account().account, account(sender="Shop").account, account(password="x").account}
    assert len(accounts) == 3


def test_codes_of_failures_and_of_refusals_are_not_the_same() -> None:
    failures = [code for rule in FAILURE_RULES for code in rule.codes]
    assert len(failures) == len(set(failures))
    assert RULES.keys().isdisjoint(failures)


@pytest.mark.parametrize("text", ["é€{}[]", "🙂", "a+b&c=d%20 \r\n", "“x”"])
def test_text_arrives_as_it_is(text: str) -> None:
    _, [parameters] = attempt(sms(text), created())
    assert parameters["Body"] == text
