"""Email by SendGrid's v3 API.

``sendgrid`` builds the body and verifies webhooks; its own transport is not used: it has no
timeout, follows redirects with the key, and opens a connection for every request.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parseaddr
from functools import cached_property
from typing import Annotated, Any

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from msgspec import Meta
from sendgrid.helpers.eventwebhook import EventWebhook
from sendgrid.helpers.mail import (
    Content,
    CustomArg,
    Email,
    Mail,
    Personalization,
    SendGridException,
    Subject,
    To,
)

from ..errors import Answer, FailureCode, PermanentError
from . import http
from .addresses import ascii_email
from .answers import Kind, Rule, classify
from .base import InvalidSignature, Outbound, Receipt, ReceiptKind, SendResult

ACCEPTED = 202
REPLAY_WINDOW = timedelta(minutes=10)
"""A signed webhook older than this is refused: somebody may have kept a copy."""
SIGNATURE_HEADER = "x-twilio-email-event-webhook-signature"
TIMESTAMP_HEADER = "x-twilio-email-event-webhook-timestamp"
MAX_ID_LENGTH = 200
"""An id or field name of SendGrid's is kept up to this length; they are shorter."""
_EPOCH = re.compile(r"\d{10}", re.ASCII)

ANSWERS: Sequence[Rule] = (
    Rule(
        statuses=(429,),
        kind=Kind.TRANSIENT,
        code=FailureCode.RATE_LIMITED,
        reason="SendGrid wants fewer requests.",
    ),
    Rule(
        statuses=(408,),
        kind=Kind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="SendGrid did not get the whole request in time.",
    ),
    Rule(
        statuses=(*range(300, 400), 401, 403, 404, 405, 415),
        kind=Kind.UNAVAILABLE,
        reason="SendGrid does not serve this account or address as configured.",
    ),
    Rule(
        statuses=(400,),
        field=r"personalizations\.\d+\.to\b.*",
        kind=Kind.INVALID_RECIPIENT,
        reason="SendGrid does not take the recipient's address.",
    ),
    Rule(
        statuses=(413,),
        kind=Kind.PERMANENT,
        code=FailureCode.TOO_LARGE,
        reason="The message is larger than SendGrid takes.",
    ),
    Rule(statuses=(400,), kind=Kind.PERMANENT, reason="SendGrid refused the message."),
)

EVENTS: Mapping[str, ReceiptKind] = {
    "processed": ReceiptKind.QUEUED,
    "deferred": ReceiptKind.DEFERRED,
    "delivered": ReceiptKind.DELIVERED,
    "open": ReceiptKind.OPENED,
    "click": ReceiptKind.CLICKED,
    "bounce": ReceiptKind.BOUNCED,
    "blocked": ReceiptKind.BLOCKED,
    "dropped": ReceiptKind.REJECTED,
    "spamreport": ReceiptKind.COMPLAINED,
    "unsubscribe": ReceiptKind.UNSUBSCRIBED,
    "group_unsubscribe": ReceiptKind.UNSUBSCRIBED,
}
"""SendGrid's event names; a bounce whose ``type`` is ``blocked`` is looked up as that."""


class _Event(msgspec.Struct):
    """The fields of an event that matter here; there are many more."""

    event: str
    timestamp: Annotated[int, Meta(ge=0, lt=10**11)]
    sg_event_id: str
    sg_message_id: str = ""
    reference: str | None = None
    email: str | None = None
    reason: str | None = None
    type: str | None = None


