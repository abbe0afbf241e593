"""SparkPost's answers and events, as its documents, its SDKs, and its users show them."""

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
from providers.sparkpost.kind import KIND
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
MESSAGE_ID = "102258889940193104"


def refused(
    status: int,
    code: str | None,
    text: str,
    error: type[ProviderError] = ProviderUnavailableError,
    failure: FailureCode = F.CHANNEL_UNAVAILABLE,
    **fields: Any,
) -> Answer:
    found = {"message": text} | ({"code": code, "description": text} if code else {})
    return Answer(status=status, body={"errors": [found]}, error=error, code=failure, **fields)


ANSWERS = (
    refused(
        429,
        None,
        "Too many requests",
        TransientError,
        F.RATE_LIMITED,
        headers={"retry-after": "7"},
        retry_after=7.0,
    ),
    refused(420, "2102", "Exceed Sending Limit", TransientError, F.RATE_LIMITED),
    Answer(status=408, body="", error=TransientError, code=F.PROVIDER_ERROR),
    refused(401, None, "Unauthorized."),
    refused(403, None, "Forbidden."),
    refused(400, "7001", "Unconfigured Sending Domain <shop.example>"),
    refused(400, "1902", "Message generation rejected"),
    refused(
        422,
        "1300",
        "invalid data format/type: Error validating domain name syntax for header_to",
        InvalidRecipientError,
        F.INVALID_RECIPIENT,
    ),
    refused(
        400,
        "1901",
        "recipient address suppressed due to customer policy",
        PermanentError,
        F.INVALID_RECIPIENT,
    ),
    Answer(
        status=200,
        body={
            "results": {
                "total_rejected_recipients": 1,
                "total_accepted_recipients": 0,
                "id": MESSAGE_ID,
            }
        },
        error=PermanentError,
        code=F.INVALID_RECIPIENT,
    ),
    refused(400, "5001", "Number of recipients exceeds the limit", PermanentError, F.REJECTED),
    refused(422, "1400", "required field is missing", PermanentError, F.REJECTED),
    Answer(status=413, body="", error=PermanentError, code=F.TOO_LARGE),
    Answer(status=500, body="", error=TransientError, code=F.PROVIDER_ERROR),
    *(
        Answer(
            status=200, body=body, error=TransientError, code=F.PROVIDER_ERROR, is_ambiguous=True
        )
        for body in (
            "",
            "{}",
            "[]",
            '{"results": {}}',
            '{"results": {"total_rejected_recipients": 0, "total_accepted_recipients": 1}}',
            '{"results": {"total_rejected_recipients": 1}}',
            "<html>The recipient is suppressed</html>",
        )
    ),
)


def event(name: str, group: str = "message_event", **data: Any) -> dict[str, Any]:
    return {
        "msys": {
            group: {
                "type": name,
                "event_id": f"92356927693813856-{name}-{data.get('bounce_class', '')}",
                "timestamp": str(int(NOW.timestamp())),
                "transmission_id": MESSAGE_ID,
                "message_id": "000443ee14578172be22",
                "rcpt_to": ADDRESS,
                "raw_rcpt_to": ADDRESS,
                "rcpt_meta": {"reference": REFERENCE},
                **data,
            }
        }
    }


SOFT, HARD = AddressEffect.SOFT_BOUNCE, AddressEffect.HARD_BOUNCE
UNSUBSCRIBED = AddressEffect.UNSUBSCRIBED
EVENTS = (
    Reported(event=event("delivery"), kind=K.DELIVERED),
    Reported(event=event("injection"), kind=K.QUEUED),
    Reported(event=event("delay", raw_reason="451 later"), kind=K.DEFERRED),
    *(
        Reported(
            event=event("bounce", bounce_class=number, raw_reason="550 no"),
            kind=kind,
            effect=effect,
        )
        for number, kind, effect in (
            ("10", K.BOUNCED, HARD),
            ("30", K.BOUNCED, HARD),
            *((number, K.BOUNCED, SOFT) for number in ("1", "20", "21", "22", "24", "40", "70")),
            ("23", K.BLOCKED, None),
            ("25", K.REJECTED, None),
            *((number, K.BLOCKED, None) for number in ("50", "51", "52", "53", "54")),
            *((number, None, None) for number in ("60", "80", "100")),
            ("90", K.UNSUBSCRIBED, UNSUBSCRIBED),
            ("999", K.BOUNCED, SOFT),
        )
    ),
    Reported(event=event("out_of_band", bounce_class="10"), kind=K.BOUNCED, effect=HARD),
    Reported(event=event("out_of_band", bounce_class="22"), kind=K.BOUNCED, effect=SOFT),
    Reported(event=event("policy_rejection"), kind=K.REJECTED),
    Reported(event=event("generation_failure", "gen_event"), kind=K.FAILED),
    Reported(event=event("generation_rejection", "gen_event"), kind=K.REJECTED),
    Reported(event=event("spam_complaint"), kind=K.COMPLAINED, effect=AddressEffect.COMPLAINT),
    Reported(
        event=event("list_unsubscribe", "unsubscribe_event"),
        kind=K.UNSUBSCRIBED,
        effect=UNSUBSCRIBED,
    ),
    Reported(
        event=event("link_unsubscribe", "unsubscribe_event"),
        kind=K.UNSUBSCRIBED,
        effect=UNSUBSCRIBED,
    ),
    Reported(event=event("open", "track_event"), kind=K.OPENED),
    Reported(event=event("initial_open", "track_event"), kind=None),
    Reported(event=event("click", "track_event"), kind=K.CLICKED),
)
SPARKPOST = KindCase(
    name="sparkpost",
    kind=KIND,
    options={"api_key": KEY},
    credential="api_key",
    secrets={"password": PASSWORD},
    accepted={
        "results": {
            "total_rejected_recipients": 0,
            "total_accepted_recipients": 1,
            "id": MESSAGE_ID,
        }
    },
    message_id=MESSAGE_ID,
    answers=ANSWERS,
    events=EVENTS,
    encode=as_list,
)
