"""Mailjet's answers and events."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..contract import AddressEffect, ReceiptKind
from ..email_kinds import (
    CLIENT_ERRORS,
    EmailKind,
    Event,
    EventRule,
    Refusal,
    by_reply,
    first_object,
    first_rules,
    last_rules,
    text_of,
)
from ..email_webhooks import verify_password
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule

ABOUT_RECIPIENT = r"(?is)To\b.*"
ABOUT_SENDER = r"(?is)From\b.*"
RULES: Sequence[ResponseRule] = (
    *first_rules("Mailjet"),
    ResponseRule(
        (400,),
        Kind.INVALID_RECIPIENT,
        "Mailjet rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Mailjet rejected the configured sender.",
        field=ABOUT_SENDER,
        is_of_scope=True,
    ),
    *last_rules("Mailjet", rejected=(400,)),
)
BOUNCE = "bounce"
OF_THE_SENDER = frozenset(
    {"sender blocked", "content blocked", "policy issue", "relay/access denied", "preblocked"}
)
"""Errors of a bounce that aren't the address's."""
EVENTS: Mapping[str, EventRule] = {
    "sent": EventRule(ReceiptKind.DELIVERED),
    "open": EventRule(ReceiptKind.OPENED),
    "click": EventRule(ReceiptKind.CLICKED),
    "bounce hard": EventRule(ReceiptKind.BOUNCED),
    "bounce soft": EventRule(ReceiptKind.BOUNCED, effect=AddressEffect.SOFT_BOUNCE),
    "bounce greylisted": EventRule(ReceiptKind.DEFERRED),
    "bounce policy": EventRule(ReceiptKind.BLOCKED),
    "blocked": EventRule(ReceiptKind.REJECTED),
    "spam": EventRule(ReceiptKind.COMPLAINED),
    "unsub": EventRule(ReceiptKind.UNSUBSCRIBED),
}
"""By name, with what tells bounces apart. ``sent`` says that the receiving server took the mail."""


def read_refusal(body: Mapping[str, Any]) -> Refusal:
    """Return the code of the first error, and its text with the field that it is about."""
    error = first_object(first_object(body.get("Messages")).get("Errors")) or body
    related = error.get("ErrorRelatedTo")
    field = text_of(related[0]) if isinstance(related, list) and related else ""
    text = text_of(error.get("ErrorMessage"))
    code = text_of(error.get("ErrorCode")) or None
    return Refusal(code=code, text=f"{field}: {text}" if field else text)


def event_name(event: Event) -> str:
    """Return the name, with what tells bounces apart."""
    name, error = text_of(event["event"]), text_of(event.get("error"))
    if name != BOUNCE:
        return name
    is_hard = event.get("hard_bounce") is True
    if error == "greylisted" and not is_hard:
        return f"{name} greylisted"
    if error in OF_THE_SENDER:
        return f"{name} policy"
    return f"{name} {'hard' if is_hard else 'soft'}"


def refine(rule: EventRule, event: Event) -> EventRule:
    """Return the rule of a hard bounce, of which the receiving server's words say more."""
    return by_reply(rule, text=text_of(event.get("comment")) or text_of(event.get("smtp_reply")))


KIND = EmailKind(
    label="Mailjet",
    backend="anymail.backends.mailjet.EmailBackend",
    webhook="anymail.webhooks.mailjet.MailjetTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    events=EVENTS,
    event_name=event_name,
    refine=refine,
    verify=verify_password,
)