@dataclass(frozen=True, kw_only=True)
class SendGrid:
    """A SendGrid account."""

    api_key: str = field(repr=False)
    base_url: str
    sender: str
    """``Name <address>``."""
    webhook_public_key: str
    clock: Callable[[], datetime]
    name: str = "sendgrid"

    def send(self, outbound: Outbound, *, timeout: float) -> SendResult:
        """Hand one email to SendGrid; see :class:`notifications.channels.base.Channel`."""
        response = http.post(
            f"{self.base_url}/v3/mail/send",
            body=self._encoded(outbound),
            headers={
                "Authorization": f"Bearer {self.api_key}",
                "Content-Type": "application/json",
            },
            timeout=timeout,
        )
        if response.status != ACCEPTED:
            fields = _fields(response)
            raise classify(
                ANSWERS,
                answer=Answer(
                    status=response.status,
                    code=next(iter(fields), None),
                    excerpt=response.excerpt,
                ),
                fields=fields,
                retry_after=self._pause(response.headers),
            )
        return SendResult(
            provider_id=response.headers.get("x-message-id", "")[:MAX_ID_LENGTH] or None,
            answer=Answer(status=response.status),
        )

    def body(self, outbound: Outbound) -> dict[str, Any]:
        """Return the JSON body of one email, as Python's objects."""
        message = outbound.message
        mail = Mail()
        mail.from_email = self._sender
        mail.subject = Subject(message.subject)
        personalization = Personalization()
        personalization.add_to(To(ascii_email(outbound.recipient), outbound.recipient_name))
        personalization.add_custom_arg(CustomArg("reference", outbound.reference))
        mail.add_personalization(personalization)
        mail.add_content(Content("text/plain", message.text))
        if message.html:
            mail.add_content(Content("text/html", message.html))
        return mail.get()

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return the events of a webhook; raises InvalidSignature or ValueError."""
        self._verify(headers, raw)
        try:
            events = msgspec.json.decode(raw, type=list[_Event])
        except RecursionError as error:
            raise ValueError("the JSON is nested too deeply") from error
        return [_receipt(event) for event in events if _kind(event) is not None]

    def _encoded(self, outbound: Outbound) -> bytes:
        try:
            return msgspec.json.encode(self.body(outbound))
        except (ValueError, SendGridException) as error:
            raise PermanentError(
                "The message cannot be made into a mail.", code=FailureCode.RENDER_FAILED
            ) from error

    @cached_property
    def _sender(self) -> Email:
        name, address = parseaddr(self.sender)
        return Email(address, name or None)

    @cached_property
    def _verifier(self) -> EventWebhook:
        return EventWebhook(self.webhook_public_key)

    def _verify(self, headers: Mapping[str, str], raw: bytes) -> None:
        """Raise InvalidSignature unless SendGrid signed this body within the last ten minutes."""
        if not self.webhook_public_key:
            raise InvalidSignature("no public key is configured")
        timestamp = headers.get(TIMESTAMP_HEADER, "")
        if not _EPOCH.fullmatch(timestamp):
            raise InvalidSignature("the timestamp is missing or not one")
        age = self.clock() - datetime.fromtimestamp(int(timestamp), UTC)
        if abs(age) > REPLAY_WINDOW:
            raise InvalidSignature("the timestamp is not of the last ten minutes")
        try:
            verifier = self._verifier
        except (ValueError, UnsupportedAlgorithm) as error:
            raise InvalidSignature("the public key, as configured, cannot be read") from error
        try:
            genuine = verifier.verify_signature(
                raw.decode(), headers.get(SIGNATURE_HEADER, ""), timestamp
            )
        except (ValueError, TypeError, AttributeError) as error:
            # The latter two: a public key of another kind.
            raise InvalidSignature("the signature cannot be read") from error
        if not genuine:
            raise InvalidSignature("the signature is not SendGrid's")

    def _pause(self, headers: Mapping[str, str]) -> float | None:
        """Return the pause SendGrid asks for: X-RateLimit-Reset is an epoch, else Retry-After."""
        reset = headers.get("x-ratelimit-reset", "")
        if _EPOCH.fullmatch(reset):
            return http.bounded_pause(int(reset) - self.clock().timestamp())
        return http.retry_after(headers, now=self.clock())


def _fields(response: http.Response) -> list[str]:
    """Return the names of the fields SendGrid complains about, as far as its body is readable."""
    try:
        body = msgspec.json.decode(response.body)
    except (ValueError, RecursionError):
        return []
    errors = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(errors, list):
        return []
    names = [error.get("field") for error in errors if isinstance(error, dict)]
    return [http.redact(name)[:MAX_ID_LENGTH] for name in names if isinstance(name, str)]


def _kind(event: _Event) -> ReceiptKind | None:
    name = event.type if event.event == "bounce" and event.type == "blocked" else event.event
    return EVENTS.get(name)


def _receipt(event: _Event) -> Receipt:
    return Receipt(
        reference=event.reference,
        # X-Message-Id is the part of sg_message_id before its first dot.
        provider_id=event.sg_message_id.partition(".")[0] or None,
        kind=_kind(event) or ReceiptKind.QUEUED,
        at=datetime.fromtimestamp(event.timestamp, UTC),
        reason=http.excerpt(event.reason) if event.reason else None,
        event_id=event.sg_event_id,
        address=event.email,
    )
