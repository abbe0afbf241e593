"""Resend: ``POST /emails`` and ``GET /domains`` of its API, below ``/resend``."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...credentials import MailAccounts
from ...outcomes import Outcome, Outcomes, Step, accepted, refused
from ...responses import ProviderResponse
from ..answers import RefusedError, json_object, json_response
from ..base import Attachment, IncomingRequest, RequestResult
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

REFUSED_KEYS: Mapping[str, tuple[int, str, str]] = {
    "revoked-key": (401, "validation_error", "API key is invalid"),
}
SENDING_ONLY = "sending-only-key"
"""It may send, and not read."""
MAX_KEY = 256
KEY_SECONDS = 24 * 3600
_REFERENCE = re.compile(r'"reference": ?"([^"]+)"')
BOUNCES: Mapping[str, tuple[str, str, str]] = {
    "bounce": ("Permanent", "General", "The recipient's email provider sent a hard bounce."),
    "soft-bounce": ("Transient", "MailboxFull", "The recipient's inbox was full."),
    "content-bounce": ("Transient", "ContentRejected", "The content was rejected."),
    "new-type": ("Quantum", "Nobody", "Nobody knows."),
}
"""Type, subtype, and text."""
ERRORS: Mapping[str, tuple[int, str, str]] = {
    "invalid": (
        422,
        "validation_error",
        "Invalid `to` field. The email address needs to follow the `email@example.com` format.",
    ),
    "invalid-sender": (422, "invalid_from_address", "Invalid `from` field."),
    "unverified": (403, "validation_error", "The example.com domain is not verified."),
    "test-recipients": (
        403,
        "validation_error",
        "You can only send testing emails to your own email address.",
    ),
    "invalid-message": (422, "validation_error", "The `headers` field is invalid."),
    "quota": (429, "daily_quota_exceeded", "You have reached your daily email quota."),
    "ratelimit": (429, "rate_limit_exceeded", "Too many requests."),
    "ratelimit-once": (429, "rate_limit_exceeded", "Too many requests."),
    "too-large": (413, "validation_error", "The request is too large."),
    "concurrent": (409, "concurrent_idempotent_requests", "The key is in use."),
    "server-error": (500, "application_error", "An unexpected error occurred."),
    "flaky": (500, "application_error", "An unexpected error occurred."),
    "unavailable": (503, "internal_server_error", "An unexpected error occurred."),
}
SENT = Step("sent", is_early=True)
OUTCOMES = Outcomes(
    (
        accepted(
            "delivered", "Accepted, sent, delivered. So is every other address.", SENT, DELIVERED
        ),
        accepted("bounce", "Accepted, then a permanent bounce.", SENT, Step("bounce")),
        accepted("soft-bounce", "Accepted, then a transient bounce.", SENT, Step("soft-bounce")),
        accepted(
            "content-bounce",
            "Accepted, then a transient bounce that is about the content.",
            SENT,
            Step("content-bounce"),
        ),
        accepted("new-type", "Accepted, then a bounce of an unknown type.", SENT, Step("new-type")),
        accepted(
            "delayed",
            "Accepted, delayed, then delivered.",
            SENT,
            Step("delayed"),
            Step("delivered", multiple=2),
        ),
        accepted("suppressed", "Accepted, then suppressed: it bounced before.", Step("suppressed")),
        accepted(
            "spam",
            "Accepted, delivered, then reported as spam.",
            SENT,
            DELIVERED,
            Step("complaint", multiple=2),
        ),
        refused("invalid", 422, "422: the address is not a valid one."),
        refused("invalid-sender", 422, "422: the sender is not a valid one."),
        refused("unverified", 403, "403: the domain is not verified."),
        refused("test-recipients", 403, "403: the account sends only to its owner."),
        refused("invalid-message", 422, "422: another part is invalid."),
        refused("quota", 429, "429: the quota of the day is used up."),
        refused("concurrent", 409, "409: the idempotency key is in use."),
        refused("too-large", 413, "413: the message is too large."),
        *rate_limits("429 with Retry-After."),
        *shared_outcomes(SENT, DELIVERED),
    ),
    default="delivered",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resend(MailProvider):
    """An account of Resend, which remembers idempotency keys for a day."""

    accounts: MailAccounts
    known: dict[str, tuple[datetime, str, str]] = field(default_factory=dict)
    """When a key was first used, with the digest of its body and the ID of the message."""
    name = "resend"
    title = "Resend"
    route = "/resend/{rest:.*}"
    max_body = 40 * 1024 * 1024
    outcomes = OUTCOMES
    event_kinds = frozenset(
        {*BOUNCES, "sent", "delivered", "delayed", "complaint", "suppressed", "open", "click"}
    )

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request. One with a known key isn't sent again."""
        key = request.headers.get("idempotency-key")
        if key is None or request.path != "/resend/emails":
            return super(Resend, self).handle(request, now=now)
        if not 0 < len(key) <= MAX_KEY:
            return _result(_refusal("invalid-key", 400, "invalid_idempotency_key", "The key is…"))
        digest = hashlib.sha256(request.body or b"").hexdigest()
        used_at, known, message_id = self.known.get(key, (now, "", ""))
        if known and (now - used_at).total_seconds() < KEY_SECONDS:
            if known != digest:
                text = "The key was used with another body."
                return _result(_refusal("other-body", 409, "invalid_idempotent_request", text))
            return RequestResult(
                outcome="repeated", response=json_response(200, {"id": message_id}), is_json=True
            )
        result = super(Resend, self).handle(request, now=now)
        if result.accepted and result.message_id:
            self.known[key] = now, digest, result.message_id
        return result

    def memory(self) -> Sequence[MutableSet[str] | MutableMapping[str, Any]]:
        """Return the known keys."""
        return (self.known,)

    def page(self, request: IncomingRequest) -> ProviderResponse | None:
        """Return the domains. None for a mail. Raises RefusedError."""
        key = request.bearer_token()
        if key is None:
            raise _refusal("key-missing", 401, "missing_api_key", "Missing API Key")
        if key in REFUSED_KEYS:
            raise _refusal("key-refused", *REFUSED_KEYS[key])
        match request.method, request.path:
            case "GET", "/resend/domains":
                if key == SENDING_ONLY:
                    text = "This API key is restricted to only send emails"
                    raise _refusal("sending-only", 401, "restricted_api_key", text)
                return json_response(200, {"object": "list", "data": []})
            case "POST", "/resend/emails":
                return None
            case _, "/resend/emails":
                raise _refusal("method-not-allowed", 405, "method_not_allowed", "Use POST.")
        raise _refusal("not-found", 404, "not_found", "The endpoint does not exist.")

    def read(self, request: IncomingRequest) -> Mapping[str, Any]:
        """Return the JSON object of a request. Raises RefusedError."""
        if request.body is None:
            raise _refusal("too-large", *ERRORS["too-large"])
        body = json_object(request)
        if body is None:
            raise _refusal("not-json", 400, "validation_error", "The body is no JSON object.")
        return body

    def mail(self, body: Mapping[str, Any]) -> Mail:
        """Return a valid mail. Raises RefusedError."""
        if problem := next(_problems(body), None):
            raise _refusal("invalid-request", 422, *problem)
        (to,) = body["to"] if isinstance(body["to"], list) else (body["to"],)
        ((_, address),) = addresses(to)
        headers = dict(body.get("headers") or {})
        metadata = headers.pop("X-Metadata", "{}")
        return Mail(
            sender=body["from"],
            recipient=address,
            to=to,
            title=body["subject"],
            text=body.get("text") or "",
            html=body.get("html") or "",
            reply_to=", ".join(body.get("reply_to") or ()),
            headers=headers,
            attachments=tuple(
                Attachment(
                    name=item["filename"],
                    kind=item["content_type"],
                    size=decoded_size(item["content"]) or 0,
                )
                for item in body.get("attachments") or ()
            ),
            reference=_reference(metadata),
        )

    def refuse(self, outcome: Outcome, mail: Mail) -> ProviderResponse:
        """Return an error."""
        status, name, text = ERRORS[outcome.name]
        is_rate = name == "rate_limit_exceeded"
        body = {"statusCode": status, "name": name, "message": text}
        return json_response(status, body, self.pause(status) if is_rate else {})

    def acceptance(self, mail: Mail, message_id: str, now: datetime) -> Mapping[str, Any]:
        """Return the body of an acceptance."""
        return {"id": message_id}

    def event(self, kind: str, mail: Mail, message_id: str) -> dict[str, Any]:
        """Return an event; its time is set when it is sent."""
        names = {
            "complaint": "complained",
            "delayed": "delivery_delayed",
            "open": "opened",
            "click": "clicked",
            **dict.fromkeys(BOUNCES, "bounced"),
        }
        data: dict[str, Any] = {
            "created_at": "2026-11-22 23:41:12.126+00",
            "email_id": message_id,
            "from": mail.sender,
            "to": [mail.recipient],
            "subject": mail.title,
            "headers": [{"name": "X-Metadata", "value": f'{{"reference": "{mail.reference}"}}'}],
        }
        if kind in BOUNCES:
            name, subtype, text = BOUNCES[kind]
            data["bounce"] = {"type": name, "subType": subtype, "message": text}
        return {"type": f"email.{names.get(kind, kind)}", "created_at": "", "data": data}


