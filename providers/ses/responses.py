"""Classifies the errors of the SES API, version 2."""

from collections.abc import Sequence

from domain.errors import FailureCode, Reach

from ..aws_responses import ErrorRule
from ..response_rules import ResponseKind as Kind

_LIMITS = (
    "TooManyRequestsException",
    "ThrottlingException",
    "Throttling",
    "LimitExceededException",
)

RULES: Sequence[ErrorRule] = (
    ErrorRule(
        _LIMITS,
        Kind.UNAVAILABLE,
        "The account's daily quota of SES is used up.",
        about="the daily quota",
        words=r"daily (?:message |sending )?quota|24[- ]hour",
    ),
    ErrorRule(
        ("LimitExceededException",), Kind.UNAVAILABLE, "A limit of the SES account is reached."
    ),
    ErrorRule(
        (
            "AccountSuspendedException",
            "SendingPausedException",
            "AccountSendingPausedException",
            "ConfigurationSetSendingPausedException",
        ),
        Kind.UNAVAILABLE,
        "SES has suspended the account, or its sending is paused.",
    ),
    ErrorRule(
        ("MailFromDomainNotVerifiedException",),
        Kind.UNAVAILABLE,
        "The MAIL FROM domain of the sender isn't verified with SES.",
        is_of_scope=True,
    ),
    ErrorRule(
        ("NotFoundException", "ConfigurationSetDoesNotExistException"),
        Kind.UNAVAILABLE,
        "SES doesn't know the configuration set or the identity.",
    ),
    ErrorRule(
        ("MessageRejected",),
        Kind.UNAVAILABLE,
        "SES hasn't verified the sender; in its sandbox, recipients need it too.",
        about="an address that isn't verified",
        words=r"not verified",
        # Of a recipient, in an account that SES hasn't let out of its sandbox.
        reach=Reach.UNCERTAIN,
        is_of_scope=True,
    ),
    ErrorRule(
        ("MessageRejected",),
        Kind.UNAVAILABLE,
        "SES has suspended the account, or its sending is paused.",
        about="paused or suspended sending",
        words=r"sending (?:is |has been )?(?:paused|suspended|disabled)|account is (?:in )?shut",
    ),
    ErrorRule(("MessageRejected",), Kind.PERMANENT, "SES rejected the message."),
    ErrorRule(
        ("BadRequestException",),
        Kind.PERMANENT,
        "The message exceeds SES's size limit.",
        FailureCode.TOO_LARGE,
        about="the length",
        words=r"message length|too (?:long|large)|maximum (?:message )?size",
    ),
    ErrorRule(("BadRequestException",), Kind.PERMANENT, "SES rejected the message."),
)
