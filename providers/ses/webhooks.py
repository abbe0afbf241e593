"""Reads the events that SES publishes to a topic of SNS.

A bounce tells less than its name. SES reports an automatic answer, such as out of office, as a
transient bounce of a mail that was delivered; and a refusal of our servers or of the content as a
permanent one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import http
from ..aws_sns import Notification
from ..bounces import effect_of, email_address, reply_in
from ..contract import AddressEffect, Receipt, ReceiptKind, WebhookResult
from ..json_items import read_iso_time, read_text

REFERENCE_HEADER = "X-Notify-Reference"
REFERENCE_TAG = "reference"
MAX_TEXT = 200
"""Characters of an ID or a name. SES's are shorter."""
MAX_RECIPIENTS = 100
EVENT_KINDS: Mapping[str, ReceiptKind] = {
    "Send": ReceiptKind.SENT,
    "DeliveryDelay": ReceiptKind.DEFERRED,
    "Delivery": ReceiptKind.DELIVERED,
    "Open": ReceiptKind.OPENED,
    "Click": ReceiptKind.CLICKED,
    "Bounce": ReceiptKind.BOUNCED,
    "Complaint": ReceiptKind.COMPLAINED,
    "Reject": ReceiptKind.REJECTED,
    "Rendering Failure": ReceiptKind.REJECTED,
}
"""By type of the event; further types are ignored."""
BOUNCES: Mapping[str, AddressEffect | None] = {
    "Permanent": AddressEffect.HARD_BOUNCE,
    "Permanent, Suppressed": AddressEffect.HARD_BOUNCE,
    "Permanent, OnAccountSuppressionList": AddressEffect.HARD_BOUNCE,
    "Permanent, UnsubscribedRecipient": AddressEffect.UNSUBSCRIBED,
    "Transient, MailboxFull": AddressEffect.SOFT_BOUNCE,
    "Transient": None,
    "Undetermined": None,
}
"""The effect of a bounce on the address by type and subtype, or else by type. Of a permanent one,
the receiving server's reply says more."""
PERMANENT, TRANSIENT = "Permanent", "Transient"
LISTED = frozenset({"Suppressed", "OnAccountSuppressionList", "UnsubscribedRecipient"})
"""Subtypes of a mail that SES did not send at all."""
_SECTIONS = ("bounce", "complaint", "delivery", "deliveryDelay", "reject", "failure")
_RECIPIENTS: Mapping[str, tuple[str, str]] = {
    "Bounce": ("bounce", "bouncedRecipients"),
    "Complaint": ("complaint", "complainedRecipients"),
    "DeliveryDelay": ("deliveryDelay", "delayedRecipients"),
}
"""Where an event has its recipients, as objects. Others concern all of the mail."""
_TIMES = ("bounce", "complaint", "delivery", "deliveryDelay", "open", "click")


def tag_of(reference: str) -> str:
    """Return a reference as the value of a tag, which may have no full stop."""
    return reference.replace(".", "-")


def describe(notification: Notification) -> Mapping[str, Any] | None:
    """Return what a notification says, for the log: without subject and headers of the mail.

    None if it is no event.
    """
    event = http.decode_object(notification.text.encode(errors="replace"))
    if not event:
        return None
    mail = http.as_object(event.get("mail"))
    return {
        "MessageId": notification.id,
        "eventType": event.get("eventType") or event.get("notificationType"),
        **{name: event[name] for name in _SECTIONS if name in event},
        **{name: _time_of(event[name]) for name in ("open", "click") if name in event},
        "mail": {
            "timestamp": mail.get("timestamp"),
            "messageId": mail.get("messageId"),
            "destination": mail.get("destination"),
        },
        "reference": _reference(mail),
    }


def parse_logged(raw: bytes) -> WebhookResult:
    """Return the receipts of a notification as it is logged. Raises ValueError."""
    event = http.decode_object(raw)
    name = read_text(event, "eventType", limit=MAX_TEXT)
    event_id = read_text(event, "MessageId", limit=MAX_TEXT)
    if name is None or event_id is None:
        raise ValueError("the notification is no event of SES")
    kind = EVENT_KINDS.get(name)
    if kind is None:
        return WebhookResult()
    receipts = _read_event(event, name=name, kind=kind, event_id=event_id)
    return WebhookResult(receipts=tuple(receipts))


