"""The interface of a provider.

To add one, write a module with a :class:`Provider`, its responses as a table
(:mod:`.response_rules`), its settings in ``notifyproject/settings/environment.py``, a line in
:mod:`.registry`, and a test for each response, for no response, and for a truncated one.
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from domain.content import Attachment
from domain.errors import FailureCode, ProviderError, ProviderResponse, TransientError
from domain.states import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatsAppTemplateMessage:
    """A template that WhatsApp has approved, with its parameters."""

    name: str
    language: str
    """In Meta's notation: ``en``, ``pt_PT``."""
    parameters: tuple[str, ...] = ()
    """Values of the body's placeholders ``{{1}}``, ``{{2}}``, … in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The rendered content of a message."""

    subject: str | None
    text: str
    html: str | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: Mapping[str, Any] | None = None
    whatsapp_template: WhatsAppTemplateMessage | None = None
    """WhatsApp: sent outside the 24-hour service window."""
    unsubscribe_url: str | None = None
    reply_to: str | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """One message to one address."""

    reference: str
    """The attempt's id, returned in receipts; it has no address."""
    notification_id: str = ""
    """On a device, a message replaces an earlier one with the same notification id."""
    recipient: str
    recipient_name: str | None = None
    message: Message
    category: str
    priority: Priority = Priority.NORMAL
    platform: str | None = None
    is_service_window_open: bool = True
    """WhatsApp: free-form text is permitted."""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The provider accepted the message."""

    provider_id: str | None
    response: ProviderResponse
    is_delivered: bool = False
    """The message has reached the recipient; no receipt follows."""


class ReceiptKind(StrEnum):
    """The kind of a provider's receipt."""

    QUEUED = "queued"
    SENT = "sent"
    DEFERRED = "deferred"
    DELIVERED = "delivered"
    OPENED = "opened"
    CLICKED = "clicked"
    READ = "read"
    BOUNCED = "bounced"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    FAILED = "failed"
    COMPLAINED = "complained"
    UNSUBSCRIBED = "unsubscribed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One receipt from a provider."""

    reference: str | None
    """The reference of the send request; None if the provider didn't return it."""
    provider_id: str | None
    kind: ReceiptKind
    at: datetime
    reason: str | None
    event_id: str
    """The provider's event id; the same event may be reported repeatedly."""
    address: str | None
    """The recipient's address, for suppressions; never logged."""
    is_undeliverable: bool = False
    """A soft bounce: three in a row suppress the address."""


def account_name(name: str, *credentials: str) -> str:
    """Return the name of an account: the provider's name and a fingerprint of the credentials."""
    fingerprint = hashlib.sha256("\0".join(credentials).encode()).hexdigest()
    return f"{name}:{fingerprint[:8]}"


class InvalidSignatureError(Exception):
    """A webhook's signature is missing or invalid."""


class Provider(Protocol):
    """A provider of one channel. Its requests run in the event loop, hundreds at a time."""

    @property
    def name(self) -> str:
        """The provider's name, as stored in attempts."""

    @property
    def account(self) -> str:
        """The scope of circuit breaker and rate limit: name and credentials' fingerprint."""

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one message within ``timeout`` seconds, without blocking the event loop.

        Raises an error of :mod:`domain.errors`, and no other, for anything but the provider's
        documented acceptance; :class:`NotAttemptedError` if the message expired before its request.
        """

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return a webhook's receipts. Raises InvalidSignatureError or ValueError."""


class NotAttemptedError(TransientError):
    """No time was left for the batch or the message. Nothing was sent; it may be released."""

    def __init__(self) -> None:
        super().__init__("No time was left to send it.", code=FailureCode.PROVIDER_ERROR)


def is_expired(request: SendRequest, *, now: datetime) -> bool:
    """Return whether a message has expired; to be checked right before its request."""
    return request.expires_at is not None and now >= request.expires_at


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """A provider that takes the same message for several recipients in one request."""

    def batch_key(self, message: Message) -> Hashable:
        """Return a key that is equal for messages that may share a request."""

    async def send_many(
        self, requests: Sequence[SendRequest], *, timeout: float
    ) -> list[SendResult | ProviderError]:
        """Send messages of one :meth:`batch_key`; return the outcome of each. Raises nothing."""
