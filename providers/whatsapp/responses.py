"""Classifies the Cloud API's responses by error code, not status: a code comes with 400 or 429."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

from domain.errors import FailureCode, ProviderError, ProviderResponse, Reach, RecipientAction

from .. import http
from ..contract import ReceiptKind
from ..json_items import read_text
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule, build_error, classify

MAX_ID_LENGTH = 200
"""Longer IDs are cut. WhatsApp's are shorter."""
MAX_CODE = 10**7
TEMPLATE_CODES = range(132_000, 133_000)
_UNAVAILABLE: Mapping[Sequence[int], str] = {
    (0, 102, 190): "The access token is invalid, expired, or revoked.",
    (3, 10, 131005): "The access token lacks a WhatsApp permission.",
    range(200, 300): "The access token lacks a WhatsApp permission.",
    (33,): "The sending phone number was deleted.",
    (2500,): "Invalid Cloud API version or phone number ID.",
    (368, 131031): "WhatsApp restricted or locked the account for a policy violation.",
    (131037,): "WhatsApp hasn't approved the display name of the sending number.",
    (131045, 133010): "The sending phone number isn't registered with WhatsApp.",
}
_UNCERTAIN: Mapping[Sequence[int], str] = {
    (131042, 131044): "WhatsApp can't bill the message: invalid payment method.",
    (131048,): "WhatsApp limits the sending number after too many blocks or reports.",
    (131064,): "WhatsApp limits the account for templates of the wrong category.",
}
_PERMANENT: Mapping[Sequence[int], str] = {
    (
        100,
        131001,
        131002,
        131008,
        131009,
        135000,
    ): "A parameter of the message is missing or invalid.",
    (131030,): "The number isn't on the allowlist of the test number.",
    (130497,): "WhatsApp doesn't let this account message users in the recipient's country.",
    (131062,): "WhatsApp doesn't send this message to a recipient without a phone number.",
    (137000,): "The recipient's WhatsApp identity isn't the expected one.",
    (131043,): "The message expired before WhatsApp could deliver it.",
    (131020, 131041, *range(131_200, 131_300)): "WhatsApp rejected a message to a group.",
    (131063,): "The account sends marketing templates by another API of Meta only.",
    (134100, 134102): "The template can't be sent by Meta's API for marketing messages.",
    (131051, 131052, 131053): "Unsupported message type, or the image can't be downloaded.",
    (132001,): "WhatsApp has no approved template of this name and language.",
    (132015, 132016): "WhatsApp paused or disabled the template for low quality.",
    TEMPLATE_CODES: "The parameters don't match the template.",
}
STATUS_RULES: Sequence[ResponseRule] = (
    ResponseRule(
        (429,),
        Kind.TRANSIENT,
        "Rate limited by WhatsApp.",
        FailureCode.RATE_LIMITED,
        reach=Reach.UNCERTAIN,
    ),
    ResponseRule((408,), Kind.TRANSIENT, "WhatsApp did not receive the whole request in time."),
    ResponseRule(
        (401, 403),
        Kind.UNAVAILABLE,
        "WhatsApp refused the recipient, or the account.",
        reach=Reach.UNCERTAIN,
    ),
    ResponseRule(
        (*range(300, 400), 407),
        Kind.UNAVAILABLE,
        "WhatsApp, or a proxy before it, rejected the configured account or URL.",
    ),
)
"""For a response without a known code."""
NO_CODE_RULES: Sequence[ResponseRule] = (
    ResponseRule((404, 405), Kind.UNAVAILABLE, "No Cloud API at the configured URL."),
)
"""For a response without an error code, which doesn't come from the Graph API."""


@dataclass(frozen=True, slots=True)
class CodeRule:
    """A rule that classifies responses by their error codes."""

    codes: Sequence[int]
    kind: Kind
    reason: str
    code: FailureCode | None = None
    _: KW_ONLY
    subcode: int | None = None
    words: Sequence[str] = ()
    """Words of Meta's message that stand for the subcode, which newer versions leave out."""
    action: RecipientAction = RecipientAction.SUSPECT
    receipt_kind: ReceiptKind = ReceiptKind.FAILED
    reach: Reach | None = None
    """None: that of ``kind``."""


