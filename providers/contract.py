"""The interface of a provider.

To add a provider, write a package with a :class:`Provider`, a table of its responses
(:mod:`.response_rules`), its variables (``variables.py``), and its
:class:`~providers.spec.ProviderSpec`; and a test for each response, for no response, and for a
truncated response.
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from domain.content import Attachment, PushOptions
from domain.errors import FailureCode, ProviderError, ProviderResponse, TransientError
from domain.mailboxes import Mailbox
from domain.states import Priority
from domain.web_push import SealedSubscription

from .inbound import Inbound


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatsAppTemplateMessage:
    """A template that WhatsApp has approved, with its parameters."""

    name: str
    language: str
    """In Meta's notation: ``en``, ``pt_PT``."""
    parameters: tuple[str, ...] = ()
    """Values of the body's placeholders ``{{1}}``, ``{{2}}``, … in order."""
    button: str | None = None
    """The code that the button of an authentication template copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLink:
    """A link that a message shows as a button."""

    label: str
    url: str


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
    """Sent by WhatsApp outside the 24-hour service window."""
    unsubscribe_url: str | None = None
    sender: Mailbox | None = None
    """Of its brand, in place of the installation's."""
    reply_to: str | None = None
    """An address, or ``Name <address>``."""
    attachments: tuple[Attachment, ...] = ()
    push: PushOptions | None = None
    units: int | None = None
    """How many parts of a text are paid for. None on a channel without parts."""
    links: tuple[MessageLink, ...] = ()
    """For rooms, whose text is in the subset of Markdown of :mod:`domain.markdown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTarget:
    """One address or device token to send to."""

    address: str = field(repr=False)
    device_id: str | None = None
    platform: str = ""
    subscription: SealedSubscription | None = None
    """Of a browser, in place of a token."""
    window_open: bool = True
    """False outside the service window of a channel that has one: only templates are allowed."""
    room: str = ""
    """The ID of a room, which is no secret."""
    sender: str = ""
    """The address that its brand sends from, if it isn't the installation's."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What signs messages to it, the newest first."""
    transport: str = ""
    """What carries a message to it, on a channel whose providers accept different targets."""
    scope: str = ""
    """Its scope at the provider that it is routed to; see :class:`ScopedProvider`."""
    last_attempt: int = 0
    """The number of the last attempt at the device, or 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """One message to one address or device."""

    reference: str
    """ID that the provider returns in receipts. It contains no address."""
    idempotency_key: str = ""
    """The same for repeats of an ambiguous attempt; see :class:`IdempotentProvider`."""
    attempted_at: datetime | None = None
    """When the first attempt with this key began."""
    notification_id: str = ""
    """A device replaces an earlier message that has the same notification ID."""
    recipient: str
    recipient_name: str | None = None
    message: Message
    category: str
    priority: Priority = Priority.NORMAL
    platform: str | None = None
    scope: str | None = None
    """The scope of its recipient or sender, for errors that concern only the scope."""
    subscription: SealedSubscription | None = None
    """Of a browser, in place of a token."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What signs messages to the recipient, the newest first."""
    is_service_window_open: bool = True
    """WhatsApp: free-form text is permitted."""
    expires_at: datetime | None = None

    @property
    def key(self) -> str:
        """What an idempotent provider knows it by: the key, which is the first reference."""
        return self.idempotency_key or self.reference


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The provider's acceptance of a message."""

    provider_id: str | None
    response: ProviderResponse
    is_delivered: bool = False
    """True if the message has already reached the recipient: no receipt follows."""
    pause: float | None = None
    """Seconds for which the scope of the recipient takes nothing more. None: it says nothing."""
    other_address: str | None = None
    """Another form of the recipient's address, which the provider reports in its webhooks."""
    units: int | None = None
    """How many parts the provider bills, if it says so."""


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


class AddressEffect(StrEnum):
    """What a receipt says about the recipient's address."""

    HARD_BOUNCE = "hard bounce"
    """Suppresses it."""
    SOFT_BOUNCE = "soft bounce"
    """Three in a row suppress it."""
    PROBABLE_BOUNCE = "probable bounce"
    """It counts as two soft bounces."""
    COMPLAINT = "complaint"
    """Suppresses it."""
    UNSUBSCRIBED = "unsubscribed"
    """Suppresses it for marketing, or for everything, as on the whole channel."""


