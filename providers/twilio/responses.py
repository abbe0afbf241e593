"""Classifies Twilio's error codes: of responses, and of accepted messages that failed later."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

from domain.errors import FailureCode, ProviderError, ProviderResponse, Reach, RecipientAction

from .. import http
from ..contract import AddressEffect
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule, build_error, classify

MAX_CODE = 10**6
PUMPING = 30450
"""The code of texts that Twilio blocks because somebody seems to ask for codes to paid numbers."""


@dataclass(frozen=True, slots=True)
class CodeRule:
    """A rule that classifies responses by their error codes."""

    codes: Sequence[int]
    kind: Kind
    reason: str
    code: FailureCode | None = None
    _: KW_ONLY
    action: RecipientAction = RecipientAction.SUSPECT
    reach: Reach | None = None
    """None: that of ``kind``."""
    is_of_country: bool = False
    """Whether it concerns the recipient's country alone, if the country is known."""


CODE_RULES: Sequence[CodeRule] = (
    CodeRule((20429,), Kind.TRANSIENT, "Rate limited by Twilio.", FailureCode.RATE_LIMITED),
    CodeRule(
        (21611,),
        Kind.TRANSIENT,
        "Twilio's queue of the sending number is full.",
        FailureCode.RATE_LIMITED,
    ),
    CodeRule(
        (14107,),
        Kind.TRANSIENT,
        "Twilio's limit for this recipient is reached.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        reach=Reach.RECIPIENT,
    ),
    CodeRule((20500, 20503), Kind.TRANSIENT, "Twilio error."),
    CodeRule((20003,), Kind.UNAVAILABLE, "Twilio rejected the auth token or the API key."),
    CodeRule((20005,), Kind.UNAVAILABLE, "The Twilio account is suspended or closed."),
    CodeRule((20403,), Kind.UNAVAILABLE, "The Twilio account lacks a permission."),
    CodeRule((20404, 20426), Kind.UNAVAILABLE, "Unknown Twilio account SID, or a wrong URL."),
    CodeRule(
        (21212, 21603, 21607),
        Kind.UNAVAILABLE,
        "The configured sender is no number, sender ID, or service of Twilio.",
    ),
    CodeRule(
        (21606, 21704),
        Kind.UNAVAILABLE,
        "The Twilio account has no sender for this country.",
        reach=Reach.UNCERTAIN,
        is_of_country=True,
    ),
    CodeRule(
        (21701, 21702, 21703, 21705, 21708, 21709),
        Kind.UNAVAILABLE,
        "The messaging service is unknown, or has no number.",
    ),
    CodeRule(
        (21608,),
        Kind.UNAVAILABLE,
        "A trial account of Twilio sends only to numbers that were verified there.",
        reach=Reach.UNCERTAIN,
    ),
    CodeRule(
        (21609,),
        Kind.UNAVAILABLE,
        "Twilio rejected the URL for receipts: PUBLIC_URL is not public.",
    ),
    CodeRule(
        (21408,),
        Kind.PERMANENT,
        "The recipient's country isn't enabled in the Twilio account.",
        FailureCode.DESTINATION_DISABLED,
    ),
    CodeRule(
        (21612,),
        Kind.PERMANENT,
        "Twilio doesn't reach the recipient from this sender.",
        FailureCode.DESTINATION_DISABLED,
    ),
    CodeRule(
        (21211, 21265, 21604),
        Kind.INVALID_RECIPIENT,
        "Twilio rejected the recipient's phone number.",
    ),
    CodeRule((21266,), Kind.INVALID_RECIPIENT, "The recipient's number is the sending number."),
    CodeRule(
        (21614,),
        Kind.INVALID_RECIPIENT,
        "The recipient's number takes no SMS, as of a landline.",
    ),
    CodeRule(
        (21610,),
        Kind.INVALID_RECIPIENT,
        "The recipient opted out with STOP.",
        action=RecipientAction.UNSUBSCRIBE,
    ),
    CodeRule(
        (21617,),
        Kind.PERMANENT,
        "The text exceeds Twilio's limit of 1,600 characters.",
        FailureCode.TOO_LARGE,
    ),
    CodeRule((21602, 21618), Kind.PERMANENT, "Twilio rejected the text."),
    CodeRule(
        (20001, 21624, 90007), Kind.PERMANENT, "A parameter of the message is missing or invalid."
    ),
    CodeRule(
        (30610, 30640),
        Kind.PERMANENT,
        "Twilio's compliance toolkit blocked the message.",
        FailureCode.FILTERED,
    ),
)
STATUS_RULES: Sequence[ResponseRule] = (
    ResponseRule((429,), Kind.TRANSIENT, "Rate limited by Twilio.", FailureCode.RATE_LIMITED),
    ResponseRule((408,), Kind.TRANSIENT, "Twilio did not receive the whole request in time."),
    ResponseRule((401,), Kind.UNAVAILABLE, "Twilio rejected the auth token or the API key."),
    ResponseRule(
        (403,),
        Kind.UNAVAILABLE,
        "Twilio refused the recipient, or the account.",
        reach=Reach.UNCERTAIN,
    ),
    ResponseRule(
        (*range(300, 400), 407),
        Kind.UNAVAILABLE,
        "Twilio, or a proxy before it, rejected the configured account or URL.",
    ),
)
"""For a response without a known code."""
NO_CODE_RULES: Sequence[ResponseRule] = (
    ResponseRule((404, 405), Kind.UNAVAILABLE, "No Twilio API at the configured URL."),
)
"""For a response without an error code, which doesn't come from Twilio."""


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A rule for the error codes of messages that Twilio accepted."""

    codes: Sequence[int]
    reason: str
    code: FailureCode = FailureCode.REPORTED_FAILED
    _: KW_ONLY
    effect: AddressEffect | None = None


FAILURE_RULES: Sequence[FailureRule] = (
    FailureRule(
        (30003,),
        "The phone is off, or has no signal.",
        effect=AddressEffect.SOFT_BOUNCE,
    ),
    FailureRule(
        (30005,), "The carrier doesn't know the number.", effect=AddressEffect.PROBABLE_BOUNCE
    ),
    FailureRule(
        (30006,),
        "The number is a landline, or the carrier takes no SMS.",
        effect=AddressEffect.PROBABLE_BOUNCE,
    ),
    FailureRule((30004,), "The carrier or the person blocks the sender.", FailureCode.BLOCKED),
    FailureRule((30007,), "The carrier or Twilio filtered the text.", FailureCode.FILTERED),
    FailureRule((30019,), "The text is too long for the carrier.", FailureCode.FILTERED),
    FailureRule(
        (PUMPING,),
        "Twilio suspects pumping, and blocks numbers like this one for half an hour.",
        FailureCode.FILTERED,
    ),
    FailureRule((30002,), "The Twilio account was suspended."),
    FailureRule(
        (30018, 30024, 30032, 30033, 30034, 30035),
        "The sender isn't registered for the recipient's country or carrier.",
        FailureCode.SENDER_UNREGISTERED,
    ),
    FailureRule((30001,), "Twilio's queue of the sending number was full."),
    FailureRule((30022,), "The carrier's rate for the sender was exceeded."),
    FailureRule((30023, 30027), "The carrier's daily limit for the sender is reached."),
    FailureRule((30036,), "The message expired before the carrier took it."),
    FailureRule((30008,), "The carrier gave no reason."),
    FailureRule((30017, 30410), "The carrier was congested, or didn't respond."),
)
_CODE = re.compile(r"[0-9]{1,6}", re.ASCII)
_BY_CODE: Mapping[int, CodeRule] = {code: rule for rule in CODE_RULES for code in rule.codes}
_FAILURES_BY_CODE: Mapping[int, FailureRule] = {
    code: rule for rule in FAILURE_RULES for code in rule.codes
}
_EFFECTS: Mapping[RecipientAction, AddressEffect] = {
    RecipientAction.SUSPECT: AddressEffect.SOFT_BOUNCE,
    RecipientAction.UNSUBSCRIBE: AddressEffect.UNSUBSCRIBED,
}


def failure_rule(code: int) -> FailureRule | None:
    """Return the rule for the error code of an accepted message, or None for an unknown code.

    With a messaging service, Twilio may find only later what it tells other senders at once.
    """
    found = _FAILURES_BY_CODE.get(code)
    rule = _BY_CODE.get(code) if found is None else None
    if rule is None:
        return found
    if rule.kind is Kind.INVALID_RECIPIENT:
        return FailureRule(rule.codes, rule.reason, effect=_EFFECTS[rule.action])
    is_final = rule.kind is Kind.PERMANENT and rule.code in _FINAL_CODES
    return FailureRule(
        rule.codes,
        rule.reason,
        rule.code if is_final and rule.code else FailureCode.REPORTED_FAILED,
    )


_FINAL_CODES = frozenset({FailureCode.DESTINATION_DISABLED, FailureCode.FILTERED})
"""Failure codes of responses that a receipt may set too."""


def classify_response(
    response: http.Response, *, country: str | None, now: datetime
) -> ProviderError:
    """Return the error for a response other than the documented acceptance.

    ``country``: the scope of the request.
    """
    error = http.decode_object(response.body)
    code = parse_code(error.get("code"))
    provider_response = ProviderResponse(
        status=response.status,
        code=str(code) if code is not None else None,
        excerpt=response.excerpt,
    )
    pause = http.retry_after_seconds(response.headers, now=now)
    rule = _BY_CODE.get(code) if code is not None else None
    if rule is not None:
        scope = country or None if rule.is_of_country else None
        return build_error(
            rule.kind,
            append_code(rule.reason, code),
            code=rule.code,
            action=rule.action,
            response=provider_response,
            retry_after=pause,
            scope=scope,
            reach=rule.reach,
        )
    rules = STATUS_RULES if code is not None else (*STATUS_RULES, *NO_CODE_RULES)
    return classify(rules, response=provider_response, fields=(), retry_after=pause)


def append_code(reason: str, code: int | None) -> str:
    """Return a reason followed by Twilio's code."""
    return reason if code is None else f"{reason} ({code})"


def parse_code(value: Any) -> int | None:
    """Return an error code, which is a number in JSON and digits in a form."""
    if isinstance(value, str):
        value = int(value) if _CODE.fullmatch(value) else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value < MAX_CODE else None
