"""Brevo's answers and events."""

import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from ..contract import AddressEffect, ReceiptKind, SendRequest
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

WORD_JOINER = "\N{WORD JOINER}"
_OPENING = re.compile(r"\{(?=[{%])")
ABOUT_RECIPIENT = r"(?is).*(not valid|invalid) in to\b.*"
ABOUT_SENDER = r"(?is).*\bsender\b.*"
REPEATED = "duplicate_parameter"
RULES: Sequence[ResponseRule] = (
    *first_rules("Brevo"),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "The Brevo account has no credits, or may not send.",
        field="not_enough_credits|account_under_validation|permission_denied|unauthorized",
    ),
    ResponseRule(
        (400,),
        Kind.INVALID_RECIPIENT,
        "Brevo rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Brevo rejected the configured sender.",
        field=ABOUT_SENDER,
        is_of_scope=True,
    ),
    ResponseRule(
        (400, 409),
        Kind.AMBIGUOUS,
        "Brevo took a request with this key before, and ignored this one.",
        field=REPEATED,
    ),
    *last_rules("Brevo", rejected=(400,)),
)
EVENTS: Mapping[str, EventRule] = {
    "request": EventRule(ReceiptKind.QUEUED),
    "delivered": EventRule(ReceiptKind.DELIVERED),
    "deferred": EventRule(ReceiptKind.DEFERRED),
    "hard_bounce": EventRule(ReceiptKind.BOUNCED),
    "soft_bounce": EventRule(ReceiptKind.BOUNCED, effect=AddressEffect.SOFT_BOUNCE),
    "invalid_email": EventRule(ReceiptKind.BOUNCED, effect=AddressEffect.HARD_BOUNCE),
    "blocked": EventRule(ReceiptKind.REJECTED),
    "error": EventRule(ReceiptKind.FAILED),
    "spam": EventRule(ReceiptKind.COMPLAINED),
    "complaint": EventRule(ReceiptKind.COMPLAINED),
    "unsubscribe": EventRule(ReceiptKind.UNSUBSCRIBED),
    "unsubscribed": EventRule(ReceiptKind.UNSUBSCRIBED),
    "opened": EventRule(ReceiptKind.OPENED),
    "unique_opened": EventRule(ReceiptKind.OPENED),
    "proxy_open": EventRule(None),
    "unique_proxy_open": EventRule(None),
    "click": EventRule(ReceiptKind.CLICKED),
    "list_addition": EventRule(None),
}
NAMESPACE = uuid.UUID("8a0f7c0e-6d5c-5a5e-9d4b-2f1f4b7f5a11")


def read_refusal(body: Mapping[str, Any]) -> Refusal:
    """Return the code and the text."""
    return Refusal(code=text_of(body.get("code")) or None, text=text_of(body.get("message")))


def _key(request: SendRequest) -> Mapping[str, str]:
    """Return the header that Brevo reads and removes: a UUID that follows from the key."""
    return {"idempotencyKey": str(uuid.uuid5(NAMESPACE, request.key))}


def refine(rule: EventRule, event: Event) -> EventRule:
    """Return the rule of a hard bounce, of which the receiving server's words say more."""
    return by_reply(rule, text=text_of(event.get("reason")))


def adapt(fields: dict[str, Any], _request: SendRequest) -> None:
    """Let the text stay as it is, where Brevo would take it for a template.

    Whether it does depends on the part and the account. So a brace is written in a way that looks
    the same in any case: as an entity in HTML, and elsewhere before a character without width.
    """
    if html := fields.get("htmlContent"):
        fields["htmlContent"] = _OPENING.sub("&#123;", html)
    for part in ("subject", "textContent"):
        if text := fields.get(part):
            fields[part] = _OPENING.sub(f"{{{WORD_JOINER}", text)


KIND = EmailKind(
    label="Brevo",
    backend="anymail.backends.brevo.EmailBackend",
    webhook="anymail.webhooks.brevo.BrevoTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    events=EVENTS,
    event_name=lambda event: text_of(event["event"]),
    refine=refine,
    verify=verify_password,
    idempotency=timedelta(minutes=15),
    repeat_code=REPEATED,
    mail_headers=_key,
    adapt=adapt,
    pause_header="x-sib-ratelimit-reset",
)
