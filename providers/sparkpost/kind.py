"""SparkPost's answers and events."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from domain.errors import FailureCode
from domain.states import Category

from ..contract import AddressEffect, ReceiptKind, SendRequest
from ..email_kinds import (
    CLIENT_ERRORS,
    EmailKind,
    Event,
    EventRule,
    Refusal,
    first_object,
    last_rules,
    text_of,
)
from ..email_webhooks import verify_password
from ..http import as_object
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule

_BRACES = re.compile("[{}]{2,}")
_LETTERS = str.maketrans({"{": "o", "}": "c"})
SUPPRESSED = r"(?is).*\bsuppress(ed|ion)\b.*"
REJECTED = "total_rejected_recipients"
ABOUT_RECIPIENT = r"(?is).*(\b(for|to) (header_to|address)\b|\b(in)?valid recipient).*"
RULES: Sequence[ResponseRule] = (
    ResponseRule(
        (420, 429), Kind.TRANSIENT, "A limit of SparkPost is reached.", FailureCode.RATE_LIMITED
    ),
    ResponseRule((408,), Kind.TRANSIENT, "SparkPost did not receive the whole request in time."),
    ResponseRule(
        (400, 422),
        Kind.PERMANENT,
        "SparkPost sends nothing to the address: it is suppressed there.",
        # For which mails, and since which event, only the webhook tells.
        FailureCode.INVALID_RECIPIENT,
        field=SUPPRESSED,
    ),
    ResponseRule(
        (200,),
        Kind.PERMANENT,
        "SparkPost rejected the recipient without a reason.",
        FailureCode.INVALID_RECIPIENT,
        field=REJECTED,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "SparkPost rejected the configured sender's domain.",
        field="7001|1902",
        is_of_scope=True,
    ),
    ResponseRule(
        (400, 422),
        Kind.INVALID_RECIPIENT,
        "SparkPost rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    *last_rules("SparkPost", rejected=(400, 422)),
)
SOFT = AddressEffect.SOFT_BOUNCE
BOUNCES = frozenset({"bounce", "out_of_band"})
EVENTS: Mapping[str, EventRule] = {
    "injection": EventRule(ReceiptKind.QUEUED),
    "delivery": EventRule(ReceiptKind.DELIVERED),
    "delay": EventRule(ReceiptKind.DEFERRED),
    "bounce 10": EventRule(ReceiptKind.BOUNCED),
    "bounce 30": EventRule(ReceiptKind.BOUNCED),
    "bounce 23": EventRule(ReceiptKind.BLOCKED),
    "bounce 25": EventRule(ReceiptKind.REJECTED),
    "bounce 50": EventRule(ReceiptKind.BLOCKED),
    "bounce 51": EventRule(ReceiptKind.BLOCKED),
    "bounce 52": EventRule(ReceiptKind.BLOCKED),
    "bounce 53": EventRule(ReceiptKind.BLOCKED),
    "bounce 54": EventRule(ReceiptKind.BLOCKED),
    "bounce 60": EventRule(None),
    "bounce 80": EventRule(None),
    "bounce 90": EventRule(ReceiptKind.UNSUBSCRIBED),
    "bounce 100": EventRule(None),
    "bounce": EventRule(ReceiptKind.BOUNCED, effect=SOFT),
    "policy_rejection": EventRule(ReceiptKind.REJECTED),
    "generation_failure": EventRule(ReceiptKind.FAILED),
    "generation_rejection": EventRule(ReceiptKind.REJECTED),
    "spam_complaint": EventRule(ReceiptKind.COMPLAINED),
    "list_unsubscribe": EventRule(ReceiptKind.UNSUBSCRIBED),
    "link_unsubscribe": EventRule(ReceiptKind.UNSUBSCRIBED),
    "open": EventRule(ReceiptKind.OPENED),
    "initial_open": EventRule(None),
    "click": EventRule(ReceiptKind.CLICKED),
}
"""By type, and by the class of a bounce; ``bounce`` is any other class, such as a full mailbox."""


def read_refusal(body: Mapping[str, Any]) -> Refusal:
    """Return the code of the first error, and its texts."""
    results = as_object(body.get("results"))
    if (results.get(REJECTED), results.get("total_accepted_recipients")) == (1, 0):
        return Refusal(code=REJECTED)
    error = first_object(body.get("errors"))
    texts = [text_of(error.get(name)) for name in ("message", "description")]
    return Refusal(code=text_of(error.get("code")) or None, text=": ".join(filter(None, texts)))


def event_name(event: Event) -> str:
    """Return the type, with the class of a bounce, also of one that came by mail."""
    (found,) = as_object(event["msys"]).values()
    name = text_of(found["type"])
    return f"bounce {text_of(found.get('bounce_class'))}" if name in BOUNCES else name


def adapt(fields: dict[str, Any], request: SendRequest) -> None:
    """Let the text stay as it is, and say whether the mail is transactional.

    SparkPost takes all content for a template. Each run of braces becomes a variable whose value
    is the run: values aren't evaluated, and no brace is left beside those of the variable.
    """
    is_marketing = request.category == Category.MARKETING
    fields.setdefault("options", {})["transactional"] = not is_marketing
    values: dict[str, str] = {}

    def as_variable(found: re.Match[str]) -> str:
        name = "braces_" + found[0].translate(_LETTERS)
        values[name] = found[0]
        return f"{{{{{name}}}}}"

    def escaped(value: Any) -> Any:
        return _BRACES.sub(as_variable, value) if isinstance(value, str) else value

    content = fields["content"]
    for part in ("from", "reply_to", "subject", "text", "html"):
        if part in content:
            content[part] = escaped(content[part])
    headers = content.get("headers", {})
    headers.update({name: escaped(value) for name, value in headers.items()})
    if values:
        fields["substitution_data"] = values


KIND = EmailKind(
    label="SparkPost",
    backend="anymail.backends.sparkpost.EmailBackend",
    webhook="anymail.webhooks.sparkpost.SparkPostTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    events=EVENTS,
    event_name=event_name,
    has_event_ids=True,
    adapt=adapt,
    verify=verify_password,
)
