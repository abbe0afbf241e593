"""The interface of a provider. docs/reference/sandbox.md describes how to add one."""

from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSet,
    Sequence,
)
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import product
from typing import Any, ClassVar, Protocol

import aiohttp
import msgspec

from ..behaviours import Behaviours
from ..config import Timings
from ..log import Record
from ..outcomes import Outcome, Outcomes
from ..responses import ProviderResponse


class Channel(StrEnum):
    """A provider's channel, by which the outbox filters."""

    EMAIL = "email"
    PUSH = "push"
    WHATSAPP = "whatsapp"
    SMS = "sms"
    ROOM = "room"
    NONE = "none"
    """For requests without a message, such as authentication."""

    @property
    def label(self) -> str:
        """The name as people read it."""
        return _LABELS.get(self, self.capitalize())


_LABELS: Mapping[Channel, str] = {Channel.WHATSAPP: "WhatsApp", Channel.SMS: "SMS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRequest:
    """A request to a provider."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes | None
    """None: the body is larger than the provider accepts."""

    def json(self) -> Any:
        """Return the decoded JSON body. Raises ValueError."""
        try:
            return msgspec.json.decode(self.body or b"")
        except RecursionError as error:
            raise ValueError("too deep") from error

    def bearer_token(self) -> str | None:
        """Return the Authorization header's bearer token; None if there is none."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEvent:
    """An event that the provider will send."""

    kind: str
    delay: float
    payload: dict[str, Any]
    """The event's content, without the time, which is set when the event is sent."""
    url: str | None = None
    """The receiver; None: that of the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """A provider's decision on a request."""

    outcome: str
    response: ProviderResponse
    accepted: bool = False
    is_message: bool = True
    """False for requests such as authentication."""
    reason: str | None = None
    title: str | None = None
    references: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()
    message_id: str | None = None
    is_json: bool = False
    logged_body: bytes | None = None
    """JSON that the log has instead of the body, which contains credentials or is a form."""
    events: tuple[PlannedEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file in a message."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedMessage:
    """A message as its recipient sees it."""

    sender: str = ""
    recipients: tuple[str, ...] = ()
    title: str = ""
    text: str = ""
    html: str = ""
    image: str = ""
    """The URL or ID of the message's image, which the outbox never loads."""
    link: str = ""
    small_print: str = ""
    buttons: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Names and values of further parts, such as headers for the mail program or the device."""
    attachments: tuple[Attachment, ...] = ()


class EventRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request to the control API for an event about a message."""

    reference: str
    kind: str
    delay: float = 0.0
    duplicates: int = 0
    recipient: str | None = None
    timestamp: int | None = None
    """The time in the event, in seconds since 1970; None: the time of sending."""
    code: int | None = None
    """The error code; None: the default of the event's kind."""


class InboundMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A request to the control API for a message from a person to the sender."""

    sender: str = msgspec.field(name="from")
    text: str
    name: str | None = None
    button: str | None = None
    """The ID of a tapped button, whose label is ``text``."""
    duplicates: int = 0
    timestamp: int | None = None


class SubscriptionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request to the control API for the subscription of a browser."""

    host: str
    name: str
    application_server_key: str | None = None
    """The public key in base64url that alone may push to it; None: any key may."""


class WebhookFormat(Protocol):
    """How a provider posts its events: batches, encoding, and signatures."""

    @property
    def batch(self) -> int:
        """The maximum number of events in a POST."""

    async def prepare(self, session: aiohttp.ClientSession, url: str) -> str | None:
        """Complete a handshake before a POST; return the error, or None on success."""

    def stamp(self, payload: dict[str, Any], *, now: datetime) -> None:
        """Set the time in an event, unless it has one."""

    def encode(self, payloads: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the body of one POST."""

    def headers(self, body: bytes, *, url: str, now: datetime) -> dict[str, str]:
        """Return the headers of one POST, with the signature of ``body``, and perhaps the URL."""

    def may_repeat(self, url: str, *, status: int | None, repeats: int) -> bool:
        """Return whether a POST is repeated that got this status, or None: no response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(ABC):
    """The base class of providers. Subclasses that send webhooks override ``make_event``."""

    behaviours: Behaviours
    timings: Timings

    name: ClassVar[str]
    title: ClassVar[str]
    channel: ClassVar[Channel]
    route: ClassVar[str]
    """The path pattern of the provider's requests, in aiohttp's syntax."""
    max_body: ClassVar[int]
    outcomes: ClassVar[Outcomes]
    addressing: ClassVar[str]
    """How a magic recipient chooses an outcome: a text for the page of recipients."""
    recipient_pattern: ClassVar[str] = "{}"
    """The form of magic recipients; ``{}`` is the outcome's name."""
    event_kinds: ClassVar[frozenset[str]] = frozenset()
    takes_replies: ClassVar[bool] = False
    """Whether people can write to the sender."""

    @abstractmethod
    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and the events that follow."""

    @abstractmethod
    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return an accepted message as recipient number ``to`` sees it."""

    def recipient_patterns(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the forms of the magic recipients that choose an outcome."""
        return tuple(
            self.recipient_pattern.format(name) for name in (outcome.name, *outcome.aliases)
        )

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Yield each recipient of an accepted request with each of its references."""
        return product(record.recipients, record.references)

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return the requested event about a message. Raises ValueError if impossible."""
        raise ValueError("This provider reports nothing.")

    def memory(self) -> Sequence[MutableSet[str] | MutableMapping[str, Any]]:
        """Return what it remembers of earlier messages, such as opt-outs. A reset clears it."""
        return ()

    def make_inbound_event(self, message: InboundMessage) -> PlannedEvent:
        """Return the event of an inbound message. Raises ValueError if impossible."""
        raise ValueError("This provider takes no messages from people.")

    def make_subscription(
        self, requested: SubscriptionRequest, *, origin: str
    ) -> Mapping[str, Any]:
        """Return a browser's subscription at the sandbox's ``origin``. Raises ValueError."""
        raise ValueError("Browsers don't subscribe at this provider.")

    def choose_outcome(
        self, recipient: str, *, magic: Callable[[str], str], is_message: bool = True
    ) -> Outcome:
        """Return the outcome of a message; see :meth:`Behaviours.choose_outcome`."""
        return self.behaviours.choose_outcome(
            recipient,
            provider=self.name,
            outcomes=self.outcomes,
            magic=magic,
            is_message=is_message,
        )
