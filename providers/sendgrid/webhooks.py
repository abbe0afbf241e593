"""Verifies and parses the webhooks of SendGrid's Event Webhook."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from msgspec import Meta
from sendgrid.helpers.eventwebhook import EventWebhook

from .. import http
from ..contract import InvalidSignatureError, Receipt, ReceiptKind

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
"""By event name. A bounce of type ``blocked`` counts as the event ``blocked``."""


class _Event(msgspec.Struct):
    event: str
    timestamp: Annotated[int, Meta(ge=0, lt=10**11)]
    sg_event_id: str
    sg_message_id: str = ""
    reference: str | None = None
    email: str | None = None
    reason: str | None = None
    type: str | None = None


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


def parse_receipts(raw: bytes) -> list[Receipt]:
    """Return the receipts of a webhook body. Raises ValueError."""
    try:
        events = msgspec.json.decode(raw, type=list[_Event])
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    return [_build_receipt(event, kind) for event in events if (kind := _receipt_kind(event))]


@lru_cache(maxsize=4)
def _verifier(public_key: str) -> EventWebhook:
    return EventWebhook(public_key)


def _receipt_kind(event: _Event) -> ReceiptKind | None:
    name = event.type if event.event == "bounce" and event.type == "blocked" else event.event
    return EVENT_KINDS.get(name)


def _build_receipt(event: _Event, kind: ReceiptKind) -> Receipt:
    return Receipt(
        reference=event.reference,
        # X-Message-Id is the part of sg_message_id before its first dot.
        provider_id=event.sg_message_id.partition(".")[0] or None,
        kind=kind,
        at=datetime.fromtimestamp(event.timestamp, UTC),
        reason=http.excerpt(event.reason) if event.reason else None,
        event_id=event.sg_event_id,
        address=event.email,
    )
