"""Postmark's answers and events, as its documents, its SDKs, and its users show them."""

from typing import Any

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderUnavailableError,
    TransientError,
)
from providers.contract import AddressEffect, ReceiptKind
from providers.postmark.kind import KIND
from tests.providers.email_apis.kinds import (
    ADDRESS,
    KEY,
    PASSWORD,
    REFERENCE,
    Answer,
    KindCase,
    Reported,
)

F, K = FailureCode, ReceiptKind
INACTIVE = (
    "You tried to send to recipient(s) that have been marked as inactive.\nFound inactive "
    f"addresses: {ADDRESS}.\nInactive recipients are ones that have generated a hard bounce, a "
    "spam complaint, or a manual suppression."
)


ANSWERS = (
    Answer(
        status=429,
        body={"ErrorCode": 429, "Message": "Rate limit exceeded"},
        headers={"retry-after": "7"},
        error=TransientError,
        code=F.RATE_LIMITED,
        retry_after=7.0,
    ),
    Answer(status=408, body="", error=TransientError, code=F.PROVIDER_ERROR),
    Answer(
        status=422,
        body={"ErrorCode": 100, "Message": "Maintenance"},
        error=TransientError,
        code=F.PROVIDER_ERROR,
    ),
    *(
        Answer(
            status=status,
            body={"ErrorCode": code, "Message": text},
            error=ProviderUnavailableError,
            code=F.CHANNEL_UNAVAILABLE,
        )
        for status, code, text in (
            (401, 10, "No Account or Server API tokens were supplied."),
            (422, 400, "The 'From' address you supplied is not a Sender Signature."),
            (422, 401, "The Sender Signature is not confirmed."),
            (422, 1235, "The message stream for the provided 'ID' was not found."),
            (422, 405, "Not allowed to send: you ran out of credits."),
            (422, 413, "You may not send email: your account may not send."),
            (422, 412, "While your account is pending approval, all recipient addresses must…"),
            (422, 300, "Invalid 'From' address: 'shop'."),
            (404, 404, "The resource was not found."),
        )
    ),
    *(
        Answer(
            status=422,
            body={"ErrorCode": 300, "Message": text},
            error=InvalidRecipientError,
            code=F.INVALID_RECIPIENT,
        )
        for text in (
            f"Invalid 'To' address: '{ADDRESS}'.",
            f"Error parsing 'To': Illegal email domain 'x' in address '{ADDRESS}'.",
        )
    ),
    Answer(
        status=422,
        body={"ErrorCode": 406, "Message": INACTIVE},
        error=PermanentError,
        code=F.INVALID_RECIPIENT,
    ),
    Answer(status=413, body={"ErrorCode": 413}, error=PermanentError, code=F.TOO_LARGE),
    Answer(
        status=403,
        body="<html>Forbidden</html>",
        error=ProviderUnavailableError,
        code=F.CHANNEL_UNAVAILABLE,
    ),
    *(
        Answer(
            status=422,
            body={"ErrorCode": code, "Message": text},
            error=PermanentError,
            code=F.REJECTED,
        )
        for code, text in (
            (300, "Error parsing 'Reply-To': Illegal email address."),
            (300, "Invalid metadata content."),
            (402, "Invalid JSON was received."),
            (403, "Incompatible JSON field types."),
            (411, "Forbidden attachment type."),
        )
    ),
    Answer(status=422, body="", error=PermanentError, code=F.REJECTED),
    Answer(status=500, body={"ErrorCode": 0}, error=TransientError, code=F.PROVIDER_ERROR),
    Answer(status=503, body="", error=TransientError, code=F.PROVIDER_ERROR),
    *(
        Answer(
            status=200, body=body, error=TransientError, code=F.PROVIDER_ERROR, is_ambiguous=True
        )
        for body in ("", "{}", "<html>Welcome</html>", '{"ErrorCode": 0, "Message": "OK"}', "[]")
    ),
)
SHARED = {
    "MessageID": "883953f4-6105-42a2-a16a-77a8eac79483",
    "ServerID": 23,
    "MessageStream": "outbound",
    "Tag": "",
    "Metadata": {"reference": REFERENCE},
}
AT = "2026-11-05T16:33:54.9070259Z"


