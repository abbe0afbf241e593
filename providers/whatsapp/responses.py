"""What WhatsApp's Cloud API means by each of its codes: one table, for answers and for reports.

The code decides, not the HTTP status: the same error comes as a 400 one day and as a 429 the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

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

from .. import http
from ..contract import ReceiptKind
from ..response_rules import ResponseKind, ResponseRule, classify

MAX_ID_LENGTH = 200
"""An id of WhatsApp's is kept up to this length; they are shorter."""


MAX_CODE = 10**7


TEMPLATE_CODES = range(132_000, 133_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRule:
    """One row of the table: these codes mean this."""

    codes: Sequence[int]
    kind: ResponseKind
    reason: str
    """For people."""
    code: FailureCode = FailureCode.REJECTED
    """Ours, for those kinds that do not say it already."""
    subcode: int | None = None
    """Only with this subcode."""
    action: RecipientAction = RecipientAction.SUSPECT
    """What becomes of an invalid recipient."""
    receipt_kind: ReceiptKind = ReceiptKind.FAILED
    """What it is when it is reported after the message was accepted."""

    def build_error(
        self, response: ProviderResponse, *, retry_after: float | None
    ) -> ProviderError:
        """Return the error that an answer with one of these codes is."""
        reason = append_code(self.reason, response.code)
        match self.kind:
            case ResponseKind.UNAVAILABLE:
                return ProviderUnavailableError(reason, response=response, retry_after=retry_after)
            case ResponseKind.INVALID_RECIPIENT:
                return InvalidRecipientError(reason, action=self.action, response=response)
            case ResponseKind.PERMANENT:
                return PermanentError(reason, code=self.code, response=response)
        return TransientError(
            reason,
            code=self.code,
            response=response,
            retry_after=retry_after,
            is_ambiguous=self.kind is ResponseKind.AMBIGUOUS,
        )


CODE_RULES: Sequence[CodeRule] = (
    # It may take it later.
    CodeRule(
        codes=(4, 80007, 130429),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.RATE_LIMITED,
        reason="WhatsApp wants fewer messages from this account.",
    ),
    CodeRule(
        codes=(131056,),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.RECIPIENT_RATE_LIMITED,
        reason="WhatsApp wants fewer messages to this one person.",
    ),
    CodeRule(
        codes=(1, 2, 131000, 131016),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="WhatsApp had a problem of its own.",
    ),
    CodeRule(
        codes=(131057,),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="WhatsApp is maintaining this account.",
    ),
    # It takes nothing from us, whoever the recipient is.
    CodeRule(
        codes=(0, 190),
        kind=ResponseKind.UNAVAILABLE,
        reason="WhatsApp does not take the access token: it is wrong, expired or revoked.",
    ),
    CodeRule(
        codes=(3, 10, 131005),
        kind=ResponseKind.UNAVAILABLE,
        reason="The access token lacks a permission for WhatsApp.",
    ),
    CodeRule(
        codes=range(200, 300),
        kind=ResponseKind.UNAVAILABLE,
        reason="The access token lacks a permission for WhatsApp.",
    ),
    CodeRule(
        codes=(33,),
        kind=ResponseKind.UNAVAILABLE,
        reason="The sending phone number was deleted at WhatsApp.",
    ),
    CodeRule(
        codes=(100,),
        subcode=33,
        kind=ResponseKind.UNAVAILABLE,
        reason="WhatsApp knows no such sending phone number, or the token may not use it.",
    ),
    CodeRule(
        codes=(2500,),
        kind=ResponseKind.UNAVAILABLE,
        reason="The Cloud API has no such address: its version or the number's id is wrong.",
    ),
    CodeRule(
        codes=(368, 131031),
        kind=ResponseKind.UNAVAILABLE,
        reason="WhatsApp has restricted or locked the account for a breach of its policies.",
    ),
    CodeRule(
        codes=(131037,),
        kind=ResponseKind.UNAVAILABLE,
        reason="WhatsApp has not approved the sending number's display name yet.",
    ),
    CodeRule(
        codes=(131042,),
        kind=ResponseKind.UNAVAILABLE,
        reason="WhatsApp cannot bill the account: something is wrong with the payment method.",
    ),
    CodeRule(
        codes=(131045, 133010),
        kind=ResponseKind.UNAVAILABLE,
        reason="The sending phone number is not registered with WhatsApp.",
    ),
    CodeRule(
        codes=(131048,),
        kind=ResponseKind.UNAVAILABLE,
        reason="WhatsApp limits the sending number: too many people blocked or reported it.",
    ),
    # It will not reach this person.
    CodeRule(
        codes=(131026,),
        kind=ResponseKind.INVALID_RECIPIENT,
        reason="WhatsApp cannot deliver to this number: it has no WhatsApp, or too old an app.",
    ),
    CodeRule(
        codes=(131050,),
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.SUPPRESS_MARKETING,
        receipt_kind=ReceiptKind.REJECTED,
        reason="The person has told WhatsApp to stop our marketing messages.",
    ),
    CodeRule(
        codes=(131021,),
        kind=ResponseKind.INVALID_RECIPIENT,
        reason="The recipient's number is the sending number itself.",
    ),
    CodeRule(
        codes=(131030,),
        kind=ResponseKind.INVALID_RECIPIENT,
        reason="The number is not on the list of those a test number may write to.",
    ),
    # This message will not go.
    CodeRule(
        codes=(131047,),
        kind=ResponseKind.PERMANENT,
        code=FailureCode.WINDOW_CLOSED,
        reason="The person has not written for 24 hours: only an approved template may be sent.",
    ),
    CodeRule(
        codes=(131049,),
        kind=ResponseKind.PERMANENT,
        receipt_kind=ReceiptKind.REJECTED,
        reason="WhatsApp chose not to deliver it: the person gets enough marketing already.",
    ),
    CodeRule(
        codes=(130472,),
        kind=ResponseKind.PERMANENT,
        receipt_kind=ReceiptKind.REJECTED,
        reason="WhatsApp did not deliver it: the person's number is part of an experiment.",
    ),
    CodeRule(
        codes=(100, 131008, 131009),
        kind=ResponseKind.PERMANENT,
        reason="WhatsApp does not understand the message: a value is missing or wrong.",
    ),
    CodeRule(
        codes=(131051, 131052, 131053),
        kind=ResponseKind.PERMANENT,
        reason="WhatsApp cannot use this kind of message, or cannot load its picture.",
    ),
    CodeRule(
        codes=(132001,),
        kind=ResponseKind.PERMANENT,
        reason="WhatsApp has no approved template of this name in this language.",
    ),
    CodeRule(
        codes=(132015, 132016),
        kind=ResponseKind.PERMANENT,
        reason="WhatsApp has paused or disabled the template for its low quality.",
    ),
    CodeRule(
        codes=TEMPLATE_CODES,
        kind=ResponseKind.PERMANENT,
        reason="The values do not fit the approved template.",
    ),
)
"""The first row that matches counts."""


STATUS_RULES: Sequence[ResponseRule] = (
    ResponseRule(
        statuses=(429,),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.RATE_LIMITED,
        reason="WhatsApp wants fewer requests.",
    ),
    ResponseRule(
        statuses=(408,),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="WhatsApp did not get the whole request in time.",
    ),
    ResponseRule(
        statuses=(*range(300, 400), 401, 403),
        kind=ResponseKind.UNAVAILABLE,
        reason="WhatsApp does not serve this account or address as configured.",
    ),
)
"""For an answer without a code, or with one that nobody knows."""


NO_CODE_RULES: Sequence[ResponseRule] = (
    ResponseRule(
        statuses=(404, 405),
        kind=ResponseKind.UNAVAILABLE,
        reason="There is no Cloud API at the address that is configured.",
    ),
)
"""For an answer without a code: the Graph API itself always gives one."""


def rule_for(code: int, subcode: int | None = None) -> CodeRule | None:
    """Return the row for a code; None for a code that nobody knows."""
    for rule in CODE_RULES:
        if code in rule.codes and rule.subcode in (None, subcode):
            return rule
    return None


def classify_response(response: http.Response, *, now: datetime) -> ProviderError:
    """Return the error that an answer other than the documented acceptance is."""
    error = _mapping(decode_object(response.body).get("error"))
    code, subcode = _parse_code(error.get("code")), _parse_code(error.get("error_subcode"))
    provider_response = ProviderResponse(
        status=response.status,
        code=str(code) if code is not None else None,
        excerpt=response.excerpt,
    )
    pause = http.parse_retry_after(response.headers, now=now)
    rule = rule_for(code, subcode) if code is not None else None
    if rule is not None:
        return rule.build_error(provider_response, retry_after=pause)
    rules = STATUS_RULES if code is not None else (*STATUS_RULES, *NO_CODE_RULES)
    return classify(rules, response=provider_response, fields=(), retry_after=pause)


def append_code(reason: str, code: str | int | None) -> str:
    """Return a reason with the provider's code, which people look up."""
    return reason if code is None else f"{reason} ({code})"


def decode_object(body: bytes) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for what is none."""
    try:
        return _mapping(msgspec.json.decode(body))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _parse_code(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < MAX_CODE else None
