"""What every channel's provider is, to the rest of the service.

To add one: docs/adding_a_channel.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from ..errors import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What to say, rendered."""

    subject: str | None
    text: str
    html: str | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """One message to one address."""

    reference: str
    """Our attempt's id. It goes along and comes back in receipts; no address is in it."""
    recipient: str
    """The address in the channel's own form."""
    recipient_name: str | None = None
    message: Message
    category: str
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The provider accepted the message."""

    provider_id: str | None
    answer: Answer
    delivered: bool = False
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


class InvalidSignature(Exception):
    """A webhook is not what the provider signed."""


class Channel(Protocol):
    """A provider of one channel."""

    @property
    def name(self) -> str:
        """The provider's name, as in attempts and in the admin."""
        ...

    def send(self, outbound: Outbound, *, timeout: float) -> SendResult:
        """Hand one message to the provider within ``timeout`` seconds.

        Raises one of the errors of :mod:`notifications.errors`, and nothing else, for anything but
        the provider's documented acceptance.
        """
        ...

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return the events of a webhook; raises InvalidSignature or ValueError."""
        ...
