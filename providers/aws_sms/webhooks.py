"""Reads what AWS publishes to a topic of SNS: events of messages, and what people write."""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from domain.addresses import E164
from domain.errors import FailureCode

from .. import http
from ..aws_sns import Notification
from ..contract import AddressEffect, Receipt, ReceiptKind, WebhookResult
from ..inbound import Inbound, MarketingPreference
from ..json_items import read_iso_time, read_text, read_time

REFERENCE_KEY = "ref"
"""Of the context, which each event of a message has."""
MAX_TEXT = 200
"""Characters of an ID or a name. AWS's are shorter."""
MAX_PARTS = 1_000
MAX_PRICE = 1_000.0
CURRENCY = "USD"
OPT_OUT_WORDS = frozenset(
    {
        "arret",
        "cancel",
        "end",
        "opt-out",
        "optout",
        "quit",
        "remove",
        "stop",
        "td",
        "unsubscribe",
    }
)
"""The first word of what a person writes so that AWS sends nothing more."""
OPT_IN_WORDS = frozenset({"start", "unstop"})
_INTENTS: Mapping[str, bool] = {"STOP": False, "START": True}
_ID = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)
_FIELDS = (
    "eventType",
    "eventTimestamp",
    "isFinal",
    "messageId",
    "messageStatus",
    "messageStatusDescription",
    "destinationPhoneNumber",
    "originationPhoneNumber",
    "isoCountryCode",
    "carrierName",
    "messageEncoding",
    "totalMessageParts",
    "totalMessagePrice",
    "totalCarrierFee",
)
"""What an event has that is logged."""


@dataclass(frozen=True, slots=True)
class EventRule:
    """The meaning of a type of events."""

    kind: ReceiptKind
    reason: str | None = None
    code: FailureCode | None = None
    _: KW_ONLY
    effect: AddressEffect | None = None


EVENT_RULES: Mapping[str, EventRule] = {
    "TEXT_QUEUED": EventRule(ReceiptKind.QUEUED),
    "TEXT_PENDING": EventRule(ReceiptKind.QUEUED),
    "TEXT_SENT": EventRule(ReceiptKind.SENT),
    "TEXT_SUCCESSFUL": EventRule(ReceiptKind.SENT),
    "TEXT_DELIVERED": EventRule(ReceiptKind.DELIVERED),
    "TEXT_UNKNOWN": EventRule(ReceiptKind.SENT, "The carrier said nothing for three days."),
    "TEXT_UNREACHABLE": EventRule(
        ReceiptKind.FAILED,
        "The phone is off, or has no signal.",
        FailureCode.REPORTED_FAILED,
        effect=AddressEffect.SOFT_BOUNCE,
    ),
    "TEXT_CARRIER_UNREACHABLE": EventRule(
        ReceiptKind.FAILED,
        "The carrier was congested, or didn't respond.",
        FailureCode.REPORTED_FAILED,
    ),
    "TEXT_INVALID": EventRule(
        ReceiptKind.FAILED,
        "The carrier doesn't know the number.",
        FailureCode.REPORTED_FAILED,
        effect=AddressEffect.PROBABLE_BOUNCE,
    ),
    "TEXT_INVALID_MESSAGE": EventRule(
        ReceiptKind.FAILED, "The carrier rejected the text.", FailureCode.FILTERED
    ),
    "TEXT_BLOCKED": EventRule(
        ReceiptKind.BLOCKED, "The carrier or the person blocks the sender.", FailureCode.BLOCKED
    ),
    "TEXT_CARRIER_BLOCKED": EventRule(
        ReceiptKind.FAILED, "The carrier blocked the text.", FailureCode.FILTERED
    ),
    "TEXT_SPAM": EventRule(
        ReceiptKind.FAILED, "The carrier filtered the text as spam.", FailureCode.FILTERED
    ),
    "TEXT_PROTECT_BLOCKED": EventRule(
        ReceiptKind.FAILED,
        "A protect configuration of AWS blocks the recipient's country or number.",
        FailureCode.DESTINATION_DISABLED,
    ),
    "TEXT_TTL_EXPIRED": EventRule(
        ReceiptKind.FAILED,
        "The message expired before the carrier took it.",
        FailureCode.REPORTED_FAILED,
    ),
}
"""By type of the event; further types are ignored."""
FAILURES = (ReceiptKind.FAILED, ReceiptKind.BLOCKED)


