"""Resend's answers and events, as its documents, its SDKs, and its users show them."""

import base64
import hmac
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
from providers.resend.kind import KIND
from tests.providers.email_apis.kinds import (
    ADDRESS,
    KEY,
    NOW,
    REFERENCE,
    Answer,
    KindCase,
    Reported,
)

F, K = FailureCode, ReceiptKind
SECRET = f"whsec_{base64.b64encode(b'a-signing-secret-of-tests').decode()}"
MESSAGE_ID = "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"


def refused(
    status: int,
    name: str,
    text: str,
    error: type[ProviderError] = ProviderUnavailableError,
    code: FailureCode = F.CHANNEL_UNAVAILABLE,
    **fields: Any,
) -> Answer:
    body = {"statusCode": status, "name": name, "message": text}
    return Answer(status=status, body=body, error=error, code=code, **fields)


ANSWERS = (
    refused(
        429,
        "rate_limit_exceeded",
        "Too many requests. You can only make 2 requests per second.",
        TransientError,
        F.RATE_LIMITED,
        headers={"retry-after": "1"},
        retry_after=1.0,
    ),
    refused(429, "daily_quota_exceeded", "You have reached your daily email sending quota."),
    refused(429, "monthly_quota_exceeded", "You have reached your monthly quota."),
    Answer(status=408, body="", error=TransientError, code=F.PROVIDER_ERROR),
    refused(
        409,
        "concurrent_idempotent_requests",
        "Same idempotency key used while original request is still in progress.",
        TransientError,
        F.PROVIDER_ERROR,
    ),
    refused(
        409,
        "invalid_idempotent_request",
        "Same idempotency key used with a different request payload.",
        TransientError,
        F.PROVIDER_ERROR,
        is_ambiguous=True,
    ),
    refused(401, "missing_api_key", "Missing API Key"),
    refused(401, "validation_error", "API key is invalid"),
    refused(400, "validation_error", "API key is invalid"),
    refused(401, "restricted_api_key", "This API key is restricted to only send emails."),
    refused(403, "invalid_api_key", "API key is invalid"),
    refused(
        403,
        "validation_error",
        "You can only send testing emails to your own email address (shop@example.com).",
    ),
    refused(403, "validation_error", "The shop.example domain is not verified."),
    refused(422, "invalid_from_address", "Invalid from."),
    refused(422, "validation_error", "Invalid `from` field. The email address needs to follow…"),
    refused(
        422,
        "validation_error",
        "Invalid `to` field. The email address needs to follow the `email@example.com` format.",
        InvalidRecipientError,
        F.INVALID_RECIPIENT,
    ),
    refused(404, "not_found", "The requested endpoint does not exist."),
    refused(405, "method_not_allowed", "Method is not allowed."),
    Answer(status=413, body="", error=PermanentError, code=F.TOO_LARGE),
    *(
        refused(status, name, "A text.", PermanentError, F.REJECTED)
        for status, name in (
            (400, "invalid_idempotency_key"),
            (400, "validation_error"),
            (422, "invalid_attachment"),
            (422, "missing_required_field"),
            (422, "invalid_parameter"),
            (451, "security_error"),
        )
    ),
    refused(500, "application_error", "An unexpected error.", TransientError, F.PROVIDER_ERROR),
    Answer(status=503, body="", error=TransientError, code=F.PROVIDER_ERROR),
    *(
        Answer(
            status=200, body=body, error=TransientError, code=F.PROVIDER_ERROR, is_ambiguous=True
        )
        for body in ("", "{}", "[]", "<html>Welcome</html>", '{"id": null}', '{"id": 7}')
    ),
)


def event(name: str, **data: Any) -> dict[str, Any]:
    return {
        "type": name,
        "created_at": "2026-11-22T23:41:12.126Z",
        "data": {
            "created_at": "2026-11-22 23:41:11.894719+00",
            "email_id": MESSAGE_ID,
            "from": "Shop <shop@example.com>",
            "to": [ADDRESS],
            "subject": "Paid",
            "headers": [{"name": "X-Metadata", "value": f'{{"reference": "{REFERENCE}"}}'}],
            **data,
        },
    }


