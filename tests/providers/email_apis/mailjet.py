"""Mailjet's answers and events, as its documents, its SDKs, and its users show them."""

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
from providers.contract import AddressEffect, ReceiptKind
from providers.mailjet.kind import KIND
from tests.providers.email_apis.kinds import (
    ADDRESS,
    KEY,
    NOW,
    PASSWORD,
    REFERENCE,
    Answer,
    KindCase,
    Reported,
    as_list,
)

F, K = FailureCode, ReceiptKind
MESSAGE_ID = 1152921507195539999


def refused(
    field: str,
    code: str,
    text: str,
    error: type[ProviderError] = PermanentError,
    failure: FailureCode = F.REJECTED,
) -> Answer:
    found = {
        "ErrorIdentifier": "06df1144-c6f3-4ca7-8885-7ec5d4344113",
        "ErrorCode": code,
        "StatusCode": 400,
        "ErrorMessage": text,
        "ErrorRelatedTo": [field],
    }
    body = {"Messages": [{"Status": "error", "Errors": [found]}]}
    return Answer(status=400, body=body, error=error, code=failure)


def of_the_account(status: int, text: str, **fields: Any) -> Answer:
    body = {"ErrorIdentifier": "x", "StatusCode": status, "ErrorMessage": text}
    default = {"error": ProviderUnavailableError, "code": F.CHANNEL_UNAVAILABLE}
    return Answer(status=status, body=body, **(default | fields))


ANSWERS = (
    of_the_account(
        429,
        "Too many requests",
        error=TransientError,
        code=F.RATE_LIMITED,
        headers={"retry-after": "7"},
        retry_after=7.0,
    ),
    Answer(status=408, body="", error=TransientError, code=F.PROVIDER_ERROR),
    of_the_account(401, "API key authentication/authorization failure."),
    of_the_account(403, "Your account is temporarily blocked."),
    refused(
        "To[0].Email",
        "mj-0013",
        f'"{ADDRESS}" is an invalid email address.',
        InvalidRecipientError,
        F.INVALID_RECIPIENT,
    ),
    refused(
        "From",
        "send-0008",
        "The sender is not validated.",
        ProviderUnavailableError,
        F.CHANNEL_UNAVAILABLE,
    ),
    refused("TextPart", "send-0003", "At least one text must be provided."),
    Answer(status=413, body="", error=PermanentError, code=F.TOO_LARGE),
    Answer(status=500, body="", error=TransientError, code=F.PROVIDER_ERROR),
    *(
        Answer(
            status=200, body=body, error=TransientError, code=F.PROVIDER_ERROR, is_ambiguous=True
        )
        for body in ("", "{}", "[]", '{"Messages": []}', "<html></html>")
    ),
)


def event(name: str, **data: Any) -> dict[str, Any]:
    return {
        "event": name,
        "time": int(NOW.timestamp()),
        "MessageID": MESSAGE_ID,
        "Message_GUID": "1ab23cd4-e567-8901-2345-6789f0gh1i2j",
        "email": ADDRESS,
        "mj_campaign_id": 7257,
        "customcampaign": "",
        "CustomID": "",
        "Payload": json.dumps({"reference": REFERENCE}),
        **data,
    }


def bounce(error: str, comment: str = "", is_hard: bool = True) -> dict[str, Any]:
    return event("bounce", error=error, comment=comment, hard_bounce=is_hard, blocked=False)


SOFT, HARD = AddressEffect.SOFT_BOUNCE, AddressEffect.HARD_BOUNCE
EVENTS = (
    Reported(event=event("sent", smtp_reply="sent (250 2.0.0 OK)"), kind=K.DELIVERED),
    Reported(event=event("open"), kind=K.OPENED),
    Reported(event=event("click", url="x"), kind=K.CLICKED),
    Reported(event=bounce("user unknown"), kind=K.BOUNCED, effect=HARD),
    Reported(event=bounce("user unknown", "550 5.1.1 unknown user"), kind=K.BOUNCED, effect=HARD),
    Reported(event=bounce("quota exceeded", "Mailbox full"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=bounce("quota exceeded", "", False), kind=K.BOUNCED, effect=SOFT),
    Reported(event=bounce("greylisted", "", False), kind=K.DEFERRED),
    Reported(event=bounce("content blocked"), kind=K.BLOCKED),
    Reported(event=bounce("sender blocked", "", False), kind=K.BLOCKED),
    Reported(event=event("blocked", error="preblocked"), kind=K.REJECTED),
    Reported(
        event=event("spam", source="JMRPP"), kind=K.COMPLAINED, effect=AddressEffect.COMPLAINT
    ),
    Reported(event=event("unsub"), kind=K.UNSUBSCRIBED, effect=AddressEffect.UNSUBSCRIBED),
)
MAILJET = KindCase(
    name="mailjet",
    kind=KIND,
    options={"api_key": "an-api-key", "secret_key": KEY},
    credential="secret_key",
    secrets={"password": PASSWORD},
    accepted={
        "Messages": [
            {
                "Status": "success",
                # Mailjet answers in small letters.
                "To": [{"Email": ADDRESS, "MessageID": MESSAGE_ID, "MessageUUID": "x"}],
            }
        ]
    },
    message_id=str(MESSAGE_ID),
    answers=ANSWERS,
    events=EVENTS,
    encode=as_list,
)
