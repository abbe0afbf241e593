"""Postmark's answers and events."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.errors import FailureCode, Reach

from ..contract import AddressEffect, ReceiptKind
from ..email_kinds import (
    ABOUT_SETTINGS,
    CLIENT_ERRORS,
    EmailKind,
    Event,
    EventRule,
    Refusal,
    first_rules,
    text_of,
)
from ..email_webhooks import verify_password
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule

ABOUT_RECIPIENT = r"(?is)(Invalid|Error parsing) 'To'.*"
ABOUT_SENDER = r"(?is)(Invalid|Error parsing) 'From'.*"
RULES: Sequence[ResponseRule] = (
    *first_rules("Postmark"),
    ResponseRule(
        (413,), Kind.PERMANENT, "The message exceeds Postmark's size limit.", FailureCode.TOO_LARGE
    ),
    ResponseRule(CLIENT_ERRORS, Kind.TRANSIENT, "Postmark is under maintenance.", field="100"),
    ResponseRule(
        (406, 422),
        Kind.PERMANENT,
        "Postmark sends nothing to the address: it bounced, complained, or was suppressed there.",
        # Which of these, and for which stream, only the webhook tells.
        FailureCode.INVALID_RECIPIENT,
        field="406",
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Postmark rejected the configured token or stream.",
        field="10|1235",
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Postmark rejected the configured sender.",
        field="400|401",
        is_of_scope=True,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "The Postmark account has no credits, or may not send.",
        field="405|413",
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "The Postmark account awaits approval: it sends only within the sender's domain.",
        field="412",
        reach=Reach.UNCERTAIN,
    ),
    ResponseRule(
        (422,),
        Kind.INVALID_RECIPIENT,
        "Postmark rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Postmark rejected the configured sender.",
        field=ABOUT_SENDER,
        is_of_scope=True,
    ),
    ResponseRule(
        ABOUT_SETTINGS,
        Kind.UNAVAILABLE,
        "Postmark, or a firewall before it, rejected the configured account or URL.",
    ),
    ResponseRule((422,), Kind.PERMANENT, "Postmark rejected the message."),
)
SOFT = AddressEffect.SOFT_BOUNCE
HARD = AddressEffect.HARD_BOUNCE
BOUNCE = "Bounce"
SUPPRESSION = "SubscriptionChange"
EVENTS: Mapping[str, EventRule] = {
    "Delivery": EventRule(ReceiptKind.DELIVERED),
    "Open": EventRule(ReceiptKind.OPENED),
    "Click": EventRule(ReceiptKind.CLICKED),
    "SpamComplaint": EventRule(ReceiptKind.COMPLAINED),
    "Bounce HardBounce": EventRule(ReceiptKind.BOUNCED),
    "Bounce BadEmailAddress": EventRule(ReceiptKind.BOUNCED),
    "Bounce SoftBounce": EventRule(ReceiptKind.BOUNCED, effect=SOFT),
    "Bounce Transient": EventRule(ReceiptKind.DEFERRED),
    "Bounce DnsError": EventRule(ReceiptKind.DEFERRED),
    "Bounce OpenRelayTest": EventRule(ReceiptKind.DEFERRED),
    "Bounce Blocked": EventRule(ReceiptKind.BLOCKED),
    "Bounce DMARCPolicy": EventRule(ReceiptKind.BLOCKED),
    "Bounce SpamNotification": EventRule(ReceiptKind.BLOCKED),
    "Bounce VirusNotification": EventRule(ReceiptKind.BLOCKED),
    "Bounce ManuallyDeactivated": EventRule(ReceiptKind.REJECTED, effect=HARD),
    "Bounce Unconfirmed": EventRule(ReceiptKind.REJECTED),
    "Bounce SMTPApiError": EventRule(ReceiptKind.FAILED),
    "Bounce TemplateRenderingFailed": EventRule(ReceiptKind.FAILED),
    "Bounce SpamComplaint": EventRule(ReceiptKind.COMPLAINED),
    "Bounce Unsubscribe": EventRule(ReceiptKind.UNSUBSCRIBED),
    "Bounce Subscribe": EventRule(None),
    "Bounce AutoResponder": EventRule(None),
    "Bounce AddressChange": EventRule(None),
    "Bounce ChallengeVerification": EventRule(None),
    "Bounce InboundError": EventRule(None),
    BOUNCE: EventRule(ReceiptKind.BOUNCED, effect=SOFT),
    "SubscriptionChange HardBounce": EventRule(ReceiptKind.BOUNCED),
    "SubscriptionChange SpamComplaint": EventRule(ReceiptKind.COMPLAINED),
    "SubscriptionChange ManualSuppression": EventRule(ReceiptKind.UNSUBSCRIBED),
    SUPPRESSION: EventRule(None),
}
"""By record type, and by the type of a bounce or the reason of a suppression. ``Bounce`` is any
other: Postmark's *Unknown* says nothing."""


def read_refusal(body: Mapping[str, Any]) -> Refusal:
    """Return the error code and the text."""
    return Refusal(code=text_of(body.get("ErrorCode")) or None, text=text_of(body.get("Message")))


def event_name(event: Event) -> str:
    """Return the record type, with what tells bounces and suppressions apart."""
    name = text_of(event["RecordType"])
    if name == BOUNCE:
        return f"{name} {text_of(event.get('Type'))}"
    if name == SUPPRESSION and event.get("SuppressSending") is True:
        return f"{name} {text_of(event.get('SuppressionReason'))}"
    return name


KIND = EmailKind(
    label="Postmark",
    backend="anymail.backends.postmark.EmailBackend",
    webhook="anymail.webhooks.postmark.PostmarkTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    events=EVENTS,
    event_name=event_name,
    verify=verify_password,
)
