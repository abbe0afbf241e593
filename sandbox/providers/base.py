"""What a provider is to the rest of the sandbox.

To add one: docs/sandbox.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from ..log import Record
from ..outcomes import Outcomes
from ..replies import Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request as it came."""

    method: str
    path: str
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
class Verdict:
    """What the provider makes of a request."""

    outcome: str
    reply: Reply
    accepted: bool = False
    reason: str | None = None
    title: str | None = None
    references: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()
    message_id: str | None = None
    is_json: bool = False
    events: tuple[PlannedEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message as its recipient sees it."""

    sender: str
    recipients: tuple[str, ...]
    title: str
    text: str
    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRequest:
    """An event somebody asks for now."""

    kind: str
    delay: float
    at: int | None
    """The time it claims to have happened; None: when it is sent."""
    address: str | None
    """Which recipient of several it is about."""


class Webhooks(Protocol):
    """How a provider posts its events."""

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
    def prefix(self) -> str:
        """The beginning of every path it serves."""
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
    def event_kinds(self) -> frozenset[str]:
        """Every kind of event it can be asked for."""
        ...

    @property
    def webhooks(self) -> Webhooks:
        """How it posts events."""
        ...

    def judge(self, incoming: Incoming, *, now: datetime) -> Verdict:
        """Return what it answers and what it will report."""
        ...

    def event(self, wanted: EventRequest, *, about: Record) -> PlannedEvent:
        """Return an event about a message it accepted; raises ValueError."""
        ...

    def show(self, record: Record) -> Shown:
        """Return the message of an accepted request."""
        ...