def bounce(name: str) -> dict[str, Any]:
    return SHARED | {
        "RecordType": "Bounce",
        "ID": 4323372036854775807,
        "Type": name,
        "TypeCode": 1,
        "Details": "smtp;550 5.1.1 unknown",
        "Description": "The server was unable to deliver your message.",
        "Email": ADDRESS,
        "From": "shop@example.com",
        "BouncedAt": AT,
        "Inactive": True,
        "Subject": "Paid",
    }


def suppression(reason: str | None) -> dict[str, Any]:
    return SHARED | {
        "RecordType": "SubscriptionChange",
        "ChangedAt": AT,
        "Recipient": ADDRESS,
        "Origin": "Recipient",
        "SuppressSending": reason is not None,
        "SuppressionReason": reason,
    }


DELIVERED = SHARED | {
    "RecordType": "Delivery",
    "Recipient": ADDRESS,
    "DeliveredAt": AT,
    "Details": "250 OK",
}
SOFT, HARD = AddressEffect.SOFT_BOUNCE, AddressEffect.HARD_BOUNCE
EVENTS = (
    Reported(event=DELIVERED, kind=K.DELIVERED),
    Reported(
        event=SHARED | {"RecordType": "Open", "Recipient": ADDRESS, "ReceivedAt": AT},
        kind=K.OPENED,
    ),
    Reported(
        event=SHARED
        | {"RecordType": "Click", "Recipient": ADDRESS, "ReceivedAt": AT, "OriginalLink": "x"},
        kind=K.CLICKED,
    ),
    Reported(
        event=bounce("SpamComplaint") | {"RecordType": "SpamComplaint"},
        kind=K.COMPLAINED,
        effect=AddressEffect.COMPLAINT,
    ),
    *(
        Reported(event=bounce(name), kind=kind, effect=effect)
        for name, kind, effect in (
            ("HardBounce", K.BOUNCED, HARD),
            ("BadEmailAddress", K.BOUNCED, HARD),
            ("SoftBounce", K.BOUNCED, SOFT),
            ("Transient", K.DEFERRED, None),
            ("DnsError", K.DEFERRED, None),
            ("OpenRelayTest", K.DEFERRED, None),
            ("Blocked", K.BLOCKED, None),
            ("DMARCPolicy", K.BLOCKED, None),
            ("SpamNotification", K.BLOCKED, None),
            ("VirusNotification", K.BLOCKED, None),
            ("ManuallyDeactivated", K.REJECTED, HARD),
            ("Unconfirmed", K.REJECTED, None),
            ("SMTPApiError", K.FAILED, None),
            ("TemplateRenderingFailed", K.FAILED, None),
            ("SpamComplaint", K.COMPLAINED, AddressEffect.COMPLAINT),
            ("Unsubscribe", K.UNSUBSCRIBED, AddressEffect.UNSUBSCRIBED),
            ("Subscribe", None, None),
            ("AutoResponder", None, None),
            ("AddressChange", None, None),
            ("ChallengeVerification", None, None),
            ("InboundError", None, None),
            ("Unknown", K.BOUNCED, SOFT),
            ("QuantumBounce", K.BOUNCED, SOFT),
        )
    ),
    Reported(event=suppression("HardBounce"), kind=K.BOUNCED, effect=HARD),
    Reported(event=suppression("SpamComplaint"), kind=K.COMPLAINED, effect=AddressEffect.COMPLAINT),
    Reported(
        event=suppression("ManualSuppression"),
        kind=K.UNSUBSCRIBED,
        effect=AddressEffect.UNSUBSCRIBED,
    ),
    Reported(event=suppression(None), kind=None),
)
POSTMARK = KindCase(
    name="postmark",
    kind=KIND,
    options={"server_token": KEY, "message_stream": "outbound"},
    credential="server_token",
    secrets={"password": PASSWORD},
    accepted={
        "To": f'"Ada" <{ADDRESS}>',
        "SubmittedAt": AT,
        "MessageID": "b7bc2f4a-e38e-4336-af7d-e6c392c2f817",
        "ErrorCode": 0,
        "Message": "OK",
    },
    message_id="b7bc2f4a-e38e-4336-af7d-e6c392c2f817",
    answers=ANSWERS,
    events=EVENTS,
)
