"""Resend's answers and events."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from domain.errors import Reach

from ..bounces import reply_in
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
from ..email_webhooks import verify_standard
from ..http import as_object
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule

ABOUT_RECIPIENT = r"(?is)Invalid `?to`? field.*"
ABOUT_SENDER = r"(?is)(Invalid `?from`? field|The .{1,253} domain is not verified).*"
ABOUT_KEY = r"(?is)API key is invalid.*"
TEST_RECIPIENTS = r"(?is).*only send testing emails.*"
RULES: Sequence[ResponseRule] = (
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "The quota of the Resend account is used up.",
        field="daily_quota_exceeded|monthly_quota_exceeded",
    ),
    *first_rules("Resend"),
    ResponseRule(
        (409,),
        Kind.TRANSIENT,
        "An earlier attempt of this email is still under way at Resend.",
        field="concurrent_idempotent_requests",
    ),
    ResponseRule(
        (409,),
        Kind.AMBIGUOUS,
        "An earlier attempt had another content: Resend may have sent that.",
        field="invalid_idempotent_request",
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "The Resend account sends only to its owner until a domain is verified.",
        field=TEST_RECIPIENTS,
        reach=Reach.UNCERTAIN,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Resend rejected the configured sender.",
        field="invalid_from_address",
        is_of_scope=True,
    ),
    ResponseRule(
        CLIENT_ERRORS,
        Kind.UNAVAILABLE,
        "Resend rejected the configured sender.",
        field=ABOUT_SENDER,
        is_of_scope=True,
    ),
    ResponseRule(CLIENT_ERRORS, Kind.UNAVAILABLE, "Resend rejected the API key.", field=ABOUT_KEY),
    ResponseRule(
        (400, 422),
        Kind.INVALID_RECIPIENT,
        "Resend rejected the recipient's address.",
        field=ABOUT_RECIPIENT,
    ),
    *last_rules("Resend", rejected=(400, 422, 451)),
)
BOUNCED = "email.bounced"
OF_THE_CONTENT = frozenset({"ContentRejected", "AttachmentRejected", "MessageTooLarge"})
"""Subtypes of a bounce that isn't about the address."""
LISTED = frozenset({"Suppressed", "OnAccountSuppressionList"})
"""Subtypes of a mail that was not sent at all."""
SOFT = AddressEffect.SOFT_BOUNCE
EVENTS: Mapping[str, EventRule] = {
    "email.scheduled": EventRule(None),
    "email.sent": EventRule(ReceiptKind.SENT),
    "email.delivered": EventRule(ReceiptKind.DELIVERED),
    "email.delivery_delayed": EventRule(ReceiptKind.DEFERRED),
    "email.opened": EventRule(ReceiptKind.OPENED),
    "email.clicked": EventRule(ReceiptKind.CLICKED),
    "email.complained": EventRule(ReceiptKind.COMPLAINED),
    "email.bounced Permanent": EventRule(ReceiptKind.BOUNCED),
    "email.bounced Transient": EventRule(ReceiptKind.BOUNCED, effect=SOFT),
    BOUNCED: EventRule(ReceiptKind.BOUNCED, effect=SOFT),
    "email.suppressed": EventRule(ReceiptKind.REJECTED, effect=AddressEffect.HARD_BOUNCE),
    "email.failed": EventRule(ReceiptKind.FAILED),
    "email.received": EventRule(None),
}
"""By type, and by the type of a bounce, of which ``email.bounced`` stands for any other."""


def read_refusal(body: Mapping[str, Any]) -> Refusal:
    """Return the name of the error and the text."""
    return Refusal(code=text_of(body.get("name")) or None, text=text_of(body.get("message")))


def event_name(event: Event) -> str:
    """Return the type, with that of a bounce. Older events have only a text about it."""
    name = text_of(event["type"])
    if name != BOUNCED:
        return name
    bounce = _bounce(event)
    kind = text_of(bounce.get("type"))
    if not kind:
        text = text_of(bounce.get("message")).lower()
        is_final = "hard bounce" in text or "suppressed sending" in text
        kind = "Permanent" if is_final else "Transient"
    return f"{name} {kind}"


def refine(rule: EventRule, event: Event) -> EventRule:
    """Return the rule of a bounce, of which its subtype and the receiving server say more."""
    bounce = _bounce(event)
    subtype = text_of(bounce.get("subType"))
    if rule.kind is ReceiptKind.BOUNCED and subtype in OF_THE_CONTENT:
        return replace(rule, kind=ReceiptKind.BLOCKED, effect=None)
    found = bounce.get("diagnosticCode")
    diagnostics = map(text_of, found if isinstance(found, list) else [found])
    text = " ".join(map(reply_in, diagnostics))
    return rule if subtype in LISTED else by_reply(rule, text=text)


def _bounce(event: Event) -> Mapping[str, Any]:
    return as_object(as_object(event.get("data")).get("bounce"))


def _key(request: SendRequest) -> Mapping[str, str]:
    return {"Idempotency-Key": request.key}


KIND = EmailKind(
    label="Resend",
    backend="anymail.backends.resend.EmailBackend",
    webhook="anymail.webhooks.resend.ResendTrackingWebhookView",
    rules=RULES,
    read_refusal=read_refusal,
    events=EVENTS,
    event_name=event_name,
    refine=refine,
    verify=verify_standard,
    idempotency=timedelta(hours=24),
    request_headers=_key,
    types_follow_names=True,
)
