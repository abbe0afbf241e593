"""Verifies and parses the webhooks of SendGrid's Event Webhook."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from sendgrid.helpers.eventwebhook import EventWebhook

from .. import http
from ..bounces import PERMANENT_FAILURE, SUBJECTS, email_address, subject_of
from ..contract import (
    AddressEffect,
    InvalidSignatureError,
    Receipt,
    ReceiptKind,
    WebhookResult,
)
from ..json_items import read_text, read_time, split_array
from ..mail_replies import Subject

REPLAY_WINDOW = timedelta(minutes=10)
"""A signed webhook whose timestamp differs by more is rejected as a replay."""
SIGNATURE_HEADER = "x-twilio-email-event-webhook-signature"
TIMESTAMP_HEADER = "x-twilio-email-event-webhook-timestamp"
EPOCH = re.compile(r"\d{10}", re.ASCII)
EVENT_KINDS: Mapping[str, ReceiptKind] = {
    "processed": ReceiptKind.QUEUED,
    "deferred": ReceiptKind.DEFERRED,
    "delivered": ReceiptKind.DELIVERED,
    "open": ReceiptKind.OPENED,
    "click": ReceiptKind.CLICKED,
    "bounce": ReceiptKind.BOUNCED,
    "blocked": ReceiptKind.BLOCKED,
    "dropped": ReceiptKind.REJECTED,
    "spamreport": ReceiptKind.COMPLAINED,
    "unsubscribe": ReceiptKind.UNSUBSCRIBED,
    "group_unsubscribe": ReceiptKind.UNSUBSCRIBED,
}
"""By event name. A bounce of type ``blocked`` counts as the event ``blocked``, and so does one that
says nothing about the address."""
CLASSIFICATIONS: Mapping[str, AddressEffect | None] = {
    "Invalid Address": AddressEffect.HARD_BOUNCE,
    "Mailbox Unavailable": AddressEffect.SOFT_BOUNCE,
    "Content": None,
    "Reputation": None,
    "Technical": None,
    "Technical Failure": None,
    "Frequency or Volume Too High": None,
}
"""The effect of a bounce on the address by SendGrid's classification. Without one, and with any
other, the receiving server's words and code decide."""
DROP_REASONS: Mapping[str, AddressEffect] = {
    "Bounced Address": AddressEffect.HARD_BOUNCE,
    "Spam Reporting Address": AddressEffect.COMPLAINT,
    "Unsubscribed Address": AddressEffect.UNSUBSCRIBED,
    "Invalid": AddressEffect.SOFT_BOUNCE,
}
"""The effect of a drop on the address: SendGrid doesn't send to it either. Other reasons, such as
the account's quota or spam in the content, aren't the address's."""
OTHER_TYPES = frozenset({"blocked", "expired"})
"""Types of a bounce that say nothing about the address. Older ones begin with a capital."""
MAX_TEXT = 200
"""Characters of an ID or a name. SendGrid's are shorter."""
_CLASSIFICATIONS = {name.lower(): effect for name, effect in CLASSIFICATIONS.items()}
_DROP_REASONS = {name.lower(): effect for name, effect in DROP_REASONS.items()}
_STATUS = re.compile(r"\s*([45]\d\d)\b[ -]?")
_SERVER = re.compile(r"filter|recvd|geopod|ismtpd", re.IGNORECASE)


def verify(headers: Mapping[str, str], raw: bytes, *, public_key: str, now: datetime) -> None:
    """Raise InvalidSignatureError unless SendGrid signed this body within REPLAY_WINDOW."""
    if not public_key:
        raise InvalidSignatureError("no public key is configured")
    timestamp = headers.get(TIMESTAMP_HEADER, "")
    if not EPOCH.fullmatch(timestamp):
        raise InvalidSignatureError("the timestamp is missing or invalid")
    if abs(now - datetime.fromtimestamp(int(timestamp), UTC)) > REPLAY_WINDOW:
        raise InvalidSignatureError("the timestamp differs by more than 10 minutes")
    try:
        verifier = _verifier(public_key)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidSignatureError("the configured public key is invalid") from error
    signature = headers.get(SIGNATURE_HEADER, "")
    try:
        is_genuine = verifier.verify_signature(raw.decode(), signature, timestamp)
    except (ValueError, TypeError, AttributeError) as error:
        # TypeError and AttributeError: a public key of another kind.
        raise InvalidSignatureError("the signature is malformed") from error
    if not is_genuine:
        raise InvalidSignatureError("the signature is wrong")


