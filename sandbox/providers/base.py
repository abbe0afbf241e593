"""What a provider is to the rest of the sandbox.

To add one: docs/reference/sandbox.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

import aiohttp

from ..log import Record
from ..outcomes import Outcome, Outcomes
from ..replies import ProviderResponse


class Channel(StrEnum):
    """What a provider carries, as the outbox page sorts it."""

    EMAIL = "email"
    PUSH = "push"
    WHATSAPP = "whatsapp"
    NONE = "none"
    """No messages: signing in, for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRequest:
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes | None
    """None: larger than the provider takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEvent:
    """An event the provider will report."""

    kind: str
    delay: float
    payload: dict[str, Any]
    """Without the time, which is filled in when it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """What the provider makes of a request."""

    outcome: str
    response: ProviderResponse
    accepted: bool = False
    is_message: bool = True
    """Something was to be sent, or might have been; not so when a client signs in."""
    reason: str | None = None
    title: str | None = None
    references: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()
    message_id: str | None = None
    is_json: bool = False
    logged_body: bytes | None = None
    """JSON the log keeps instead of a body that has credentials in it."""
    events: tuple[PlannedEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that goes with a message."""

    name: str
    kind: str
    """Its media type."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedMessage:
    """A message as its recipient sees it."""

    sender: str
    recipients: tuple[str, ...]
    title: str
    text: str
    html: str = ""
    image: str = ""
    """Where its picture is; a page never loads it."""
    link: str = ""
    """Where a tap leads."""
    small_print: str = ""
    buttons: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """What the recipient does not see but the device or the mail program acts on."""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRequest:
    """An event somebody asks for now."""

    kind: str
    delay: float
    at: int | None
    """The time it claims to have happened; None: when it is sent."""
    address: str | None
    """Which recipient of several it is about."""
    code: int | None = None
    """The error it reports; None: the kind's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """Something a person writes to the sender of the messages."""

    sender: str
    text: str
    name: str | None
    button: str | None
    """The id of a button they tapped, whose words are ``text``."""
    at: int | None


class WebhookFormat(Protocol):
    """How a provider posts its events."""

    @property
    def batch(self) -> int:
        """How many events a POST may have."""
        ...

    async def prepare(self, session: aiohttp.ClientSession, url: str) -> str | None:
        """Do what must be done before a POST; return why none may be sent yet."""
        ...

    def stamp(self, payload: dict[str, Any], *, now: datetime) -> None:
        """Fill in the time of an event that is sent now."""
        ...

    def encode(self, payloads: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the body of one POST."""
        ...

    def headers(self, body: bytes, *, now: datetime) -> dict[str, str]:
        """Return the headers of one POST, with its signature."""
        ...


class Provider(Protocol):
    """A provider of one channel."""

    @property
    def name(self) -> str:
        """Its name in the log."""
        ...

    @property
    def title(self) -> str:
        """Its name for people."""
        ...

    @property
    def channel(self) -> Channel:
        """What it carries."""
        ...

    @property
    def route(self) -> str:
        """The pattern of the paths it serves, as aiohttp writes it."""
        ...

    @property
    def max_body(self) -> int:
        """The largest body it takes, in bytes."""
        ...

    @property
    def outcomes(self) -> Outcomes:
        """Its table."""
        ...

    @property
    def addressing(self) -> str:
        """How a recipient asks for an outcome by itself: a sentence for people."""
        ...

    @property
    def event_kinds(self) -> frozenset[str]:
        """Every kind of event it can be asked for."""
        ...

    def recipient_patterns(self, outcome: Outcome) -> tuple[str, ...]:
        """Return what a recipient looks like that asks for this outcome."""
        ...

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return what it answers and what it will report."""
        ...

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return an event about a message it accepted; raises ValueError."""
        ...

    def make_inbound_event(self, message: InboundMessage) -> PlannedEvent:
        """Return the event of a person who writes back; raises ValueError."""
        ...

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return the message of an accepted request, as the recipient of this number sees it."""
        ...

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Return each recipient of an accepted request with each reference it got."""
        ...


class WithoutWebhooks:
    """A provider that reports nothing and hears nothing."""

    @property
    def event_kinds(self) -> frozenset[str]:
        """Return no kind."""
        return frozenset()

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Refuse."""
        raise ValueError("This provider reports nothing.")

    def make_inbound_event(self, message: InboundMessage) -> PlannedEvent:
        """Refuse."""
        raise ValueError("This provider takes no messages from people.")
