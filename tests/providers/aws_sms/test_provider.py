"""Texts to AWS, and its recorded answers."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    RecipientAction,
    TransientError,
)
from domain.states import Category
from providers.aws_responses import COMMON_RULES
from providers.aws_sms.responses import RULES
from providers.contract import NotAttemptedError, SendResult, SendTarget
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.aws_sms import (
    MESSAGE_ID,
    PHONE,
    REFERENCE,
    account,
    answer,
    attempt,
    refused,
    sms,
)
from tests.support.tables import each_case

F = FailureCode
ACCEPTED = answer(200, {"MessageId": MESSAGE_ID})
CONFLICT, VALIDATION = "ConflictException", "ValidationException"


def test_text_has_its_reference_in_the_context() -> None:
    result, [(_, members)] = attempt(sms(), ACCEPTED)
    assert isinstance(result, SendResult)
    assert (result.provider_id, result.response.status) == (MESSAGE_ID, 200)
    assert members == {
        "DestinationPhoneNumber": PHONE,
        "MessageBody": "Your code is 123456.",
        "MessageType": "TRANSACTIONAL",
        "Context": {"ref": REFERENCE},
        "OriginationIdentity": "pool-1",
        "ConfigurationSetName": "notify",
    }


def test_request_names_its_operation_and_is_signed_for_the_region() -> None:
    _, [(head, _)] = attempt(sms(), ACCEPTED, region="us-west-2")
    assert head.startswith("POST / HTTP/1.1")
    assert "X-Amz-Target: PinpointSMSVoiceV2.SendTextMessage" in head
    assert "Content-Type: application/x-amz-json-1.0" in head
    assert re.search(r"Credential=AKIA\w+/20261121/us-west-2/sms-voice/aws4_request", head)


def test_settings_of_the_account_are_members() -> None:
    fields = {"protect_configuration": "protect-1", "max_price": "0.25"}
    _, [(_, members)] = attempt(sms(), ACCEPTED, sender="", configuration_set="", **fields)
    assert "OriginationIdentity" not in members
    assert "ConfigurationSetName" not in members
    assert (members["ProtectConfigurationId"], members["MaxPrice"]) == ("protect-1", "0.25")


def test_marketing_is_promotional() -> None:
    _, [(_, members)] = attempt(sms(category=Category.MARKETING), ACCEPTED)
    assert members["MessageType"] == "PROMOTIONAL"


@each_case("seconds, lifetime", [(0.5, 5), (60, 60), (300_000, 259_200)])
def test_text_lives_until_it_expires_within_the_limits_of_aws(
    seconds: float, lifetime: int
) -> None:
    message = sms(expires_at=FIXED_NOON + timedelta(seconds=seconds))
    _, [(_, members)] = attempt(message, ACCEPTED)
    assert members["TimeToLive"] == lifetime


def test_expired_text_is_not_sent() -> None:
    error, requests = attempt(sms(expires_at=FIXED_NOON))
    assert isinstance(error, NotAttemptedError)
    assert requests == []


def test_half_of_an_emoji_is_a_failure_of_the_text() -> None:
    error, requests = attempt(sms("\ud83d"))
    assert isinstance(error, PermanentError)
    assert (error.code, requests) == (F.RENDER_FAILED, [])


def test_scope_is_the_country_of_the_number() -> None:
    targets = (SendTarget(address=PHONE), SendTarget(address="+8816123456789"))
    assert [account().scope(target) for target in targets] == ["GB", ""]


Answer = tuple[str, str, str, type[ProviderError], FailureCode]
UNAVAILABLE = F.CHANNEL_UNAVAILABLE
SUSPECT, PERMANENT = InvalidRecipientError, PermanentError
RECORDED: list[Answer] = [
    ("ThrottlingException", "", "", TransientError, F.RATE_LIMITED),
    ("InternalServerException", "", "", TransientError, F.PROVIDER_ERROR),
    ("ResourceNotFoundException", "", "", ProviderUnavailableError, UNAVAILABLE),
    ("AccessDeniedException", "ACCOUNT_DISABLED", "", ProviderUnavailableError, UNAVAILABLE),
    (
        "AccessDeniedException",
        "INSUFFICIENT_ACCOUNT_REPUTATION",
        "",
        ProviderUnavailableError,
        UNAVAILABLE,
    ),
    (
        "ServiceQuotaExceededException",
        "DAILY_DESTINATION_CALL_LIMIT",
        "",
        TransientError,
        F.RECIPIENT_RATE_LIMITED,
    ),
    (
        "ServiceQuotaExceededException",
        "MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT",
        "",
        ProviderUnavailableError,
        UNAVAILABLE,
    ),
    (
        "ServiceQuotaExceededException",
        "POOLS_PER_ACCOUNT",
        "",
        ProviderUnavailableError,
        UNAVAILABLE,
    ),
    (CONFLICT, "DESTINATION_PHONE_NUMBER_OPTED_OUT", "", SUSPECT, F.INVALID_RECIPIENT),
    *(
        (CONFLICT, reason, "", ProviderUnavailableError, UNAVAILABLE)
        for reason in (
            "DESTINATION_PHONE_NUMBER_NOT_VERIFIED",
            "NO_ORIGINATION_IDENTITIES_FOUND",
            "MESSAGE_TYPE_MISMATCH",
            "RESOURCE_NOT_ACTIVE",
            "SOMETHING_NEW",
            "",
        )
    ),
    *(
        (CONFLICT, reason, "", PERMANENT, F.DESTINATION_DISABLED)
        for reason in (
            "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
            "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
        )
    ),
    *(
        (VALIDATION, reason, "", PERMANENT, F.DESTINATION_DISABLED)
        for reason in (
            "COUNTRY_NOT_ENABLED",
            "DESTINATION_COUNTRY_BLOCKED",
            "INTERNATIONAL_SENDING_NOT_SUPPORTED",
            "COUNTRY_CODE_MISMATCH",
        )
    ),
    *(
        (VALIDATION, reason, "", ProviderUnavailableError, UNAVAILABLE)
        for reason in (
            "INVALID_IDENTITY_FOR_DESTINATION_COUNTRY",
            "SENDER_ID_NOT_REGISTERED",
            "SENDER_ID_NOT_SUPPORTED",
            "SENDER_ID_REQUIRES_REGISTRATION",
        )
    ),
    (VALIDATION, "CHANNEL_NOT_ENABLED", "", ProviderUnavailableError, UNAVAILABLE),
    (VALIDATION, "RESOURCE_NOT_ACCESSIBLE", "", ProviderUnavailableError, UNAVAILABLE),
    (VALIDATION, "PRICE_OVER_THRESHOLD", "", PERMANENT, F.REJECTED),
    (VALIDATION, "MAXIMUM_SIZE_EXCEEDED", "", PERMANENT, F.TOO_LARGE),
    (VALIDATION, "INVALID_PARAMETER", "DestinationPhoneNumber", SUSPECT, F.INVALID_RECIPIENT),
    (VALIDATION, "", "destinationPhoneNumber", SUSPECT, F.INVALID_RECIPIENT),
    *(
        (VALIDATION, "FIELD_VALIDATION_FAILED", member, ProviderUnavailableError, UNAVAILABLE)
        for member in ("OriginationIdentity", "ConfigurationSetName", "ProtectConfigurationId")
    ),
    (VALIDATION, "FIELD_VALIDATION_FAILED", "MessageBody", PERMANENT, F.REJECTED),
    ("OddException", "", "", PERMANENT, F.REJECTED),
]


@each_case("name, reason, member, kind, code", RECORDED)
def test_answer_has_its_class(
    name: str, reason: str, member: str, kind: type[ProviderError], code: FailureCode
) -> None:
    members: dict[str, Any] = {"Reason": reason} if reason else {}
    if member:
        members["Fields"] = [{"Name": member, "Message": f"{PHONE} is none"}]
    status = 500 if name == "InternalServerException" else 400
    error: Any = attempt(sms(), refused(name, status=status, **members))[0]
    assert type(error) is kind
    assert error.code is code
    assert not getattr(error, "is_ambiguous", False)
    assert error.response.code == (reason or name)
    assert PHONE not in f"{error}{error.response}"


def test_every_rule_has_a_recorded_answer() -> None:
    conditions = {
        (name, reason, member)
        for rule in RULES
        for name in rule.names
        for reason in rule.reasons or [""]
        for member in rule.members or [""]
    }
    recorded = {(name, reason, "") for name, reason, *_ in RECORDED}
    recorded |= {(name, "", member) for name, _, member, *_ in RECORDED}
    assert conditions <= recorded
    assert {name for name, *_ in RECORDED} - {"OddException"} <= {
        name for rule in (*RULES, *COMMON_RULES) for name in rule.names
    }


def test_opt_out_suppresses_the_number() -> None:
    opted_out = refused(CONFLICT, Reason="DESTINATION_PHONE_NUMBER_OPTED_OUT")
    error, _ = attempt(sms(), opted_out)
    assert error.action is RecipientAction.UNSUBSCRIBE


@each_case(
    "reason, scope",
    [
        ("NO_ORIGINATION_IDENTITIES_FOUND", "GB"),
        ("DESTINATION_PHONE_NUMBER_NOT_VERIFIED", None),
        ("MESSAGE_TYPE_MISMATCH", None),
    ],
)
def test_refusal_of_some_recipients_does_not_stop_all(reason: str, scope: str | None) -> None:
    """https://github.com/department-of-veterans-affairs/notification-api/pull/2633"""
    error, _ = attempt(sms(scope="GB"), refused(CONFLICT, Reason=reason))
    assert (error.reach, error.scope) == (Reach.UNCERTAIN, scope)