def _time_of(section: Any) -> Mapping[str, Any]:
    return {"timestamp": http.as_object(section).get("timestamp")}


def _reference(mail: Mapping[str, Any]) -> str | None:
    """Return the reference of a mail, from its header or else its tag."""
    headers = mail.get("headers")
    for header in headers if isinstance(headers, list) else ():
        if isinstance(header, dict) and header.get("name") == REFERENCE_HEADER:
            return read_text(header, "value", limit=MAX_TEXT)
    values = http.as_object(mail.get("tags")).get(REFERENCE_TAG)
    value = values[0] if isinstance(values, list) and values else None
    return value.replace("-", ".")[:MAX_TEXT] if isinstance(value, str) else None


def _read_event(
    event: Mapping[str, Any], *, name: str, kind: ReceiptKind, event_id: str
) -> Iterator[Receipt]:
    mail = http.as_object(event.get("mail"))
    section, listed = _RECIPIENTS.get(name, ("", ""))
    details = http.as_object(event.get(section)) if section else {}
    times = [http.as_object(event[part]).get("timestamp") for part in _TIMES if part in event]
    at = read_iso_time(next(filter(None, times), None) or mail.get("timestamp"))
    recipients = details.get(listed) if section else mail.get("destination")
    for number, item in enumerate(recipients if isinstance(recipients, list) else [None]):
        if number == MAX_RECIPIENTS:
            return
        recipient = item if isinstance(item, dict) else {"emailAddress": item}
        found = _outcome(kind, details, recipient)
        if found is None:
            continue
        own_kind, effect = found
        reason = _reason(name, event, recipient)
        yield Receipt(
            reference=read_text(event, "reference", limit=MAX_TEXT),
            provider_id=read_text(mail, "messageId", limit=MAX_TEXT),
            kind=own_kind,
            at=at,
            reason=http.excerpt(reason) if reason else None,
            event_id=event_id if number == 0 else f"{event_id}:{number}",
            address=email_address(recipient.get("emailAddress")),
            effect=effect,
        )


def _outcome(
    kind: ReceiptKind, details: Mapping[str, Any], recipient: Mapping[str, Any]
) -> tuple[ReceiptKind, AddressEffect | None] | None:
    """Return the kind and effect of an event, or None if it says nothing."""
    if kind is ReceiptKind.COMPLAINED:
        if details.get("complaintFeedbackType") == "not-spam":
            # Somebody took the mail out of a folder of spam.
            return None
        is_unsent = details.get("complaintSubType") in LISTED
        return ReceiptKind.REJECTED if is_unsent else kind, AddressEffect.COMPLAINT
    if kind is not ReceiptKind.BOUNCED:
        return kind, None
    type_, subtype = details.get("bounceType"), details.get("bounceSubType")
    diagnosis = read_text(recipient, "diagnosticCode", is_prose=True) or ""
    if type_ == TRANSIENT and not (diagnosis or recipient.get("status")):
        # An automatic answer, such as out of office, is no report of a mail server.
        return None
    effect = BOUNCES.get(f"{type_}, {subtype}", BOUNCES.get(str(type_)))
    if type_ == PERMANENT and subtype not in LISTED and diagnosis.strip():
        effect = effect_of(reply_in(diagnosis))
    return (kind, effect) if effect else (ReceiptKind.BLOCKED, None)


def _reason(name: str, event: Mapping[str, Any], recipient: Mapping[str, Any]) -> str | None:
    if name == "Reject":
        return read_text(http.as_object(event.get("reject")), "reason", is_prose=True)
    if name == "Rendering Failure":
        return read_text(http.as_object(event.get("failure")), "errorMessage", is_prose=True)
    bounce, delay = (http.as_object(event.get(part)) for part in ("bounce", "deliveryDelay"))
    types: Sequence[str | None] = (
        read_text(bounce, "bounceType", limit=MAX_TEXT),
        read_text(bounce, "bounceSubType", limit=MAX_TEXT),
        read_text(delay, "delayType", limit=MAX_TEXT),
        read_text(http.as_object(event.get("complaint")), "complaintFeedbackType", limit=MAX_TEXT),
        read_text(recipient, "diagnosticCode", is_prose=True),
    )
    return ". ".join(filter(None, types)) or None
