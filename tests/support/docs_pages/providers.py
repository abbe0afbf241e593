"""The tables of docs/reference/providers.md, generated from the code."""

from collections.abc import Iterable, Mapping, Sequence

from domain.errors import FailureCode, RecipientAction
from notifications.receipts import processor
from notifications.receipts.processor import DELIVERY_STATUSES, SUPPRESSIONS
from providers.contract import ReceiptKind
from providers.fcm import responses
from providers.fcm.responses import FcmRule
from providers.response_rules import FALLBACK_RULES, ResponseKind, ResponseRule
from providers.sendgrid import provider as sendgrid_provider
from providers.sendgrid import webhooks
from providers.smtp import provider as smtp_provider
from providers.whatsapp import responses as whatsapp_responses
from providers.whatsapp import webhooks as whatsapp_webhooks
from providers.whatsapp.responses import CodeRule
from recipients.models import SuppressionReason
from tests.providers.contract.cases import EXPECTED, UNREACHED, Case

ANY_STATUS = range(1000)
FIELDS: Mapping[tuple[str, str | None], str] = {
    ("sendgrid", r"personalizations\.\d+\.to\b.*"): ", about `personalizations.*.to`",
    ("smtp", "connection.*"): " to the connection itself",
    ("smtp", "sender.*"): " to the sender",
    ("smtp", r"recipient (?!5\.7\.).*"): " to the recipient, unless it says 5.7.x",
}
"""The meaning of each rule's pattern."""

DEVICES: Mapping[RecipientAction | None, str] = {
    None: "",
    RecipientAction.DEACTIVATE: ": device disabled",
    RecipientAction.SUSPECT: ": soft bounce, final at the third in a row",
    RecipientAction.SUPPRESS: ": suppressed",
    RecipientAction.SUPPRESS_MARKETING: ": suppressed for marketing",
}

WHATEVER = (
    *(Case.NOBODY_LISTENS, Case.NO_SUCH_HOST, Case.NOT_TAKEN),
    *(Case.SILENT, Case.HUNG_UP, Case.RESET, Case.TRUNCATED, Case.DRIPPING),
)
"""Connection failures, which are the same for all providers."""
MEANING = ("class", "failure code", "recorded reason")
NOTHING = "\N{EN DASH}"


def tables() -> Mapping[str, str]:
    """Return every table of the page by its heading."""
    return {
        "All providers": _whatever(),
        "SendGrid: responses": _rules("sendgrid", sendgrid_provider.RESPONSE_RULES),
        "SendGrid: receipts": _reported(webhooks.EVENT_KINDS),
        "SMTP: responses": _rules("smtp", smtp_provider.RESPONSE_RULES),
        "Firebase: responses": _firebase(responses.RULES),
        "WhatsApp: responses by code": _whatsapp(whatsapp_responses.CODE_RULES),
        "WhatsApp: responses without a code": _rules(
            "whatsapp", (*whatsapp_responses.STATUS_RULES, *whatsapp_responses.NO_CODE_RULES)
        ),
        "WhatsApp: receipts": _reported(whatsapp_webhooks.STATUS_KINDS),
    }


def _whatever() -> str:
    rows = [
        (_upper(case), "no" if case in UNREACHED else "yes", _expected(case)) for case in WHATEVER
    ]
    return _table(("event", "the message left", "class"), rows)


def _expected(case: Case) -> str:
    return (ResponseKind.AMBIGUOUS if EXPECTED[case].ambiguous else ResponseKind.TRANSIENT).value


def _rules(provider: str, rules: Sequence[ResponseRule]) -> str:
    rows = [
        (
            _statuses(rule) + (FIELDS[provider, rule.field] if rule.field else ""),
            _class(rule.kind, rule.action),
            _code(rule.kind, rule.code),
            rule.reason,
        )
        for rule in _reachable((*rules, *FALLBACK_RULES))
    ]
    return _table(("response", *MEANING), rows)


def _reachable(rules: Iterable[ResponseRule]) -> Iterable[ResponseRule]:
    """Yield the rules that can match."""
    decided: set[int] = set()
    for rule in rules:
        if set(rule.statuses) - decided:
            yield rule
        if rule.field is None:
            decided |= set(rule.statuses)


def _statuses(rule: ResponseRule) -> str:
    return "any other" if rule.statuses == ANY_STATUS else spans(rule.statuses)


def _firebase(rows: Sequence[FcmRule]) -> str:
    return _table(
        ("response", *MEANING),
        [
            (
                row.description,
                _class(row.kind, row.action),
                _code(row.kind, row.failure_code),
                row.reason,
            )
            for row in rows
        ],
    )


def _whatsapp(rules: Sequence[CodeRule]) -> str:
    return _table(
        ("WhatsApp's code", *MEANING, "failure code by receipt"),
        [
            (
                spans(rule.codes) + (f" with subcode {rule.subcode}" if rule.subcode else ""),
                _class(rule.kind, rule.action),
                _code(rule.kind, rule.code),
                rule.reason,
                f"`{processor.FAILURE_CODES[rule.receipt_kind].value}`",
            )
            for rule in rules
        ],
    )


def _reported(events: Mapping[str, ReceiptKind]) -> str:
    return _table(
        ("event", "the delivery becomes", "the address gets"),
        [(f"`{event}`", _becomes(kind), _address(kind)) for event, kind in events.items()],
    )


def _becomes(kind: ReceiptKind) -> str:
    status = DELIVERY_STATUSES.get(kind)
    code = processor.FAILURE_CODES.get(kind)
    return NOTHING if status is None else status.value + (f", `{code.value}`" if code else "")


def _address(kind: ReceiptKind) -> str:
    if kind not in SUPPRESSIONS:
        return NOTHING
    unsubscribed = SUPPRESSIONS[kind] is SuppressionReason.UNSUBSCRIBED
    return "no more marketing" if unsubscribed else "nothing more"


def _class(kind: ResponseKind, action: RecipientAction | None) -> str:
    return kind.value + (DEVICES[action] if kind is ResponseKind.INVALID_RECIPIENT else "")


def _code(kind: ResponseKind, code: FailureCode) -> str:
    """Return the failure code, which two classes override."""
    own = {
        ResponseKind.UNAVAILABLE: FailureCode.CHANNEL_UNAVAILABLE,
        ResponseKind.INVALID_RECIPIENT: FailureCode.INVALID_RECIPIENT,
    }
    return f"`{own.get(kind, code).value}`"


def spans(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: 1, 2, 200 to 299."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(_span(run[0], run[-1]) for run in runs)


def _span(first: int, last: int) -> str:
    if last - first > 1:
        return f"{first} to {last}"
    return str(first) if first == last else f"{first}, {last}"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(line) for line in rows]
    return "".join(
        [
            f"| {' | '.join(head)} |\n",
            "|" + "---|" * len(head) + "\n",
            *(f"| {line} |\n" for line in lines),
        ]
    )