class Webhooks(JsonWebhooks):
    """Resend's webhooks: one event each, signed by Svix."""

    def timed(self, event: dict[str, Any], at: float) -> Mapping[str, Any]:
        """Return an event with its time."""
        return event | {"created_at": f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"}

    def headers(self, body: bytes, *, url: str, now: datetime) -> dict[str, str]:
        """Return the headers of a POST, with the signature of its ID, its time, and its body."""
        message_id = f"msg_{hashlib.sha256(body).hexdigest()[:27]}"
        timestamp = str(int(now.timestamp()))
        key = base64.b64decode(self.accounts.resend_signing_secret.removeprefix("whsec_"))
        signed = f"{message_id}.{timestamp}.".encode() + body
        digest = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
        return {
            "Content-Type": "application/json",
            "User-Agent": "Svix-Webhooks/1.0",
            "svix-id": message_id,
            "svix-timestamp": timestamp,
            "svix-signature": f"v1,{digest}",
        }


def _reference(metadata: str) -> str | None:
    found = _REFERENCE.search(metadata)
    return found[1] if found else None


def _refusal(outcome: str, status: int, name: str, text: str) -> RefusedError:
    body = {"statusCode": status, "name": name, "message": text}
    return RefusedError(outcome, json_response(status, body), f"({name}) {text}")


def _result(error: RefusedError) -> RequestResult:
    return RequestResult(outcome=error.outcome, response=error.response, reason=error.reason)


def _problems(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of what is wrong with a mail."""
    error = "validation_error"
    format_ = "The email address needs to follow the `email@example.com` format."
    if len(addresses(body.get("from"))) != 1:
        yield error, f"Invalid `from` field. {format_}"
    to = body.get("to")
    listed = to if isinstance(to, list) else [to]
    if len(listed) != 1 or len(addresses(listed[0])) != 1:
        yield error, f"Invalid `to` field. {format_}"
    if not isinstance(body.get("subject"), str):
        yield "missing_required_field", "Missing `subject` field."
    if not (body.get("text") or body.get("html")):
        yield "missing_required_field", "Missing `html` or `text` field."
    headers = body.get("headers") or {}
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        yield error, "The `headers` field must be an object of texts."
    for file in body.get("attachments") or ():
        if not file.get("filename") or decoded_size(file.get("content")) is None:
            yield "invalid_attachment", "An attachment has a `filename` and `content` in base64."
