"""Mailtrap's answers and events, as its documents, its SDKs, and its users show them."""

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
from providers.mailtrap.kind import KIND
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
MESSAGE_ID = "1df37d17-0286-4d8b-8edf-bc4ec5be86e6"


def refused(
    status: int,
    text: str,
    error: type[ProviderError] = ProviderUnavailableError,
    failure: FailureCode = F.CHANNEL_UNAVAILABLE,
    **fields: Any,
) -> Answer:
    body = {"success": False, "errors": [text]}
    return Answer(status=status, body=body, error=error, code=failure, **fields)


ANSWERS = (
    refused(
        429,
        "Rate limit exceeded",
        TransientError,
        F.RATE_LIMITED,
        headers={"retry-after": "7"},
        retry_after=7.0,
    ),
    Answer(status=408, body="", error=TransientError, code=F.PROVIDER_ERROR),
    refused(401, "Unauthorized"),
    refused(403, "Sending from domain shop.example is not allowed."),
    refused(400, "'from' address is required"),
    refused(403, "Forbidden"),
    refused(400, "'to' address is invalid", InvalidRecipientError, F.INVALID_RECIPIENT),
    refused(400, "'subject' is required", PermanentError, F.REJECTED),
    Answer(status=413, body="", error=PermanentError, code=F.TOO_LARGE),
    Answer(status=500, body="", error=TransientError, code=F.PROVIDER_ERROR),
    *(
        Answer(
            status=200, body=body, error=TransientError, code=F.PROVIDER_ERROR, is_ambiguous=True
        )
        for body in ("", "{}", "[]", '{"success": true}', '{"success": false}', "<html></html>")
    ),
)


def event(name: str, **data: Any) -> dict[str, Any]:
    return {
        "event": name,
        "email": ADDRESS,
        "timestamp": int(NOW.timestamp()),
        "event_id": f"bede7236-2284-43d6-a953-1fdcafd0fdbc-{name}-{len(str(data))}",
        "message_id": MESSAGE_ID,
        "sending_stream": "transactional",
        "custom_variables": {"reference": REFERENCE},
        **data,
    }


def bounce(response: str) -> dict[str, Any]:
    return event("bounce", response_code=550, response=response, bounce_category="x")


SOFT, HARD = AddressEffect.SOFT_BOUNCE, AddressEffect.HARD_BOUNCE
EVENTS = (
    Reported(event=event("delivery"), kind=K.DELIVERED),
    Reported(event=event("open"), kind=K.OPENED),
    Reported(event=event("click", url="x"), kind=K.CLICKED),
    Reported(event=bounce("550 5.1.1 unknown user"), kind=K.BOUNCED, effect=HARD),
    Reported(event=bounce("552 5.2.2 The mailbox is full"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=bounce("550 5.7.1 Your IP address is listed at Spamhaus"), kind=K.BLOCKED),
    Reported(event=event("bounce"), kind=K.BOUNCED, effect=HARD),
    Reported(event=event("soft bounce", response="451 later"), kind=K.DEFERRED),
    Reported(event=event("suspension", reason="x"), kind=K.DEFERRED),
    Reported(event=event("reject", reason="recipient is suppressed"), kind=K.REJECTED),
    Reported(event=event("spam"), kind=K.COMPLAINED, effect=AddressEffect.COMPLAINT),
    Reported(event=event("unsubscribe"), kind=K.UNSUBSCRIBED, effect=AddressEffect.UNSUBSCRIBED),
)


def encode(found: Mapping[str, Any], genuine: bool = True, now: datetime = NOW) -> bytes:
    return json.dumps({"events": [found]}).encode()


MAILTRAP = KindCase(
    name="mailtrap",
    kind=KIND,
    options={"api_token": KEY},
    credential="api_token",
    secrets={"password": PASSWORD},
    accepted={"success": True, "message_ids": [MESSAGE_ID]},
    message_id=MESSAGE_ID,
    answers=ANSWERS,
    events=EVENTS,
    encode=encode,
)
