"""SendGrid's events: their content, signature, and encoding."""

import base64
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiohttp
import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

SIGNATURE = "X-Twilio-Email-Event-Webhook-Signature"
TIMESTAMP = "X-Twilio-Email-Event-Webhook-Timestamp"
_BROWSER = {"useragent": "Mozilla/5.0 (sandbox)", "ip": "192.0.2.80"}
_SMTP_FIELDS = {"ip": "192.0.2.25", "tls": 1}

DETAILS: Mapping[str, Mapping[str, Any]] = {
    "processed": {},
    "deferred": {"response": "450 4.2.1 The mailbox is busy; try again later", **_SMTP_FIELDS},
    "delivered": {"response": "250 2.0.0 OK: queued", **_SMTP_FIELDS},
    "bounce": {
        "reason": "550 5.1.1 The email account that you tried to reach does not exist",
        "status": "5.1.1",
        "type": "bounce",
        "bounce_classification": "Invalid Address",
        **_SMTP_FIELDS,
    },
    "blocked": {
        "reason": "554 5.7.1 The message was blocked by the receiver's policy",
        "status": "5.7.1",
        "type": "blocked",
        "bounce_classification": "Content",
        **_SMTP_FIELDS,
    },
    "bounce-by-mail": {
        "reason": "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found",
        "status": "5.1.10",
        "type": "bounce",
    },
    "full": {
        "reason": "552 5.2.2 The mailbox is over its quota",
        "status": "5.2.2",
        "type": "bounce",
        "bounce_classification": "Mailbox Unavailable",
        **_SMTP_FIELDS,
    },
    "refused-sender": {
        "reason": "550 5.7.1 Service unavailable; client [192.0.2.25] blocked using a blocklist",
        "status": "5.7.1",
        "type": "bounce",
        "bounce_classification": "Reputation",
        **_SMTP_FIELDS,
    },
    "dropped": {"reason": "Bounced Address", "status": "5.0.0"},
    "dropped-quota": {"reason": "Recipient List over Package Quota", "status": "5.0.0"},
    "dropped-complaint": {"reason": "Spam Reporting Address", "status": "5.0.0"},
    "foreign": {
        "email": "someone@example.net",
        "reference": 106,
        "type": 3,
        "reason": {"code": 1},
        "category": ["news", 7],
    },
    "unreadable": {"event": None, "timestamp": "soon"},
    "spamreport": {},
    "unsubscribe": {},
    "group_unsubscribe": {"asm_group_id": 1, **_BROWSER},
    "group_resubscribe": {"asm_group_id": 1, **_BROWSER},
    "open": {"sg_machine_open": False, **_BROWSER},
    "machine-open": {"sg_machine_open": True, **_BROWSER},
    "click": {
        "url": "https://example.com/",
        "url_offset": {"index": 0, "type": "html"},
        **_BROWSER,
    },
}
"""The additional fields of each kind of event. ``blocked`` is a bounce of type blocked."""
EVENT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("blocked", "bounce-by-mail", "full", "refused-sender"), "bounce"),
    **dict.fromkeys(("dropped-quota", "dropped-complaint"), "dropped"),
    "foreign": "processed",
    "machine-open": "open",
}
"""The names of events whose kind has another."""
BY_MAIL = "bounce-by-mail"
"""This bounce came to the return path: it has no ID and no custom arguments."""


def payload(
    kind: str, *, address: str, message_id: str, args: Mapping[str, Any], attempt: int = 1
) -> dict[str, Any]:
    """Return an event with the time 0, which is set when the event is sent."""
    event = {
        **args,
        "email": address,
        "timestamp": 0,
        "smtp-id": f"<{message_id}@geopod-ismtpd-0>",
        "event": EVENT_NAMES.get(kind, kind),
        "sg_event_id": secrets.token_urlsafe(24),
        "sg_message_id": f"{message_id}.recvd-sandbox-1-{secrets.token_hex(4).upper()}-1.0",
        **DETAILS[kind],
    }
    if kind == "deferred":
        event["attempt"] = str(attempt)
    if kind == BY_MAIL:
        event = {name: value for name, value in event.items() if name not in {*args, "smtp-id"}}
        event["sg_message_id"] = ""
    return event


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedWebhooks:
    """The format of SendGrid's signed event webhook."""

    private_key: ec.EllipticCurvePrivateKey
    batch: int = 100

    async def prepare(self, session: aiohttp.ClientSession, url: str) -> None:
        """Do nothing: SendGrid requires no handshake."""

    def stamp(self, payload: dict[str, Any], *, now: datetime) -> None:
        """Set the event's time, unless it has one."""
        payload["timestamp"] = payload["timestamp"] or int(now.timestamp())

    def encode(self, payloads: Sequence[Mapping[str, Any]]) -> bytes:
        """Return a JSON list and a line break, which SendGrid adds and signs."""
        return msgspec.json.encode(payloads) + b"\r\n"

    def headers(self, body: bytes, *, url: str, now: datetime) -> dict[str, str]:
        """Return the headers of a POST, with the signature of ``now`` and ``body``."""
        timestamp = str(int(now.timestamp()))
        signature = self.private_key.sign(timestamp.encode() + body, ec.ECDSA(hashes.SHA256()))
        return {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "SendGrid Event API",
            SIGNATURE: base64.b64encode(signature).decode(),
            TIMESTAMP: timestamp,
        }

    def may_repeat(self, url: str, *, status: int | None, repeats: int) -> bool:
        """Return True: a POST is repeated for ``retry_timeout``."""
        return True
