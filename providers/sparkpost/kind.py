"""SparkPost's answers and events."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.errors import FailureCode, RecipientAction

from ..contract import AddressEffect, ReceiptKind
from ..email_kinds import EmailKind, Event, EventRule, Refusal, first_object, text_of
from ..email_webhooks import verify_password
from ..http import as_object
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule

CLIENT_ERRORS = range(400, 500)
SUPPRESSED = r"(?is).*suppress.*"
ABOUT_RECIPIENT = r"(?is).*(recipient|header_to|address\.email).*"
RULES: Sequence[ResponseRule] = (
    ResponseRule(
        (420, 429), Kind.TRANSIENT, "A limit of SparkPost is reached.", FailureCode.RATE_LIMITED
    ),
    ResponseRule((408,), Kind.TRANSIENT, "SparkPost did not receive the whole request in time."),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.INVALID_RECIPIENT,
        "SparkPost sends nothing to the address: it is suppressed there.",
        field=SUPPRESSED,
        action=RecipientAction.SUPPRESS,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "SparkPost rejected the configured sender's domain.",
        field="7001|1902",
    ),
    ResponseRule(
        (200, *CLIENT_ERRORS),
        Kind.INVALID_RECIPIENT,
        "SparkPost rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    ResponseRule(
        (413,), Kind.PERMANENT, "The message exceeds SparkPost's size limit.", FailureCode.TOO_LARGE
    ),
    ResponseRule(
        (*range(300, 400), 401, 402, 403, 404, 405, 407, 415),
        Kind.UNAVAILABLE,
        "SparkPost rejected the configured account or URL.",
    ),
    ResponseRule((400, 422), Kind.PERMANENT, "SparkPost rejected the message."),
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
    if as_object(body.get("results")).get("total_rejected_recipients"):
        return Refusal(text="rejected recipient")
    error = first_object(body.get("errors"))
    texts = [text_of(error.get(name)) for name in ("message", "description")]
    return Refusal(code=text_of(error.get("code")) or None, text=": ".join(filter(None, texts)))


def event_name(event: Event) -> str:
    """Return the type, with the class of a bounce, also of one that came by mail."""
    (found,) = as_object(event["msys"]).values()
    name = text_of(found["type"])
    return f"bounce {text_of(found.get('bounce_class'))}" if name in BOUNCES else name


KIND = EmailKind(
    label="SparkPost",
    backend="anymail.backends.sparkpost.EmailBackend",
    webhook="anymail.webhooks.sparkpost.SparkPostTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    events=EVENTS,
    event_name=event_name,
    has_event_ids=True,
    verify=verify_password,
)
