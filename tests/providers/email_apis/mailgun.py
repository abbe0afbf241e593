"""Mailgun's answers and events, as its documents, its SDKs, and its users show them."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from providers.contract import AddressEffect, ReceiptKind
from providers.mailgun.kind import KIND
from tests.providers.email_apis.kinds import (
    ADDRESS,
    KEY,
    NOW,
    PASSWORD,
    REFERENCE,
    Answer,
    KindCase,
    Reported,
)

F, K = FailureCode, ReceiptKind
SIGNING_KEY = "a-signing-key-of-tests"
MESSAGE_ID = "<20261121120000.1.503C8E4D@example.com>"


def refused(
    status: int,
    text: str,
    error: type[ProviderError] = ProviderUnavailableError,
    code: FailureCode = F.CHANNEL_UNAVAILABLE,
    **fields: Any,
) -> Answer:
    return Answer(status=status, body={"message": text}, error=error, code=code, **fields)


SANDBOX = "Sandbox subdomains are for test purposes only. Please add your own domain or add…"
ANSWERS = (
    refused(
        429,
        "Too many requests",
        TransientError,
        F.RATE_LIMITED,
        headers={"retry-after": "7"},
        retry_after=7.0,
    ),
    Answer(status=408, body="", error=TransientError, code=F.PROVIDER_ERROR),
    refused(500, "Internal", TransientError, F.PROVIDER_ERROR, is_ambiguous=True),
    Answer(status=503, body="", error=TransientError, code=F.PROVIDER_ERROR),
    Answer(
        status=200,
        body="Mailgun Magnificent API",
        error=ProviderUnavailableError,
        code=F.CHANNEL_UNAVAILABLE,
    ),
    Answer(
        status=401, body="Forbidden", error=ProviderUnavailableError, code=F.CHANNEL_UNAVAILABLE
    ),
    refused(402, "Payment required"),
    refused(404, "Domain not found: shop.example"),
    refused(403, f"Domain sandbox1.mailgun.org is not allowed to send: {SANDBOX}"),
    refused(400, SANDBOX),
    refused(400, "Domain shop.example is not allowed to send: The domain is unverified."),
    refused(403, "Your account is disabled."),
    *(
        refused(400, text, PermanentError, F.TOO_LARGE)
        for text in ("Message size limit exceeded", "The attachment is too large")
    ),
    *(
        refused(400, text)
        for text in (
            "Your plan's monthly limit is exceeded.",
            "You have reached your daily sending limit.",
            "Free accounts are for 100 messages: the limit has been reached.",
        )
    ),
    refused(
        403,
        "Domain shop.example is not allowed to send: recipient limit exceeded, try again after",
        TransientError,
        F.RATE_LIMITED,
    ),
    refused(
        400, "Recipient limit exceeded. Try again after 10 minutes.", TransientError, F.RATE_LIMITED
    ),
    refused(
        400,
        "to parameter is not a valid address. please check documentation",
        InvalidRecipientError,
        F.INVALID_RECIPIENT,
    ),
    refused(
        400, "'to' parameter is not a valid address.", InvalidRecipientError, F.INVALID_RECIPIENT
    ),
    refused(400, "'from' parameter is not a valid address. please check documentation"),
    Answer(status=413, body="", error=PermanentError, code=F.TOO_LARGE),
    refused(400, "Header name must be pure ASCII: h:X-é", PermanentError, F.REJECTED),
    refused(
        400,
        "Send options (parameters starting with o:, h:, or v:) are limited to 16 kB total",
        PermanentError,
        F.REJECTED,
    ),
    *(
        Answer(
            status=200, body=body, error=TransientError, code=F.PROVIDER_ERROR, is_ambiguous=True
        )
        for body in ("", "{}", "[]", "<html></html>", '{"id": "<1@x>", "message": "Odd"}')
    ),
)


def event(name: str, **data: Any) -> dict[str, Any]:
    return {
        "event-data": {
            "id": "W3X4JOhFT-OZidZGKKr9iA",
            "event": name,
            "timestamp": NOW.timestamp() + 0.377,
            "recipient": ADDRESS,
            "message": {"headers": {"message-id": MESSAGE_ID.strip("<>"), "to": ADDRESS}},
            "user-variables": {"reference": REFERENCE},
            **data,
        }
    }


def failed(
    severity: str, reason: str = "generic", code: int | None = 550, text: str = ""
) -> dict[str, Any]:
    status = {"code": code, "message": text, "description": None, "attempt-no": 1}
    return event("failed", severity=severity, reason=reason, **{"delivery-status": status})


SOFT, HARD = AddressEffect.SOFT_BOUNCE, AddressEffect.HARD_BOUNCE
UNSUBSCRIBED = AddressEffect.UNSUBSCRIBED
EVENTS = (
    Reported(event=event("delivered"), kind=K.DELIVERED),
    Reported(event=event("accepted"), kind=K.QUEUED),
    Reported(event=event("opened"), kind=K.OPENED),
    Reported(event=event("clicked", url="x"), kind=K.CLICKED),
    Reported(event=event("stored"), kind=None),
    Reported(event=event("complained"), kind=K.COMPLAINED, effect=AddressEffect.COMPLAINT),
    Reported(event=event("unsubscribed"), kind=K.UNSUBSCRIBED, effect=UNSUBSCRIBED),
    Reported(event=failed("permanent", "bounce"), kind=K.BOUNCED, effect=HARD),
    *(
        Reported(event=failed("permanent", "bounce", code, text), kind=kind, effect=effect)
        for code, text, kind, effect in (
            (
                550,
                "5.1.1 The email account that you tried to reach does not exist",
                K.BOUNCED,
                HARD,
            ),
            (552, "5.2.2 The mailbox is full", K.BOUNCED, SOFT),
            (550, "Requested action aborted", K.BOUNCED, SOFT),
            (550, "5.7.1 Your IP address is listed at Spamhaus", K.BLOCKED, None),
            (554, "5.6.0 Message content rejected as spam", K.BLOCKED, None),
            (498, "No MX for example.com", K.BOUNCED, SOFT),
            (None, "Not delivering", K.BOUNCED, SOFT),
        )
    ),
    Reported(event=failed("temporary", "generic", 451, "4.3.0 Later"), kind=K.DEFERRED),
    Reported(event=failed("temporary", "old", 498, "No MX"), kind=K.FAILED),
    Reported(event=failed("permanent", "old", 602, "Too old"), kind=K.FAILED),
    Reported(event=failed("permanent", "suppress-bounce", 605, "x"), kind=K.REJECTED, effect=HARD),
    Reported(
        event=failed("permanent", "suppress-complaint", 607, "x"),
        kind=K.REJECTED,
        effect=AddressEffect.COMPLAINT,
    ),
    Reported(
        event=failed("permanent", "suppress-unsubscribe", 606, "x"),
        kind=K.REJECTED,
        effect=UNSUBSCRIBED,
    ),
    Reported(event=failed("eternal"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=event("rejected", reject={"reason": "x"}), kind=K.REJECTED),
)


def encode(found: Mapping[str, Any], genuine: bool = True, now: datetime = NOW) -> bytes:
    key = SIGNING_KEY if genuine else "another-signing-key"
    timestamp = str(int(now.timestamp()))
    # Each webhook has a token of its own.
    token = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:50]
    signature = hmac.digest(key.encode(), f"{timestamp}{token}".encode(), "sha256").hex()
    signed = {"timestamp": timestamp, "token": token, "signature": signature}
    return json.dumps({"signature": signed, **found}).encode()


MAILGUN = KindCase(
    name="mailgun",
    kind=KIND,
    options={"api_key": KEY, "sender_domain": "example.com"},
    credential="api_key",
    secrets={"password": PASSWORD, "signing_key": SIGNING_KEY},
    accepted={"id": MESSAGE_ID, "message": "Queued. Thank you."},
    message_id=MESSAGE_ID,
    answers=ANSWERS,
    events=EVENTS,
    encode=encode,
    api_path="/v3",
    key_word="key",
)
