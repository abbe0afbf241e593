"""Postmark: ``POST /email`` and ``GET /server`` of its API, below ``/postmark``."""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...credentials import MailAccounts
from ...outcomes import Outcome, Outcomes, Step, accepted, refused
from ...responses import ProviderResponse
from ..answers import RefusedError, json_object, json_response
from ..base import Attachment, IncomingRequest
from .base import (
    DELIVERED,
    JsonWebhooks,
    Mail,
    MailProvider,
    addresses,
    decoded_size,
    rate_limits,
    shared_outcomes,
)

TEST_TOKEN = "POSTMARK_API_TEST"
"""With it, mails are validated, answered as accepted, and not sent."""
TEST_ID = "00000000-0000-0000-0000-000000000000"
REFUSED_TOKENS: Mapping[str, tuple[int, int, str]] = {
    "revoked-key": (401, 10, "No Account or Server API tokens were supplied, or they are wrong."),
}
STREAMS = ("outbound", "broadcast")
MAX_RECIPIENTS = 50
MAX_METADATA, MAX_METADATA_NAME, MAX_METADATA_VALUE = 10, 20, 80
INACTIVE = (
    "You tried to send to recipient(s) that have been marked as inactive. Found inactive "
    "addresses: {}. Inactive recipients are ones that have generated a hard bounce, a spam "
    "complaint, or a manual suppression."
)
BOUNCES: Mapping[str, tuple[str, int, str, bool]] = {
    "bounce": ("HardBounce", 1, "smtp;550 5.1.1 The mailbox does not exist", True),
    "soft-bounce": ("SoftBounce", 4096, "smtp;552 5.2.2 The mailbox is full", False),
    "transient": ("Transient", 2, "smtp;451 4.3.0 Try again later", False),
    "blocked": ("Blocked", 100006, "smtp;554 5.7.1 Blocked by policy", False),
    "dns-error": ("DnsError", 256, "smtp;A temporary DNS error", False),
    "auto-reply": ("AutoResponder", 4, "Out of office", False),
    "new-type": ("QuantumBounce", 999_999, "smtp;550 Nobody knows", False),
}
"""Type, its code, the receiving server's reply, and whether Postmark deactivates the address."""
ERRORS: Mapping[str, tuple[int, int, str]] = {
    "inactive": (422, 406, INACTIVE),
    "invalid": (422, 300, "Error parsing 'To': Illegal email address '{}'."),
    "invalid-sender": (422, 400, "The 'From' address you supplied is not a Sender Signature."),
    "invalid-message": (422, 300, "Invalid metadata content."),
    "no-credits": (422, 405, "Not allowed to send: the account has no credits left."),
    "pending": (422, 412, "While your account is pending approval, recipients need your domain."),
    "maintenance": (422, 100, "The Postmark API is offline for maintenance."),
    "too-large": (413, 0, "The request is larger than 10 MB."),
    "ratelimit": (429, 0, "Rate limit exceeded."),
    "ratelimit-once": (429, 0, "Rate limit exceeded."),
    "server-error": (500, 0, "Internal Server Error"),
    "flaky": (500, 0, "Internal Server Error"),
    "unavailable": (503, 100, "The Postmark API is offline for maintenance."),
}
OUTCOMES = Outcomes(
    (
        accepted("delivered", "Accepted, delivered. So is every other address.", DELIVERED),
        accepted("bounce", "Accepted, then a hard bounce.", Step("bounce")),
        accepted("soft-bounce", "Accepted, then a soft bounce.", Step("soft-bounce")),
        accepted(
            "transient",
            "Accepted, then a transient bounce, then delivered.",
            Step("transient"),
            Step("delivered", multiple=2),
        ),
        accepted("blocked", "Accepted, then blocked by the receiving server.", Step("blocked")),
        accepted("new-type", "Accepted, then a bounce of an unknown type.", Step("new-type")),
        accepted(
            "auto-reply",
            "Accepted, delivered, then an automatic answer.",
            DELIVERED,
            Step("auto-reply", multiple=2),
        ),
        accepted(
            "spam",
            "Accepted, delivered, then reported as spam.",
            DELIVERED,
            Step("complaint", multiple=2),
        ),
        accepted(
            "unsubscribed",
            "Accepted, delivered, then suppressed by the recipient.",
            DELIVERED,
            Step("suppression", multiple=2),
        ),
        refused("inactive", 422, "422 with 406: the address is inactive."),
        refused("invalid", 422, "422 with 300: the address is not a valid one."),
        refused("invalid-sender", 422, "422 with 400: the sender is unknown."),
        refused("invalid-message", 422, "422 with 300: another part is invalid."),
        refused("no-credits", 422, "422 with 405: the account has no credits."),
        refused("pending", 422, "422 with 412: the account awaits approval."),
        refused("maintenance", 422, "422 with 100: the API is under maintenance."),
        refused("firewall", 403, "403 with a page of HTML, as from a firewall before the API."),
        refused("too-large", 413, "413: the message is too large."),
        *rate_limits("429 with Retry-After."),
        *shared_outcomes(DELIVERED),
    ),
    default="delivered",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmark(MailProvider):
    """A server of Postmark."""

    accounts: MailAccounts
    name = "postmark"
    title = "Postmark"
    route = "/postmark/{rest:.*}"
    max_body = 10 * 1024 * 1024
    outcomes = OUTCOMES
    event_kinds = frozenset({*BOUNCES, "delivered", "complaint", "suppression", "open", "click"})

    def page(self, request: IncomingRequest) -> ProviderResponse | None:
        """Return the server. None for a mail. Raises RefusedError."""
        token = request.headers.get("x-postmark-server-token")
        if token is None or token in REFUSED_TOKENS:
            raise _refusal("token-refused", *REFUSED_TOKENS["revoked-key"])
        match request.method, request.path:
            case "GET", "/postmark/server":
                return json_response(200, {"ID": 1, "Name": "Sandbox", "ApiTokens": [token]})
            case "POST", "/postmark/email":
                return None
            case _, "/postmark/email":
                raise _refusal("method-not-allowed", 405, 0, "The method is not allowed.")
        raise _refusal("not-found", 404, 0, "There is no such resource.")

    def read(self, request: IncomingRequest) -> Mapping[str, Any]:
        """Return the JSON object of a request. Raises RefusedError."""
        if request.body is None:
            raise _refusal("too-large", *ERRORS["too-large"])
        body = json_object(request)
        if body is None:
            raise _refusal("not-json", 422, 402, "Invalid JSON was received.")
        if request.headers["x-postmark-server-token"] == TEST_TOKEN:
            self.mail(body)
            answer = {"ErrorCode": 0, "Message": "Test job accepted", "MessageID": TEST_ID}
            text = "The token of tests sends nothing."
            raise RefusedError("test-mode", json_response(200, answer), text)
        return body

    def mail(self, body: Mapping[str, Any]) -> Mail:
        """Return a valid mail. Raises RefusedError."""
        if problem := next(_problems(body), None):
            code, text = problem
            raise _refusal("invalid-request", 422, code, text)
        ((name, address),) = addresses(body["To"])
        reference = (body.get("Metadata") or {}).get("reference")
        return Mail(
            sender=body["From"],
            recipient=address,
            to=body["To"] if name else address,
            title=body.get("Subject") or "",
            text=body.get("TextBody") or "",
            html=body.get("HtmlBody") or "",
            reply_to=body.get("ReplyTo") or "",
            headers={item["Name"]: item["Value"] for item in body.get("Headers") or ()},
            attachments=tuple(
                Attachment(
                    name=item["Name"],
                    kind=item["ContentType"],
                    size=decoded_size(item["Content"]) or 0,
                )
                for item in body.get("Attachments") or ()
            ),
            reference=reference,
        )

    def refuse(self, outcome: Outcome, mail: Mail) -> ProviderResponse:
        """Return an error."""
        if outcome.name == "firewall":
            page = b"<html><title>403 Forbidden</title></html>"
            return ProviderResponse(status=403, body=page, headers={"Content-Type": "text/html"})
        status, code, text = ERRORS[outcome.name]
        headers = self.pause(status)
        body = {"ErrorCode": code, "Message": text.format(mail.recipient.lower())}
        return json_response(status, body, headers)

    def acceptance(self, mail: Mail, message_id: str, now: datetime) -> Mapping[str, Any]:
        """Return the body of an acceptance."""
        return {
            "To": mail.to,
            "SubmittedAt": _time(now.timestamp()),
            "MessageID": message_id,
            "ErrorCode": 0,
            "Message": "OK",
        }

    def event(self, kind: str, mail: Mail, message_id: str) -> dict[str, Any]:
        """Return an event; its time is set when it is sent."""
        shared = {
            "MessageID": message_id,
            "ServerID": 1,
            "MessageStream": STREAMS[0],
            "Tag": "",
            "Metadata": {"reference": mail.reference} if mail.reference else {},
        }
        if kind in BOUNCES or kind == "complaint":
            name, code, details, is_inactive = BOUNCES.get(kind, ("SpamComplaint", 512, "", True))
            return shared | {
                "RecordType": "SpamComplaint" if kind == "complaint" else "Bounce",
                "ID": secrets.randbelow(10**12),
                "Type": name,
                "TypeCode": code,
                "Name": name,
                "Description": "The sandbox makes this bounce.",
                "Details": details,
                "Email": mail.recipient,
                "From": mail.sender,
                "BouncedAt": "",
                "DumpAvailable": False,
                "Inactive": is_inactive,
                "CanActivate": True,
                "Subject": mail.title,
            }
        own: Mapping[str, Mapping[str, Any]] = {
            "delivered": {"RecordType": "Delivery", "DeliveredAt": "", "Details": "250 2.0.0 OK"},
            "suppression": {
                "RecordType": "SubscriptionChange",
                "ChangedAt": "",
                "Origin": "Recipient",
                "SuppressSending": True,
                "SuppressionReason": "ManualSuppression",
            },
            "open": {"RecordType": "Open", "ReceivedAt": "", "FirstOpen": True},
            "click": {
                "RecordType": "Click",
                "ReceivedAt": "",
                "OriginalLink": "https://example.com/",
            },
        }
        return shared | {"Recipient": mail.recipient} | dict(own[kind])


class Webhooks(JsonWebhooks):
    """Postmark's webhooks: one event each, and nothing signed."""

    def timed(self, event: dict[str, Any], at: float) -> Mapping[str, Any]:
        """Return an event with its time, to a tenth of a microsecond."""
        names = ("DeliveredAt", "BouncedAt", "ReceivedAt", "ChangedAt")
        return event | {name: _time(at) for name in names if name in event}


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


def _refusal(outcome: str, status: int, code: int, text: str) -> RefusedError:
    response = json_response(status, {"ErrorCode": code, "Message": text})
    return RefusedError(outcome, response, f"({code}) {text}")


def _problems(body: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the codes and texts of what is wrong with a mail."""
    if len(addresses(body.get("From"))) != 1:
        yield 300, f"Invalid 'From' address: '{body.get('From')}'."
    to = addresses(body.get("To"))
    if not to:
        yield 300, f"Error parsing 'To': Illegal email address '{body.get('To')}'."
    elif len(to) > MAX_RECIPIENTS:
        yield 300, f"Maximum of {MAX_RECIPIENTS} recipients allowed per email message."
    elif len(to) > 1:
        yield 300, "The sandbox takes mails to one recipient."
    texts = [body.get(name) for name in ("Subject", "TextBody", "HtmlBody", "Tag", "ReplyTo")]
    if any(text is not None and not isinstance(text, str) for text in texts):
        yield 403, "Incompatible JSON field types."
    if not (body.get("TextBody") or body.get("HtmlBody")):
        yield 300, "Provide either email TextBody or HtmlBody or both."
    if body.get("ReplyTo") and not addresses(body["ReplyTo"]):
        yield 300, f"Error parsing 'Reply-To': Illegal email address '{body['ReplyTo']}'."
    if body.get("MessageStream", STREAMS[0]) not in STREAMS:
        yield 1235, "The message stream for the provided 'ID' was not found."
    yield from _part_problems(body)


def _part_problems(body: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    metadata = body.get("Metadata") or {}
    if not isinstance(metadata, dict) or len(metadata) > MAX_METADATA:
        yield 300, "Invalid metadata content."
        return
    for name, value in metadata.items():
        if len(name) > MAX_METADATA_NAME or not isinstance(value, str):
            yield 300, "Invalid metadata content. Names have 20 characters, and values are texts."
        elif len(value) > MAX_METADATA_VALUE:
            yield 300, "Invalid metadata content. Values have 80 characters."
    yield from _list_problems(body)


def _list_problems(body: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    for header in body.get("Headers") or ():
        if not (isinstance(header, dict) and header.get("Name") and header.get("Value")):
            yield 300, "Invalid header: it has a name and a value."
        elif not header["Name"].isascii():
            yield 300, "Invalid header name."
    for file in body.get("Attachments") or ():
        if not (isinstance(file, dict) and file.get("Name") and file.get("ContentType")):
            yield 300, "Invalid attachment: it has a name and a content type."
        elif decoded_size(file.get("Content")) is None:
            yield 300, "Invalid attachment: its content is not base64."
