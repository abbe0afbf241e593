"""Classifies the errors of SendTextMessage by their names and reasons."""

from collections.abc import Sequence

from domain.errors import FailureCode, Reach, RecipientAction

from ..aws_responses import ErrorRule
from ..response_rules import ResponseKind as Kind

CONFLICT = ("ConflictException",)
VALIDATION = ("ValidationException",)
QUOTA = ("ServiceQuotaExceededException",)
DENIED = ("AccessDeniedException",)

RULES: Sequence[ErrorRule] = (
    ErrorRule(
        QUOTA,
        Kind.TRANSIENT,
        "AWS's daily limit for this recipient is reached.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        reasons=("DAILY_DESTINATION_CALL_LIMIT",),
        reach=Reach.RECIPIENT,
    ),
    ErrorRule(
        QUOTA,
        Kind.UNAVAILABLE,
        "The monthly spend limit of the AWS account is reached.",
        reasons=("MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT",),
    ),
    ErrorRule(QUOTA, Kind.UNAVAILABLE, "A limit of the AWS account is reached."),
    ErrorRule(
        DENIED,
        Kind.UNAVAILABLE,
        "AWS has disabled the account's SMS, or its reputation is too low.",
        reasons=("ACCOUNT_DISABLED", "INSUFFICIENT_ACCOUNT_REPUTATION"),
    ),
    ErrorRule(
        ("ResourceNotFoundException",),
        Kind.UNAVAILABLE,
        "AWS doesn't know the sender, the configuration set, or the protect configuration.",
    ),
    ErrorRule(
        CONFLICT,
        Kind.INVALID_RECIPIENT,
        "The recipient opted out with STOP.",
        reasons=("DESTINATION_PHONE_NUMBER_OPTED_OUT",),
        action=RecipientAction.UNSUBSCRIBE,
    ),
    ErrorRule(
        CONFLICT,
        Kind.UNAVAILABLE,
        "In AWS's sandbox, SMS go only to numbers that were verified there.",
        reasons=("DESTINATION_PHONE_NUMBER_NOT_VERIFIED",),
        reach=Reach.UNCERTAIN,
    ),
    ErrorRule(
        CONFLICT,
        Kind.UNAVAILABLE,
        "The AWS account or its pool has no sender for this country.",
        # Also for one country alone, of a pool whose other numbers send.
        reasons=("NO_ORIGINATION_IDENTITIES_FOUND",),
        reach=Reach.UNCERTAIN,
        is_of_scope=True,
    ),
    ErrorRule(
        CONFLICT,
        Kind.PERMANENT,
        "A protect configuration of AWS blocks the recipient's country or number.",
        FailureCode.DESTINATION_DISABLED,
        reasons=(
            "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
            "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
        ),
    ),
    ErrorRule(
        CONFLICT,
        Kind.UNAVAILABLE,
        "The sender isn't for this type of message: transactional, or promotional.",
        reasons=("MESSAGE_TYPE_MISMATCH",),
        reach=Reach.UNCERTAIN,
    ),
    ErrorRule(CONFLICT, Kind.UNAVAILABLE, "The sender can't send now."),
    ErrorRule(
        VALIDATION,
        Kind.PERMANENT,
        "The recipient's country isn't enabled.",
        FailureCode.DESTINATION_DISABLED,
        reasons=(
            "COUNTRY_NOT_ENABLED",
            "DESTINATION_COUNTRY_BLOCKED",
            "INTERNATIONAL_SENDING_NOT_SUPPORTED",
            "COUNTRY_CODE_MISMATCH",
        ),
    ),
    ErrorRule(
        VALIDATION,
        Kind.UNAVAILABLE,
        "The sender isn't registered for the recipient's country, or can't send to it.",
        # Another provider may have a sender there.
        reasons=(
            "INVALID_IDENTITY_FOR_DESTINATION_COUNTRY",
            "SENDER_ID_NOT_REGISTERED",
            "SENDER_ID_NOT_SUPPORTED",
            "SENDER_ID_REQUIRES_REGISTRATION",
        ),
        reach=Reach.UNCERTAIN,
        is_of_scope=True,
    ),
    ErrorRule(
        VALIDATION,
        Kind.UNAVAILABLE,
        "The AWS account's SMS aren't enabled, or another account owns the sender.",
        reasons=("CHANNEL_NOT_ENABLED", "RESOURCE_NOT_ACCESSIBLE"),
    ),
    ErrorRule(
        VALIDATION,
        Kind.PERMANENT,
        "The text costs more than AWS_SMS_MAX_PRICE.",
        reasons=("PRICE_OVER_THRESHOLD",),
    ),
    ErrorRule(
        VALIDATION,
        Kind.PERMANENT,
        "The text exceeds AWS's limit of 1,600 characters.",
        FailureCode.TOO_LARGE,
        reasons=("MAXIMUM_SIZE_EXCEEDED",),
    ),
    ErrorRule(
        VALIDATION,
        Kind.INVALID_RECIPIENT,
        "AWS rejected the recipient's phone number.",
        members=("DestinationPhoneNumber",),
    ),
    ErrorRule(
        VALIDATION,
        Kind.UNAVAILABLE,
        "AWS rejected the configured sender, configuration set, or protect configuration.",
        members=("OriginationIdentity", "ConfigurationSetName", "ProtectConfigurationId"),
    ),
    ErrorRule(VALIDATION, Kind.PERMANENT, "AWS rejected the message."),
    ErrorRule(("InternalServerException",), Kind.TRANSIENT, "AWS error."),
)
