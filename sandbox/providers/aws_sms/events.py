"""The events of AWS SMS, and the messages of people, as they are published to a topic."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...credentials import AwsAccount
from .. import segments
from ..aws import topics
from ..base import InboundMessage
from .validation import PRICE, context

FEE = 0.003
"""US dollars that a carrier takes for each part."""
STOP_WORDS = frozenset(
    {
        "ARRET",
        "CANCEL",
        "END",
        "OPT-OUT",
        "OPTOUT",
        "QUIT",
        "REMOVE",
        "STOP",
        "TD",
        "UNSUBSCRIBE",
    }
)
START_WORDS = frozenset({"START", "UNSTOP"})


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of events, with the text that AWS adds."""

    type: str
    text: str
    is_final: bool = True


KINDS: Mapping[str, Kind] = {
    "queued": Kind("TEXT_QUEUED", "Message is queued", is_final=False),
    "pending": Kind("TEXT_PENDING", "Message is pending", is_final=False),
    "sent": Kind("TEXT_SENT", "Message is sent", is_final=False),
    "successful": Kind("TEXT_SUCCESSFUL", "Message has been accepted by phone carrier"),
    "delivered": Kind("TEXT_DELIVERED", "Message has been delivered"),
    "unknown": Kind("TEXT_UNKNOWN", "Unknown"),
    "unreachable": Kind("TEXT_UNREACHABLE", "Phone is currently unreachable"),
    "carrier-unreachable": Kind("TEXT_CARRIER_UNREACHABLE", "Phone carrier is unreachable"),
    "carrier-retries": Kind(
        "TEXT_CARRIER_UNREACHABLE", "Phone carrier is unreachable", is_final=False
    ),
    "invalid": Kind("TEXT_INVALID", "Invalid phone number"),
    "invalid-message": Kind("TEXT_INVALID_MESSAGE", "Invalid message"),
    "blocked": Kind("TEXT_BLOCKED", "Phone has blocked SMS"),
    "carrier-blocked": Kind("TEXT_CARRIER_BLOCKED", "Phone carrier has blocked the message"),
    "spam": Kind("TEXT_SPAM", "Phone carrier has taken the message for spam"),
    "protect-blocked": Kind("TEXT_PROTECT_BLOCKED", "Blocked by a protect configuration"),
    "ttl-expired": Kind("TEXT_TTL_EXPIRED", "Time to live has expired"),
    "forged": Kind("TEXT_INVALID", "Invalid phone number"),
    "foreign": Kind("TEXT_INVALID", "Invalid phone number"),
}
"""The events by kind."""
MANNERS: Mapping[str, str] = {"forged": topics.FORGED, "foreign": topics.OTHER_TOPIC}
_TEXT = re.compile("TEXT_")


def keyword(text: str) -> str:
    """Return what a message asks for: STOP, START, or nothing."""
    word = text.strip().upper()
    if word in STOP_WORDS:
        return "STOP"
    return "START" if word in START_WORDS else ""


def event(
    kind: str, body: Mapping[str, Any], message_id: str, *, account: AwsAccount, at: datetime
) -> dict[str, Any]:
    """Return an event about a text, as it waits to be posted."""
    found, parts = KINDS[kind], segments.count(body["MessageBody"])
    encoding = segments.encoding(body["MessageBody"])
    time = int(at.timestamp() * 1000)
    return topics.payload(
        {
            "eventType": found.type,
            "eventVersion": "1.0",
            "eventTimestamp": time,
            "isFinal": found.is_final,
            "originationPhoneNumber": body.get("OriginationIdentity", account.number),
            "destinationPhoneNumber": body["DestinationPhoneNumber"],
            "isoCountryCode": "GB",
            "isInternationalSend": False,
            "mcc": "234",
            "mnc": "00",
            "carrierName": "Nobody",
            "messageId": message_id,
            "messageRequestTimestamp": time,
            "messageEncoding": "GSM" if encoding == "GSM-7" else "Unicode",
            "messageType": body.get("MessageType", "TRANSACTIONAL"),
            "messageStatus": _TEXT.sub("", found.type),
            "messageStatusDescription": found.text,
            "context": dict(context(body)),
            "totalMessageParts": parts,
            "totalMessagePrice": round(parts * PRICE, 5),
            "totalCarrierFee": round(parts * FEE, 5),
        },
        manner=MANNERS.get(kind, topics.GENUINE),
    )


def inbound_message(message: InboundMessage, *, sender: str, account: AwsAccount) -> dict[str, Any]:
    """Return a person's message, which has no time."""
    return topics.payload(
        {
            "originationNumber": sender,
            "destinationNumber": account.number,
            "messageKeyword": keyword(message.text) or "KEYWORD_DEFAULT",
            "messageBody": message.text,
            "inboundMessageId": new_id(),
            "previousPublishedMessageId": new_id(),
        }
    )


def new_id() -> str:
    """Return the ID of a new message."""
    text = secrets.token_hex(16)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
