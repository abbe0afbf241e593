"""Brevo's answers and events, as its documents, its SDKs, and its users show them."""

import json
from typing import Any

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from providers.brevo.kind import KIND
from providers.contract import AddressEffect, ReceiptKind
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
MESSAGE_ID = "<202611211200.12345678901@smtp-relay.mailin.fr>"


def refused(
    status: int,
    code: str,
    text: str,
    error: type[ProviderError] = ProviderUnavailableError,
    failure: FailureCode = F.CHANNEL_UNAVAILABLE,
    **fields: Any,
) -> Answer:
    body = {"code": code, "message": text}
    return Answer(status=status, body=body, error=error, code=failure, **fields)


ANSWERS = (
    refused(
        429,
        "too_many_requests",
        "The expected rate limit is exceeded.",
        TransientError,
        F.RATE_LIMITED,
        headers={"x-sib-ratelimit-reset": "7", "retry-after": "99"},
        retry_after=7.0,
    ),
    Answer(status=408, body="", error=TransientError, code=F.PROVIDER_ERROR),
    refused(401, "unauthorized", "Key not found"),
    refused(402, "not_enough_credits", "Your account has no credits left."),
    refused(403, "permission_denied", "Your SMTP account is not yet activated."),
    refused(400, "account_under_validation", "Your account is under validation."),
    refused(
        400,
        "invalid_parameter",
        "email is not valid in to",
        InvalidRecipientError,
        F.INVALID_RECIPIENT,
    ),
    refused(400, "invalid_parameter", "valid sender email and/or name is missing"),
    refused(404, "document_not_found", "Not found"),
    Answer(status=413, body="", error=PermanentError, code=F.TOO_LARGE),
    refused(
        400,
        "duplicate_parameter",
        "idempotencyKey was used before",
        TransientError,
        F.PROVIDER_ERROR,
        is_ambiguous=True,
    ),
    refused(400, "invalid_parameter", "attachment is not valid", PermanentError, F.REJECTED),
    refused(400, "missing_parameter", "subject is missing", PermanentError, F.REJECTED),
    Answer(status=500, body="", error=TransientError, code=F.PROVIDER_ERROR),
    *(
        Answer(
            status=201, body=body, error=TransientError, code=F.PROVIDER_ERROR, is_ambiguous=True
        )
        for body in ("", "{}", "[]", "<html></html>")
    ),
)


def event(name: str, **data: Any) -> dict[str, Any]:
    return {
        "event": name,
        "email": ADDRESS,
        "id": 26224,
        "ts_epoch": int(NOW.timestamp() * 1000),
        "message-id": MESSAGE_ID,
        "X-Mailin-custom": json.dumps({"reference": REFERENCE}),
        **data,
    }


def bounce(reason: str) -> dict[str, Any]:
    return event("hard_bounce", reason=reason)


SOFT, HARD = AddressEffect.SOFT_BOUNCE, AddressEffect.HARD_BOUNCE
COMPLAINT, UNSUBSCRIBED = AddressEffect.COMPLAINT, AddressEffect.UNSUBSCRIBED
EVENTS = (
    Reported(event=event("delivered"), kind=K.DELIVERED),
    Reported(event=event("request"), kind=K.QUEUED),
    Reported(event=event("deferred", reason="451 later"), kind=K.DEFERRED),
    Reported(event=event("hard_bounce"), kind=K.BOUNCED, effect=HARD),
    Reported(event=bounce("550 5.1.1 unknown user"), kind=K.BOUNCED, effect=HARD),
    Reported(event=bounce("552 5.2.2 mailbox full"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=bounce("550 5.7.1 your IP is listed at Spamhaus"), kind=K.BLOCKED),
    Reported(event=event("soft_bounce", reason="full"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=event("invalid_email"), kind=K.BOUNCED, effect=HARD),
    Reported(event=event("blocked", reason="blocked"), kind=K.REJECTED),
    Reported(event=event("error"), kind=K.FAILED),
    Reported(event=event("spam"), kind=K.COMPLAINED, effect=COMPLAINT),
    Reported(event=event("complaint"), kind=K.COMPLAINED, effect=COMPLAINT),
    Reported(event=event("unsubscribe"), kind=K.UNSUBSCRIBED, effect=UNSUBSCRIBED),
    Reported(event=event("unsubscribed"), kind=K.UNSUBSCRIBED, effect=UNSUBSCRIBED),
    Reported(event=event("opened"), kind=K.OPENED),
    Reported(event=event("unique_opened"), kind=K.OPENED),
    Reported(event=event("proxy_open"), kind=None),
    Reported(event=event("unique_proxy_open"), kind=None),
    Reported(event=event("click", link="x"), kind=K.CLICKED),
    Reported(event=event("list_addition"), kind=None),
)
BREVO = KindCase(
    name="brevo",
    kind=KIND,
    options={"api_key": KEY},
    credential="api_key",
    secrets={"password": PASSWORD},
    accepted={"messageId": MESSAGE_ID},
    message_id=MESSAGE_ID,
    answers=ANSWERS,
    events=EVENTS,
    success=201,
)