def describe(notification: Notification) -> Mapping[str, Any] | None:
    """Return what a notification says, for the log: without what people wrote.

    None if it is no object. AWS gives a person's message no time, so that of SNS counts.
    """
    found = http.decode_object(notification.text.encode(errors="replace"))
    if not found:
        return None
    if "inboundMessageId" in found:
        return {
            "at": notification.at.isoformat(),
            "inboundMessageId": found["inboundMessageId"],
            "originationNumber": found.get("originationNumber"),
            "destinationNumber": found.get("destinationNumber"),
            "intent": _intent(found),
        }
    logged = {name: found[name] for name in _FIELDS if name in found}
    reference = http.as_object(found.get("context")).get(REFERENCE_KEY)
    return logged | {REFERENCE_KEY: reference}


def _intent(found: Mapping[str, Any]) -> str | None:
    """Return what a person asks for by the first word of a message, as AWS does."""
    text = (read_text(found, "messageBody", is_prose=True) or "").lower()
    word = next(iter(text.split()), "").strip(".,!")
    if word in OPT_OUT_WORDS:
        return "STOP"
    return "START" if word in OPT_IN_WORDS else None


def parse_logged(raw: bytes) -> WebhookResult:
    """Return the contents of a notification as it is logged. Raises ValueError."""
    found = http.decode_object(raw)
    if "inboundMessageId" in found:
        return _parse_inbound(found)
    name = read_text(found, "eventType", limit=MAX_TEXT)
    if name is None:
        raise ValueError("the notification is no event of an SMS")
    rule = EVENT_RULES.get(name)
    if rule is None:
        return WebhookResult()
    return WebhookResult(receipts=(_build_receipt(found, name, rule),))


def _build_receipt(found: Mapping[str, Any], name: str, rule: EventRule) -> Receipt:
    message_id = read_text(found, "messageId", limit=MAX_TEXT) or ""
    if not _ID.fullmatch(message_id):
        raise ValueError("the event has no message ID")
    to = read_text(found, "destinationPhoneNumber", limit=MAX_TEXT) or ""
    # AWS tries on after a failure that isn't final.
    is_deferred = rule.kind in FAILURES and found.get("isFinal") is False
    cost = _cost(found)
    return Receipt(
        reference=read_text(found, REFERENCE_KEY, limit=MAX_TEXT),
        provider_id=message_id,
        kind=ReceiptKind.DEFERRED if is_deferred else rule.kind,
        at=_time(found.get("eventTimestamp")),
        reason=rule.reason,
        # AWS publishes the same event again, in another notification.
        event_id=f"{message_id}:{name}{':deferred' if is_deferred else ''}",
        address=to if E164.fullmatch(to) else None,
        effect=None if is_deferred else rule.effect,
        code=None if is_deferred else rule.code,
        units=_parts(found.get("totalMessageParts")),
        cost=cost,
        currency=None if cost is None else CURRENCY,
    )


def _time(value: Any) -> datetime:
    """Return a time in milliseconds. Raises ValueError."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return read_time(value / 1000 if is_number else None)


def _parts(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 < value < MAX_PARTS else None


def _cost(found: Mapping[str, Any]) -> Decimal | None:
    """Return the price of all parts with the carrier's fee, or None if AWS doesn't know it."""
    price, fee = (_price(found.get(name)) for name in ("totalMessagePrice", "totalCarrierFee"))
    return None if price is None else price + (fee or Decimal(0))


def _price(value: Any) -> Decimal | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(repr(value)) if is_number and 0 <= value < MAX_PRICE else None


def _parse_inbound(found: Mapping[str, Any]) -> WebhookResult:
    at = read_iso_time(found.get("at"))
    intent, sender = read_text(found, "intent"), read_text(found, "originationNumber") or ""
    wanted = _INTENTS.get(intent or "")
    if wanted is None or not E164.fullmatch(sender):
        return WebhookResult(inbound=Inbound())
    event_id = read_text(found, "inboundMessageId", limit=MAX_TEXT) or ""
    preference = MarketingPreference(phone=sender, is_wanted=wanted, at=at, event_id=event_id)
    return WebhookResult(inbound=Inbound(preferences=(preference,)))