EFFECTS: Mapping[ReceiptKind, AddressEffect] = {
    ReceiptKind.BOUNCED: AddressEffect.HARD_BOUNCE,
    ReceiptKind.COMPLAINED: AddressEffect.COMPLAINT,
    ReceiptKind.UNSUBSCRIBED: AddressEffect.UNSUBSCRIBED,
}
"""What a receipt says about the address by its kind. Other kinds say nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One event that a provider reports about a message after the send."""

    reference: str | None
    """The reference of the send request; None if the provider didn't return it."""
    provider_id: str | None
    kind: ReceiptKind
    at: datetime
    reason: str | None
    event_id: str
    """The provider's event ID. A provider may report the same event repeatedly."""
    address: str | None
    """The recipient's address, for suppressions. Never logged."""
    effect: AddressEffect | None = None
    """What the receipt says about the address, if not what its kind says."""
    other_ids: tuple[str, ...] = ()
    """Other message IDs that the provider may have given the message."""
    code: FailureCode | None = None
    """Why it failed, if not what its kind says."""
    units: int | None = None
    """How many parts the provider bills."""
    cost: Decimal | None = None
    currency: str | None = None
    """The currency of the cost, such as ``USD``."""
    is_pumping: bool = False
    """Whether the provider blocks numbers like this one, because it suspects pumping."""

    @property
    def address_effect(self) -> AddressEffect | None:
        """What the receipt says about the address."""
        return self.effect or EFFECTS.get(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """A provider's call of its webhook."""

    method: str
    url: str
    """The called URL, as the provider knows it: some sign it. It follows from ``PUBLIC_URL``,
    because anybody can send any Host."""
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    """By names in lower case."""
    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReply:
    """The response that a provider expects in place of ours."""

    body: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookResult:
    """What a webhook contains. An item that can't be read is counted, and others take effect."""

    receipts: tuple[Receipt, ...] = ()
    unreadable_count: int = 0
    inbound: Inbound | None = None
    """What recipients tell; None for a provider that doesn't report it."""
    logged: str | None = None
    """The body for the log, without what people wrote. None: nothing is logged, or applied."""
    reply: WebhookReply | None = None


def account_name(name: str, *credentials: str) -> str:
    """Return the name of an account: the provider's name and a hash of the credentials."""
    fingerprint = hashlib.sha256("\0".join(credentials).encode()).hexdigest()
    return f"{name}:{fingerprint[:8]}"


class InvalidSignatureError(Exception):
    """A webhook's signature is missing or invalid."""


class UnverifiedWebhookError(Exception):
    """Whether a webhook is genuine can't be found out now. The provider repeats it later."""


class InvalidVerifyTokenError(InvalidSignatureError):
    """The token is wrong with which a provider verifies the address of its webhook."""


class Provider(Protocol):
    """A provider of one channel. Its requests run in the event loop, hundreds at a time."""

    @property
    def name(self) -> str:
        """The provider's name, as stored in attempts."""

    @property
    def account(self) -> str:
        """The account's name: circuit breaker and rate limit are per account."""

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one message within ``timeout`` seconds, without blocking the event loop.

        Anything but the provider's documented acceptance raises an error of :mod:`domain.errors`.
        If the message expired before its request, that error is :class:`NotAttemptedError`.
        """


class NotAttemptedError(TransientError):
    """Nothing was sent: the time for the send was over, or the message had expired."""

    def __init__(self) -> None:
        super().__init__("No time was left to send it.", code=FailureCode.PROVIDER_ERROR)


def is_expired(request: SendRequest, *, now: datetime) -> bool:
    """Return whether a message has expired. Call this right before its request."""
    return request.expires_at is not None and now >= request.expires_at


def seconds_to_send(request: SendRequest, *, left: float, now: datetime) -> float:
    """Return the seconds that are left for a request. Call this right before it.

    Raises NotAttemptedError if there are none, or if the message has expired.
    """
    if left <= 0 or is_expired(request, now=now):
        raise NotAttemptedError
    return left


@runtime_checkable
class WebhookProvider(Provider, Protocol):
    """A provider that calls a webhook."""

    def parse_webhook(self, request: WebhookRequest) -> WebhookResult:
        """Verify and read a call. Raises InvalidSignatureError, or ValueError for other content."""

    def parse_logged(self, raw: bytes) -> WebhookResult:
        """Read the ``logged`` body of a verified call again. Raises ValueError."""


@runtime_checkable
class IdempotentProvider(Provider, Protocol):
    """A provider that takes requests with the same ``idempotency_key`` as one.

    An ambiguous attempt is repeated with its key. The bytes of a repeat must be those of the first
    request, so they follow from the message, the key, and ``attempted_at`` alone.
    """

    @property
    def idempotency(self) -> timedelta:
        """How long the provider remembers a key."""


@runtime_checkable
class ReceiptlessProvider(Provider, Protocol):
    """A provider of email that reports nothing after an acceptance."""

    @property
    def clears_soft_bounces(self) -> bool:
        """Whether an acceptance shows that the address takes messages."""


@runtime_checkable
class ScopedProvider(Provider, Protocol):
    """A provider whose targets are in scopes: one may be unavailable while the others work.

    A scope is any text that follows from the target: a platform, a push service's host, a room's
    ID, a country, a brand's sender. It is shown to staff, so it contains no recipient's address and
    no secret. An error with the
    scope of its request opens the circuit of the scope, or pauses it, and never affects the
    account.
    """

    def scope(self, target: SendTarget) -> str:
        """Return the scope of a target. Empty: only the account's circuit concerns it."""


@runtime_checkable
class SelectiveProvider(Provider, Protocol):
    """A provider that can send to some targets of its channel, and not to others."""

    def accepts(self, target: SendTarget) -> bool:
        """Return whether the provider can send to a target at all. It doesn't change."""


def accepted_targets(provider: Provider, targets: Sequence[SendTarget]) -> Sequence[SendTarget]:
    """Return the targets that a provider can send to."""
    if not isinstance(provider, SelectiveProvider):
        return targets
    return tuple(target for target in targets if provider.accepts(target))


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """A provider that can send the same message to several recipients in one request."""

    def batch_key(self, message: Message) -> Hashable:
        """Return a key that is equal for messages that may share a request."""

    async def send_many(
        self, requests: Sequence[SendRequest], *, timeout: float
    ) -> list[SendResult | ProviderError]:
        """Send messages with an equal :meth:`batch_key`. Return the result or error of each."""
