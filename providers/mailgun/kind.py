"""Mailgun's answers and events."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.errors import FailureCode, Reach

from ..bounces import PERMANENT_FAILURE
from ..contract import AddressEffect, ReceiptKind
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
from ..email_webhooks import verify_mailgun
from ..http import as_object
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule

WRONG_PATH = "Mailgun Magnificent API"
"""The whole text with which Mailgun answers what isn't below a version of its API."""
TEST_RECIPIENTS = r"(?is).*for test purposes only.*"
NOT_ALLOWED = r"(?is).*(not allowed to send|account (is|has been) (disabled|suspended)).*"
SIZE = r"(?is).*\b(size limit|maximum (allowed )?size|too large)\b.*"
QUOTA = (
    r"(?is).*\b(plan|quota|daily|monthly|free|sending)\b.{0,80}\b(limit|quota|exceeded|reached)\b.*"
)
LIMITED = r"(?is).*\b(recipient|rate|hourly) limit (has been )?(exceeded|reached).*"
ABOUT_RECIPIENT = r"(?is)'?to'? parameter is not a valid.*"
ABOUT_SENDER = r"(?is)'?from'? parameter is not a valid.*"
RULES: Sequence[ResponseRule] = (
    *first_rules("Mailgun"),
    ResponseRule(
        (500,), Kind.AMBIGUOUS, "Mailgun failed, and sometimes sends the message all the same."
    ),
    ResponseRule((200,), Kind.UNAVAILABLE, "Mailgun doesn't know the URL.", field=WRONG_PATH),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "A sandbox domain of Mailgun sends only to recipients that were authorized there.",
        field=TEST_RECIPIENTS,
        reach=Reach.UNCERTAIN,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.TRANSIENT,
        "A limit of the Mailgun account is reached.",
        FailureCode.RATE_LIMITED,
        field=LIMITED,
    ),
    ResponseRule(
        (400,),
        Kind.PERMANENT,
        "The message exceeds Mailgun's size limit.",
        FailureCode.TOO_LARGE,
        field=SIZE,
    ),
    ResponseRule(
        CLIENT_ERRORS, Kind.UNAVAILABLE, "The Mailgun account's plan is used up.", field=QUOTA
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "The domain or the Mailgun account may not send.",
        field=NOT_ALLOWED,
    ),
    ResponseRule(
        (400,),
        Kind.INVALID_RECIPIENT,
        "Mailgun rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Mailgun rejected the configured sender.",
        field=ABOUT_SENDER,
        is_of_scope=True,
    ),
    *last_rules("Mailgun", rejected=(400,), settings="key, domain, or URL"),
)
FAILED = "failed"
PERMANENT_REPLIES = range(500, 600)
OWN_REASONS = frozenset({"old", "suppress-bounce", "suppress-complaint", "suppress-unsubscribe"})
"""Reasons that say more than the severity: the queue's time is over, or Mailgun never tried."""
EVENTS: Mapping[str, EventRule] = {
    "accepted": EventRule(ReceiptKind.QUEUED),
    "delivered": EventRule(ReceiptKind.DELIVERED),
    "opened": EventRule(ReceiptKind.OPENED),
    "clicked": EventRule(ReceiptKind.CLICKED),
    "complained": EventRule(ReceiptKind.COMPLAINED),
    "unsubscribed": EventRule(ReceiptKind.UNSUBSCRIBED),
    "failed permanent": EventRule(ReceiptKind.BOUNCED),
    "failed temporary": EventRule(ReceiptKind.DEFERRED),
    "failed old": EventRule(ReceiptKind.FAILED),
    "failed suppress-bounce": EventRule(ReceiptKind.REJECTED, effect=AddressEffect.HARD_BOUNCE),
    "failed suppress-complaint": EventRule(ReceiptKind.REJECTED, effect=AddressEffect.COMPLAINT),
    "failed suppress-unsubscribe": EventRule(
        ReceiptKind.REJECTED, effect=AddressEffect.UNSUBSCRIBED
    ),
    FAILED: EventRule(ReceiptKind.BOUNCED, effect=AddressEffect.SOFT_BOUNCE),
    "rejected": EventRule(ReceiptKind.REJECTED),
    "stored": EventRule(None),
}
"""By name, and by the severity or the reason of a failure."""


def read_refusal(body: Mapping[str, Any]) -> Refusal:
    """Return the text: there are no codes."""
    return Refusal(text=text_of(body.get("message")))


def event_name(event: Event) -> str:
    """Return the event's name, with what tells failures apart."""
    data = _data(event)
    name, reason = text_of(data["event"]), text_of(data.get("reason"))
    if name != FAILED:
        return name
    return f"{name} {reason if reason in OWN_REASONS else text_of(data.get('severity'))}"


def refine(rule: EventRule, event: Event) -> EventRule:
    """Return the rule of a permanent failure, of which the receiving server's words say more."""
    status = as_object(_data(event).get("delivery-status"))
    text = f"{text_of(status.get('enhanced-code'))} {text_of(status.get('message'))}"
    code = status.get("code")
    is_reply = isinstance(code, int) and code in PERMANENT_REPLIES
    return by_reply(rule, text=text, status=int(code or 0) if is_reply else PERMANENT_FAILURE)


def _data(event: Event) -> Event:
    return as_object(event.get("event-data"))


KIND = EmailKind(
    label="Mailgun",
    backend="anymail.backends.mailgun.EmailBackend",
    webhook="anymail.webhooks.mailgun.MailgunTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    plain_refusals=frozenset({WRONG_PATH}),
    events=EVENTS,
    event_name=event_name,
    refine=refine,
    has_event_ids=True,
    verify=verify_mailgun,
)