CODE_RULES: Sequence[CodeRule] = (
    CodeRule(
        (4, 17, 32, 341, 613, *range(80_000, 80_015), 130429),
        Kind.TRANSIENT,
        "Rate limited by WhatsApp.",
        FailureCode.RATE_LIMITED,
    ),
    CodeRule(
        (131056,),
        Kind.TRANSIENT,
        "WhatsApp's limit for this recipient is reached.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        reach=Reach.RECIPIENT,
    ),
    CodeRule((1, 2, 131000, 131016, 133004), Kind.TRANSIENT, "WhatsApp error."),
    CodeRule((131057, 2494100), Kind.TRANSIENT, "WhatsApp account under maintenance."),
    CodeRule((134101,), Kind.TRANSIENT, "WhatsApp hasn't copied the template yet."),
    CodeRule(
        (100,),
        Kind.UNAVAILABLE,
        "The sending phone number is unknown, or the token can't use it.",
        subcode=33,
        words=("unsupported post request", "appsecret_proof"),
    ),
    *(CodeRule(codes, Kind.UNAVAILABLE, reason) for codes, reason in _UNAVAILABLE.items()),
    *(
        CodeRule(codes, Kind.UNAVAILABLE, reason, reach=Reach.UNCERTAIN)
        for codes, reason in _UNCERTAIN.items()
    ),
    CodeRule(
        (131026,),
        Kind.INVALID_RECIPIENT,
        "Undeliverable: no WhatsApp on this number, or an outdated app.",
    ),
    CodeRule(
        (131050,),
        Kind.INVALID_RECIPIENT,
        "The recipient opted out of marketing in WhatsApp.",
        action=RecipientAction.UNSUBSCRIBE,
        receipt_kind=ReceiptKind.REJECTED,
    ),
    CodeRule((131021,), Kind.INVALID_RECIPIENT, "The recipient's number is the sending number."),
    CodeRule(
        (131047,),
        Kind.PERMANENT,
        "Outside the 24-hour window: a template is required.",
        FailureCode.WINDOW_CLOSED,
    ),
    CodeRule(
        (131049,),
        Kind.PERMANENT,
        "Not delivered: WhatsApp's limit of marketing per recipient is reached.",
        receipt_kind=ReceiptKind.REJECTED,
    ),
    CodeRule(
        (130472,),
        Kind.PERMANENT,
        "Not delivered: the number is part of an experiment of WhatsApp.",
        receipt_kind=ReceiptKind.REJECTED,
    ),
    *(CodeRule(codes, Kind.PERMANENT, reason) for codes, reason in _PERMANENT.items()),
)


def rule_for(code: int, subcode: int | None = None, *, message: str = "") -> CodeRule | None:
    """Return the rule for an error code, or None for an unknown code.

    ``message`` is Meta's. It matters for code 100 alone, which is used for nearly everything.
    """
    text = message.lower()
    for rule in CODE_RULES:
        is_special = rule.subcode is not None
        is_meant = subcode == rule.subcode or any(word in text for word in rule.words)
        if code in rule.codes and (is_meant or not is_special):
            return rule
    return None


def classify_response(response: http.Response, *, now: datetime) -> ProviderError:
    """Return the error for a response other than the documented acceptance."""
    error = http.as_object(http.decode_object(response.body).get("error"))
    code, subcode = _parse_code(error.get("code")), _parse_code(error.get("error_subcode"))
    provider_response = ProviderResponse(
        status=response.status,
        code=str(code) if code is not None else None,
        excerpt=response.excerpt,
    )
    pause = http.retry_after_seconds(response.headers, now=now)
    message = error.get("message")
    text = message if isinstance(message, str) else ""
    rule = rule_for(code, subcode, message=text) if code is not None else None
    if rule is not None:
        return build_error(
            rule.kind,
            explain(rule, error),
            code=rule.code,
            action=rule.action,
            response=provider_response,
            retry_after=pause,
            reach=rule.reach,
        )
    if error.get("is_transient") is True:
        return build_error(
            Kind.TRANSIENT,
            append_code("WhatsApp error.", code),
            code=None,
            action=RecipientAction.SUSPECT,
            response=provider_response,
            retry_after=pause,
            # Nothing says that it concerns others.
            reach=Reach.RECIPIENT,
        )
    rules = STATUS_RULES if code is not None else (*STATUS_RULES, *NO_CODE_RULES)
    return classify(rules, response=provider_response, fields=(), retry_after=pause)


def explain(rule: CodeRule, error: Mapping[str, Any]) -> str:
    """Return a rule's reason with the error's code, and Meta's details if the rule is vague.

    Only the details say which parameter or image it is. Other rules say it all.
    """
    reason = append_code(rule.reason, error.get("code"))
    is_vague = rule.kind is Kind.PERMANENT and rule.code is None
    details = read_text(http.as_object(error.get("error_data")), "details", is_prose=True)
    if not is_vague or rule.receipt_kind is not ReceiptKind.FAILED or details is None:
        return reason
    return f"{reason}: {http.excerpt(details)}"


def append_code(reason: str, code: str | int | None) -> str:
    """Return a reason followed by the provider's code."""
    return reason if code is None else f"{reason} ({code})"


def _parse_code(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < MAX_CODE else None
