"""The events that SES publishes to a topic."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..aws import topics

SUBJECT = "Amazon SES Email Event Notification"
KINDS: Mapping[str, str] = {
    "send": "Send",
    "delivery": "Delivery",
    "delay": "DeliveryDelay",
    "reject": "Reject",
    "open": "Open",
    "click": "Click",
    **dict.fromkeys(("complaint", "not-spam"), "Complaint"),
    **dict.fromkeys(
        (
            "bounce",
            "suppressed",
            "blocked",
            "transient",
            "full",
            "undetermined",
            "out-of-office",
            "forged-bounce",
            "foreign-bounce",
        ),
        "Bounce",
    ),
}
"""The types of events by kind."""
MANNERS: Mapping[str, str] = {
    "forged-bounce": topics.FORGED,
    "foreign-bounce": topics.OTHER_TOPIC,
}
_UNKNOWN_USER = ("Permanent", "General", "5.1.1", "smtp; 550 5.1.1 user unknown")
BOUNCES: Mapping[str, tuple[str, str, str, str]] = {
    "bounce": _UNKNOWN_USER,
    "forged-bounce": _UNKNOWN_USER,
    "foreign-bounce": _UNKNOWN_USER,
    "suppressed": (
        "Permanent",
        "OnAccountSuppressionList",
        "5.1.1",
        "The address is on the suppression list for your account.",
    ),
    "blocked": (
        "Permanent",
        "General",
        "5.7.1",
        "smtp; 550 5.7.1 Service unavailable; client [192.0.2.25] blocked using a blocklist",
    ),
    "transient": ("Transient", "General", "4.4.7", "smtp; 450 4.4.7 Message expired"),
    "full": ("Transient", "MailboxFull", "5.2.2", "smtp; 552 5.2.2 Mailbox full"),
    "undetermined": ("Undetermined", "Undetermined", "", ""),
    "out-of-office": ("Transient", "General", "", ""),
}
"""Type, subtype, status, and reply of each kind of bounce."""
_CONFIGURATION_SET = "ses:configuration-set"


def event(
    kind: str,
    *,
    address: str,
    message_id: str,
    headers: list[tuple[str, str]],
    tags: Mapping[str, str],
    configuration_set: str,
    at: datetime,
) -> dict[str, Any]:
    """Return an event, as it waits to be posted."""
    time = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
    found = {name.lower(): value for name, value in headers}
    mail = {
        "timestamp": time,
        "source": found.get("from", ""),
        "sourceArn": "arn:aws:ses:eu-west-1:000000000000:identity/example.com",
        "sendingAccountId": "000000000000",
        "messageId": message_id,
        "destination": [address],
        "headersTruncated": False,
        "headers": [{"name": name, "value": value} for name, value in headers],
        "commonHeaders": {"subject": found.get("subject", ""), "messageId": message_id},
        "tags": {
            _CONFIGURATION_SET: [configuration_set],
            **{name: [value] for name, value in tags.items()},
        },
    }
    section = _section(kind, address=address, time=time)
    body = {"eventType": KINDS[kind], "mail": mail, **section}
    return topics.payload(body, subject=SUBJECT, manner=MANNERS.get(kind, topics.GENUINE))


def _section(kind: str, *, address: str, time: str) -> dict[str, Any]:
    recipient = {"emailAddress": address}
    sections: Mapping[str, Mapping[str, Any]] = {
        "Send": {"send": {}},
        "Delivery": {
            "delivery": {
                "timestamp": time,
                "recipients": [address],
                "smtpResponse": "250 2.0.0 OK",
                "reportingMTA": "mta.example.com",
            }
        },
        "DeliveryDelay": {
            "deliveryDelay": {
                "timestamp": time,
                "delayType": "TransientCommunicationFailure",
                "delayedRecipients": [
                    {**recipient, "status": "4.2.1", "diagnosticCode": "smtp; 450 4.2.1 busy"}
                ],
            }
        },
        "Complaint": {
            "complaint": {
                "complainedRecipients": [recipient],
                "timestamp": time,
                "feedbackId": "sandbox",
                "complaintSubType": None,
                "complaintFeedbackType": "not-spam" if kind == "not-spam" else "abuse",
            }
        },
        "Reject": {"reject": {"reason": "Bad content"}},
        "Open": {"open": {"timestamp": time, "ipAddress": "192.0.2.80"}},
        "Click": {"click": {"timestamp": time, "ipAddress": "192.0.2.80"}},
    }
    if kind in BOUNCES:
        return {"bounce": _bounce(kind, address=address, time=time)}
    return dict(sections[KINDS[kind]])


def _bounce(kind: str, *, address: str, time: str) -> dict[str, Any]:
    type_, subtype, status, reply = BOUNCES[kind]
    recipient = {"emailAddress": address}
    if reply:
        recipient |= {"action": "failed", "status": status, "diagnosticCode": reply}
    return {
        "bounceType": type_,
        "bounceSubType": subtype,
        "bouncedRecipients": [recipient],
        "timestamp": time,
        "feedbackId": "sandbox",
    }
