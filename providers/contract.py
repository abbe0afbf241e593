"""What every channel's provider is, to the rest of the service.

To add one: a module beside this one with a class that is a :class:`Channel`, its answers as a table
(:mod:`.response_rules`), its settings in ``notifyproject/settings/environment.py``, a line in
:mod:`.registry`, and a test for each answer it may give, for none, and for half of one.
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Protocol, cast, runtime_checkable

from domain.content import Attachment
from domain.errors import FailureCode, ProviderError, ProviderResponse, TransientError
from domain.states import Priority

from .http import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatsAppTemplateMessage:
    """A message whose wording WhatsApp has approved, with what stands in its places."""

    name: str
    language: str
    """As Meta writes it: ``en``, ``pt_PT``."""
    parameters: tuple[str, ...] = ()
    """The texts of the body's places ``{{1}}``, ``{{2}}``, … in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What to say, rendered."""

    subject: str | None
    text: str
    html: str | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: Mapping[str, Any] | None = None
    whatsapp_template: WhatsAppTemplateMessage | None = None
    """WhatsApp: what may be sent to somebody who has not written for a day."""
    unsubscribe_url: str | None = None
    """Mail: where one click ends messages of this kind."""
    reply_to: str | None = None
    """Mail: where an answer goes; None: wherever the service is configured to want it."""
    attachments: tuple[Attachment, ...] = ()
    """Mail: files that are fetched when it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """One message to one address."""

    reference: str
    """Our attempt's id. It goes along and comes back in receipts; no address is in it."""
    notification_id: str = ""
    """The notification's id: a second copy with the same one replaces the first on a device."""
    recipient: str
    """The address in the channel's own form."""
    recipient_name: str | None = None
    message: Message
    category: str
    priority: Priority = Priority.NORMAL
    platform: str | None = None
    """Push: android, ios or web."""
    is_service_window_open: bool = True
    """WhatsApp: the person has written within a day, so free text may be sent."""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The provider accepted the message."""

    provider_id: str | None
    response: ProviderResponse
    is_delivered: bool = False
    """It is with the person already; there will be no receipt."""


class ReceiptKind(StrEnum):
    """What a provider may report about a message."""

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
    """One event a provider reports."""

    reference: str | None
    """What we sent along; None if the provider did not return it."""
    provider_id: str | None
    kind: ReceiptKind
    at: datetime
    reason: str | None
    event_id: str
    """The provider's own id of the event: the same event may be reported again."""
    address: str | None
    """Whom it is about, for suppressions; never logged."""
    is_undeliverable: bool = False
    """The provider says that nothing can be delivered to this address: three such are proof."""


def account_name(name: str, *credentials: str) -> str:
    """Return the name of a provider's account: the provider's and a fingerprint, no secret."""
    fingerprint = hashlib.sha256("\0".join(credentials).encode()).hexdigest()
    return f"{name}:{fingerprint[:8]}"


class InvalidSignatureError(Exception):
    """A webhook is not what the provider signed."""


class Provider(Protocol):
    """A provider of one channel."""

    @property
    def name(self) -> str:
        """The provider's name, as in attempts and in the admin."""
        ...

    @property
    def account(self) -> str:
        """Whose troubles and rate are one: the name and a fingerprint of the credentials."""
        ...

    def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Hand one message to the provider within ``timeout`` seconds.

        Raises one of the errors of :mod:`domain.errors`, and nothing else, for anything but
        the provider's documented acceptance; :class:`NotAttemptedError` if the message's own time
        is over before its request begins.
        """
        ...

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return the events of a webhook; raises InvalidSignatureError or ValueError."""
        ...


class NotAttemptedError(TransientError):
    """No time was left for it, its batch's or its own. Nothing of it left: it may be given back."""

    def __init__(self) -> None:
        super().__init__("There was no time left to send it in.", code=FailureCode.PROVIDER_ERROR)


def is_expired(request: SendRequest, *, now: datetime) -> bool:
    """Return whether a message's time is over: :class:`NotAttemptedError`, then.

    To be asked right before a request that something else, a file or a token, may have held up.
    """
    return request.expires_at is not None and now >= request.expires_at


class NonBlockingProvider(Provider, Protocol):
    """A provider that is spoken to by requests alone: one thread speaks for many messages."""

    def is_non_blocking(self, request: SendRequest) -> bool:
        """Whether a message needs nothing else, a file say, that would hold up the others."""
        ...

    def exchange(self, request: SendRequest, *, timeout: float) -> Exchange[SendResult]:
        """Yield what is to be asked, be sent the answers, and return and raise as :meth:`send`."""
        ...


def as_non_blocking(provider: Provider) -> NonBlockingProvider | None:
    """Return a provider that is one that talks; None for any other."""
    return cast("NonBlockingProvider", provider) if _has_exchange(type(provider)) else None


@cache
def _has_exchange(provider_type: type) -> bool:
    # To ask a protocol whether it holds takes 10 µs, and is asked for each message.
    return hasattr(provider_type, "exchange")


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """A provider that takes the same message for several people in one request."""

    def batch_key(self, message: Message) -> Hashable:
        """Return what is equal for messages that may go together."""
        ...

    def send_many(
        self, requests: Sequence[SendRequest], *, timeout: float
    ) -> list[SendResult | ProviderError]:
        """Hand messages that may go together to the provider; return what became of each.

        :class:`NotAttemptedError` is what was left when the time was over. Raises nothing.
        """
        ...
