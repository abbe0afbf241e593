"""Mailtrap's answers and events."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..contract import ReceiptKind
from ..email_kinds import (
    CLIENT_ERRORS,
    EmailKind,
    Event,
    EventRule,
    Refusal,
    by_reply,
    first_rules,
    last_rules,
    text_of,
)
from ..email_webhooks import verify_password
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule

ABOUT_RECIPIENT = r"(?is)'?to'?\b.*(address|invalid).*"
ABOUT_SENDER = r"(?is).*('from'|sending from domain|domain is not).*"
RULES: Sequence[ResponseRule] = (
    *first_rules("Mailtrap"),
    ResponseRule(
        (400, 422),
        Kind.INVALID_RECIPIENT,
        "Mailtrap rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Mailtrap rejected the configured sender.",
        field=ABOUT_SENDER,
        is_of_scope=True,
    ),
    *last_rules("Mailtrap", rejected=(400, 422)),
)
EVENTS: Mapping[str, EventRule] = {
    "delivery": EventRule(ReceiptKind.DELIVERED),
    "open": EventRule(ReceiptKind.OPENED),
    "click": EventRule(ReceiptKind.CLICKED),
    "bounce": EventRule(ReceiptKind.BOUNCED),
    "soft bounce": EventRule(ReceiptKind.DEFERRED),
    "spam": EventRule(ReceiptKind.COMPLAINED),
    "unsubscribe": EventRule(ReceiptKind.UNSUBSCRIBED),
    "suspension": EventRule(ReceiptKind.DEFERRED),
    "reject": EventRule(ReceiptKind.REJECTED),
}


def read_refusal(body: Mapping[str, Any]) -> Refusal:
    """Return the first of the texts: there are no codes."""
    errors = body.get("errors")
    return Refusal(text=text_of(errors[0]) if isinstance(errors, list) and errors else "")


def refine(rule: EventRule, event: Event) -> EventRule:
    """Return the rule of a bounce, of which the receiving server's words say more."""
    return by_reply(rule, text=text_of(event.get("response")))


KIND = EmailKind(
    label="Mailtrap",
    backend="anymail.backends.mailtrap.EmailBackend",
    webhook="anymail.webhooks.mailtrap.MailtrapTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    events=EVENTS,
    event_name=lambda event: text_of(event["event"]),
    refine=refine,
    has_event_ids=True,
    list_field="events",
    verify=verify_password,
)
