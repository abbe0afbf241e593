"""Mailgun: ``POST /v3/{domain}/messages`` of its API, below ``/mailgun``."""

import base64
import binascii
import email
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from ...credentials import MailAccounts
from ...outcomes import Outcome, Outcomes, Step, accepted, refused
from ...responses import ProviderResponse
from ..answers import RefusedError, json_response, text_response
from ..base import Attachment, IncomingRequest
from .base import (
    DELIVERED,
    JsonWebhooks,
    Mail,
    MailProvider,
    addresses,
    rate_limits,
    shared_outcomes,
)

REFUSED_KEYS = frozenset({"revoked-key"})
UNKNOWN_DOMAIN = "unknown.example.com"
MAX_OPTIONS = 16 * 1024
"""Bytes of all parameters that begin with ``o:``, ``h:``, or ``v:``."""
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_PATH = re.compile(r"/mailgun/v3/([^/]+)/messages")
FAILURES: Mapping[str, tuple[str, str, int, str]] = {
    "bounce": ("permanent", "bounce", 550, "5.1.1 The email account does not exist"),
    "full": ("permanent", "bounce", 552, "5.2.2 The mailbox is full"),
    "refused-sender": ("permanent", "generic", 550, "5.7.1 Your IP is on a blocklist"),
    "transient": ("temporary", "generic", 451, "4.3.0 Try again later"),
    "old": ("temporary", "old", 498, "No MX for example.com"),
    "suppressed": ("permanent", "suppress-bounce", 605, "Not delivering to a bounced address"),
}
"""Severity, reason, code, and the receiving server's text."""
ERRORS: Mapping[str, tuple[int, str]] = {
    "invalid": (400, "to parameter is not a valid address. please check documentation"),
    "invalid-sender": (400, "from parameter is not a valid address. please check documentation"),
    "invalid-message": (400, "Header name must be pure ASCII"),
    "sandbox-domain": (
        403,
        "Domain x is not allowed to send: Sandbox subdomains are for test purposes only.",
    ),
    "unverified": (400, "Domain example.com is not allowed to send: The domain is unverified"),
    "unpaid": (402, "Payment required"),
    "limit": (400, "Recipient limit exceeded. Try again after 10 minutes."),
    "too-large": (413, "Message exceeds the maximum size."),
    "ratelimit": (429, "Too many requests"),
    "ratelimit-once": (429, "Too many requests"),
    "server-error": (503, "Service unavailable"),
    "flaky": (503, "Service unavailable"),
    "unavailable": (503, "Service unavailable"),
    "failed-later": (500, "Internal server error"),
}
OUTCOMES = Outcomes(
    (
        accepted("delivered", "Accepted, delivered. So is every other address.", DELIVERED),
        accepted("bounce", "Accepted, then a permanent failure.", Step("bounce")),
        accepted("full", "Accepted, then a permanent failure: the mailbox is full.", Step("full")),
        accepted(
            "refused-sender",
            "Accepted, then a permanent failure that is about the sending server.",
            Step("refused-sender"),
        ),
        accepted(
            "transient",
            "Accepted, then a temporary failure, then delivered.",
            Step("transient"),
            Step("delivered", multiple=2),
        ),
        accepted("old", "Accepted, then failed when the time of the queue is over.", Step("old")),
        accepted("suppressed", "Accepted, then dropped: it bounced before.", Step("suppressed")),
        accepted("rejected", "Accepted, then rejected by Mailgun itself.", Step("rejected")),
        accepted(
            "spam",
            "Accepted, delivered, then reported as spam.",
            DELIVERED,
            Step("complaint", multiple=2),
        ),
        accepted(
            "unsubscribed",
            "Accepted, delivered, then unsubscribed.",
            DELIVERED,
            Step("unsubscribed", multiple=2),
        ),
        accepted(
            "failed-later", "Accepted and delivered, but answered with 500.", DELIVERED, status=500
        ),
        refused("invalid", 400, "400: the address is not a valid one."),
        refused("invalid-sender", 400, "400: the sender is not a valid one."),
        refused("invalid-message", 400, "400: another part is invalid."),
        refused("sandbox-domain", 403, "403: a sandbox domain of Mailgun."),
        refused("unverified", 400, "400: the domain is not verified."),
        refused("unpaid", 402, "402: the account is not paid."),
        refused("limit", 400, "400: a limit of the account is reached."),
        refused("too-large", 413, "413: the message is too large."),
        *rate_limits("429 with Retry-After."),
        *shared_outcomes(DELIVERED, server_error=503),
    ),
    default="delivered",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailgun(MailProvider):
    """A domain at Mailgun."""

    accounts: MailAccounts
    name = "mailgun"
    title = "Mailgun"
    route = "/mailgun/{rest:.*}"
    max_body = 25 * 1024 * 1024
    outcomes = OUTCOMES
    event_kinds = frozenset(
        {*FAILURES, "delivered", "rejected", "complaint", "unsubscribed", "open", "click"}
    )

    def page(self, request: IncomingRequest) -> ProviderResponse | None:
        """Return what Mailgun says to a wrong path: it is a success. None for a mail.

        Raises RefusedError.
        """
        if _key(request) in (None, *REFUSED_KEYS):
            raise RefusedError(
                "key-refused", text_response(401, "Forbidden"), "The key is refused."
            )
        path = _PATH.fullmatch(request.path)
        if path is None or request.method != "POST":
            return json_response(200, {"message": "Mailgun Magnificent API"})
        if unquote(path[1]) == UNKNOWN_DOMAIN:
            raise _refusal("unknown-domain", 404, f"Domain not found: {path[1]}")
        return None

    def read(self, request: IncomingRequest) -> Mapping[str, Any]:
        """Return the parameters and files of a request. Raises RefusedError."""
        if request.body is None:
            raise _refusal("too-large", *ERRORS["too-large"])
        kind = request.headers.get("content-type", "")
        if kind.startswith(MULTIPART):
            return _multipart(kind, request.body)
        if not kind.startswith(FORM):
            raise _refusal("not-a-form", 400, "to parameter is missing")
        fields = dict(parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True))
        return {"fields": fields, "files": []}

    def mail(self, body: Mapping[str, Any]) -> Mail:
        """Return a valid mail. Raises RefusedError."""
        fields = body["fields"]
        if problem := next(_problems(fields), None):
            raise _refusal("invalid-request", 400, problem)
        if fields.get("o:testmode") in ("yes", "true", "True"):
            answer = {
                "id": f"<{secrets.token_hex(8)}@example.com>",
                "message": "Queued. Thank you.",
            }
            raise RefusedError("test-mode", json_response(200, answer), "Mode of tests.")
        ((_, address),) = addresses(fields["to"])
        headers = {n.removeprefix("h:"): v for n, v in fields.items() if n.startswith("h:")}
        return Mail(
            sender=fields["from"],
            recipient=address,
            to=fields["to"],
            title=fields.get("subject", ""),
            text=fields.get("text", ""),
            html=fields.get("html", ""),
            reply_to=headers.pop("Reply-To", ""),
            headers=headers,
            attachments=tuple(
                Attachment(name=file["name"], kind=file["kind"], size=file["size"])
                for file in body["files"]
            ),
            reference=fields.get("v:reference"),
        )

    def log_fields(self, body: Mapping[str, Any], mail: Mail) -> dict[str, Any]:
        """Return the log fields of a mail, with its form as JSON."""
        found = MailProvider.log_fields(self, body, mail)
        return found | {"logged_body": msgspec.json.encode(body)}

    def refuse(self, outcome: Outcome, mail: Mail) -> ProviderResponse:
        """Return an error."""
        status, text = ERRORS[outcome.name]
        return json_response(status, {"message": text}, self.pause(status))

    def acceptance(self, mail: Mail, message_id: str, now: datetime) -> Mapping[str, Any]:
        """Return the body of an acceptance."""
        return {"id": message_id, "message": "Queued. Thank you."}

    def new_id(self) -> str:
        """Return a new message ID, which is that of the mail."""
        return f"<{datetime.now(UTC):%Y%m%d%H%M%S}.{secrets.token_hex(8)}@example.com>"

    def event(self, kind: str, mail: Mail, message_id: str) -> dict[str, Any]:
        """Return an event; its time is set when it is sent."""
        names = {"complaint": "complained", "open": "opened", "click": "clicked"}
        data: dict[str, Any] = {
            "id": secrets.token_urlsafe(16),
            "event": "failed" if kind in FAILURES else names.get(kind, kind),
            "timestamp": 0,
            "recipient": mail.recipient,
            "message": {
                "headers": {
                    "message-id": message_id.strip("<>"),
                    "to": mail.to,
                    "from": mail.sender,
                    "subject": mail.title,
                }
            },
            "user-variables": {"reference": mail.reference} if mail.reference else {},
            "tags": [],
        }
        if kind in FAILURES:
            severity, reason, code, text = FAILURES[kind]
            data |= {
                "severity": severity,
                "reason": reason,
                "delivery-status": {"code": code, "message": text, "description": ""},
            }
        elif kind == "rejected":
            data["reject"] = {"reason": "Sent to a domain that is not allowed", "description": ""}
        return {"event-data": data}