def parse_webhook(raw: bytes) -> WebhookResult:
    """Return the receipts of a webhook body. Raises ValueError if it is no list of events.

    One SendGrid account may serve several applications, whose custom arguments stand among an
    event's fields. An event that can't be read is counted, and others take effect.
    """
    receipts, unreadable = [], 0
    for item in split_array(raw):
        try:
            receipt = _read_event(item)
        except (ValueError, OverflowError, RecursionError):
            unreadable += 1
            continue
        if receipt is not None:
            receipts.append(receipt)
    return WebhookResult(receipts=tuple(receipts), unreadable_count=unreadable)


@lru_cache(maxsize=32)
def _verifier(public_key: str) -> EventWebhook:
    return EventWebhook(public_key)


def _read_event(item: bytes) -> Receipt | None:
    """Return the receipt of one event, None for a kind without effect. Raises ValueError."""
    try:
        event = msgspec.json.decode(item)
    except msgspec.DecodeError:
        # It takes no text that was cut within an emoji, which another application's may be.
        event = json.loads(item)
    name = read_text(event, "event", limit=MAX_TEXT) if isinstance(event, dict) else None
    if name is None:
        raise ValueError("an event is an object with a name")
    at = read_time(event.get("timestamp"))
    if name not in EVENT_KINDS or event.get("sg_machine_open") is True:
        # Apple's servers load the images of all mail: nobody opened it.
        return None
    kind, reason = EVENT_KINDS[name], read_text(event, "reason", is_prose=True)
    effect = None
    if kind is ReceiptKind.REJECTED and reason is not None:
        effect = _DROP_REASONS.get(reason.strip().lower())
    elif kind is ReceiptKind.BOUNCED:
        effect = _bounce_effect(event, reason or "")
        kind = kind if effect else ReceiptKind.BLOCKED
    ids = list(_message_ids(read_text(event, "sg_message_id", limit=MAX_TEXT) or ""))
    return Receipt(
        reference=read_text(event, "reference", limit=MAX_TEXT),
        provider_id=ids[0] if ids else None,
        other_ids=tuple(ids[1:]),
        kind=kind,
        at=at,
        reason=http.excerpt(reason) if reason else None,
        # Without an ID, an equal event counts once.
        event_id=read_text(event, "sg_event_id", limit=MAX_TEXT)
        or hashlib.sha256(item).hexdigest(),
        address=email_address(event.get("email")),
        effect=effect,
    )


def _bounce_effect(event: Mapping[str, Any], reason: str) -> AddressEffect | None:
    """Return what a bounce says about the address, None if it is not about the address."""
    if (read_text(event, "type", limit=MAX_TEXT) or "").lower() in OTHER_TYPES:
        return None
    code = read_text(event, "status", limit=MAX_TEXT) or ""
    found = _STATUS.match(reason) or _STATUS.match(code)
    text = f"{code} {reason[found.end() :] if found and _STATUS.match(reason) else reason}"
    status = int(found[1]) if found else PERMANENT_FAILURE
    subject = subject_of(status, text)
    if subject is Subject.ACCOUNT:
        return None
    classification = (read_text(event, "bounce_classification", limit=MAX_TEXT) or "").lower()
    if classification in _CLASSIFICATIONS:
        return _CLASSIFICATIONS[classification]
    if subject is Subject.UNCLEAR and not reason.strip():
        # SendGrid calls it permanent, and nothing contradicts it.
        return AddressEffect.HARD_BOUNCE
    return SUBJECTS.get(subject)


def _message_ids(text: str) -> Iterator[str]:
    """Yield the X-Message-Id values that an sg_message_id may begin with, the likeliest first.

    SendGrid appends the name of a server to it, such as ``.filter0001`` or ``.recvd-5f54b5d587``,
    and more. An older X-Message-Id has dots itself.
    """
    parts = text.split(".")
    server = next((n for n, part in enumerate(parts) if _SERVER.match(part)), 1)
    for count in (server, *(n for n in range(len(parts), 0, -1) if n != server)):
        if joined := ".".join(parts[:count]):
            yield joined