def bounce(kind: str | None, subtype: str, text: str, **data: Any) -> dict[str, Any]:
    found = {"message": text, "subType": subtype, **data} | ({"type": kind} if kind else {})
    return event("email.bounced", bounce=found)


SOFT, HARD = AddressEffect.SOFT_BOUNCE, AddressEffect.HARD_BOUNCE
EVENTS = (
    Reported(event=event("email.delivered"), kind=K.DELIVERED),
    Reported(event=event("email.sent"), kind=K.SENT),
    Reported(event=event("email.scheduled"), kind=None),
    Reported(event=event("email.delivery_delayed"), kind=K.DEFERRED),
    Reported(event=event("email.opened"), kind=K.OPENED),
    Reported(event=event("email.clicked", click={"link": "x"}), kind=K.CLICKED),
    Reported(event=event("email.received"), kind=None),
    Reported(event=event("email.complained"), kind=K.COMPLAINED, effect=AddressEffect.COMPLAINT),
    Reported(event=bounce("Permanent", "General", "hard"), kind=K.BOUNCED, effect=HARD),
    Reported(event=bounce("Permanent", "Suppressed", "x"), kind=K.BOUNCED, effect=HARD),
    *(
        Reported(
            event=bounce("Permanent", subtype, "hard", diagnosticCode=reply),
            kind=kind,
            effect=effect,
        )
        for subtype, reply, kind, effect in (
            ("General", ["smtp; 550 5.1.1 user unknown"], K.BOUNCED, HARD),
            ("General", ["smtp; 552 5.2.2 mailbox full"], K.BOUNCED, SOFT),
            ("General", "smtp; 550 5.7.1 local policy", K.BOUNCED, SOFT),
            ("General", ["smtp; 550 5.7.1 listed at Spamhaus"], K.BLOCKED, None),
            ("General", ["smtp; 550 5.7.133 SenderNotAuthenticatedForGroup"], K.BLOCKED, None),
            ("General", [None], K.BOUNCED, HARD),
            ("Suppressed", ["Not sent"], K.BOUNCED, HARD),
        )
    ),
    Reported(event=bounce("Transient", "MailboxFull", "full"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=bounce("Transient", "General", "general"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=bounce("Undetermined", "Undetermined", "?"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=bounce("Quantum", "?", "?"), kind=K.BOUNCED, effect=SOFT),
    *(
        Reported(event=bounce("Transient", subtype, subtype), kind=K.BLOCKED)
        for subtype in ("ContentRejected", "AttachmentRejected", "MessageTooLarge")
    ),
    Reported(
        event=bounce(None, "", "The recipient's email provider sent a hard bounce message."),
        kind=K.BOUNCED,
        effect=HARD,
    ),
    Reported(
        event=bounce(None, "", "Resend has suppressed sending to this address."),
        kind=K.BOUNCED,
        effect=HARD,
    ),
    Reported(
        event=bounce(None, "", "The recipient's email provider sent a general bounce message."),
        kind=K.BOUNCED,
        effect=SOFT,
    ),
    Reported(event=event("email.suppressed"), kind=K.REJECTED, effect=HARD),
    Reported(event=event("email.failed", failed={"reason": "x"}), kind=K.FAILED),
)


def sign(raw: bytes, genuine: bool, now: datetime = NOW) -> Mapping[str, str]:
    key = base64.b64decode(SECRET.removeprefix("whsec_")) if genuine else b"another"
    timestamp = str(int(now.timestamp()))
    digest = hmac.digest(key, f"msg_1.{timestamp}.".encode() + raw, "sha256")
    return {
        "svix-id": "msg_1",
        "svix-timestamp": timestamp,
        "svix-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


RESEND = KindCase(
    name="resend",
    kind=KIND,
    options={"api_key": KEY},
    credential="api_key",
    secrets={"signing_key": SECRET},
    accepted={"id": MESSAGE_ID},
    message_id=MESSAGE_ID,
    answers=ANSWERS,
    events=EVENTS,
    sign=sign,
    signs_body=True,
    key_word="secret",
)