def test_missing_sender_for_a_number_without_a_country_concerns_no_scope() -> None:
    error, _ = attempt(sms(scope=""), refused(CONFLICT, Reason="NO_ORIGINATION_IDENTITIES_FOUND"))
    assert (error.reach, error.scope) == (Reach.UNCERTAIN, None)


@each_case("members", [{"Reason": 7}, {"Fields": "x"}, {"Fields": [7, {}, {"Name": 1}]}])
def test_odd_error_is_classified_by_its_name(members: dict[str, Any]) -> None:
    error, _ = attempt(sms(), refused(VALIDATION, **members))
    assert isinstance(error, PermanentError)
    assert error.response is not None
    assert error.response.code == VALIDATION


@each_case(
    "body",
    [
        answer(200, {}),
        answer(200, {"MessageId": ""}),
        answer(200, {"MessageId": "a b"}),
        answer(200, {"MessageId": 7}),
        answer(202, {"MessageId": MESSAGE_ID}),
        refused("ThrottlingException", status=200),
    ],
)
def test_odd_success_is_ambiguous(body: bytes) -> None:
    error, _ = attempt(sms(), body)
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


def test_account_differs_by_key_region_and_sender() -> None:
    own = account()
    others = (
        replace(own, region="us-east-1"),
        replace(own, sender="pool-2"),
        replace(own, credentials=replace(own.credentials, access_key_id="AKIAOTHER")),
    )
    assert len({each.account for each in (own, *others)}) == 4