class Webhooks(JsonWebhooks):
    """Mailgun's webhooks: one event each, and a signature beside it that doesn't cover it."""

    def timed(self, event: dict[str, Any], at: float) -> Mapping[str, Any]:
        """Return an event with its time, and the signature of that and of a token."""
        token, timestamp = secrets.token_hex(25), str(int(at))
        key = self.accounts.mailgun_signing_key.encode()
        signature = hmac.digest(key, f"{timestamp}{token}".encode(), "sha256").hex()
        return {
            "signature": {"timestamp": timestamp, "token": token, "signature": signature},
            "event-data": event["event-data"] | {"timestamp": at},
        }


def _key(request: IncomingRequest) -> str | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    try:
        user, _, key = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return key if scheme.lower() == "basic" and user == "api" else None


def _multipart(kind: str, body: bytes) -> Mapping[str, Any]:
    found = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=HTTP)
    fields: dict[str, str] = {}
    files: list[dict[str, Any]] = []
    for part in found.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        content = content if isinstance(content, bytes) else b""
        if name == "attachment":
            files.append(
                {
                    "name": str(part.get_filename() or ""),
                    "kind": str(part.get("content-type", "")),
                    "size": len(content),
                }
            )
        else:
            fields[str(name)] = content.decode(errors="replace")
    return {"fields": fields, "files": files}


def _refusal(outcome: str, status: int, text: str) -> RefusedError:
    return RefusedError(outcome, json_response(status, {"message": text}), text)


def _problems(fields: Mapping[str, str]) -> Iterator[str]:
    for name in ("from", "to"):
        if name not in fields:
            yield f"{name} parameter is missing"
        elif len(addresses(fields[name])) != 1:
            yield f"{name} parameter is not a valid address. please check documentation"
    if not (fields.get("text") or fields.get("html")):
        yield "Need at least one of 'text' or 'html' parameters specified"
    options = {name: value for name, value in fields.items() if name[:2] in ("o:", "h:", "v:")}
    if sum(len(name) + len(value.encode()) for name, value in options.items()) > MAX_OPTIONS:
        yield "Send options (parameters starting with o:, h:, or v:) are limited to 16 kB total"
    for name in options:
        if name.startswith("h:") and not name.isascii():
            yield f"Header name must be pure ASCII: {name}"
