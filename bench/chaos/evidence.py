"""What a run leaves behind, as plain records: answers, requests, steps, the state at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

ACCEPTED = 202


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the client was told of one request."""

    key: str
    """Its idempotency key."""
    item: int = 0
    """Its place in a request that had several."""
    at: datetime
    status: int | None
    """None: the connection ended without an answer."""
    notification_id: str | None = None
    channels: tuple[str, ...] = ()
    """The channels it was accepted for."""

    @property
    def is_accepted(self) -> bool:
        """Whether the service took the notification upon itself."""
        return self.status == ACCEPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the provider got: one message to one recipient."""

    notification_id: str
    channel: str
    attempt: int
    device_id: str | None
    at: datetime
    accepted: bool
    """The provider took it, whether or not it could say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A delivery after one write to its notification, in the order of the writes."""

    notification_id: str
    channel: str
    status: str
    attempt: int
    worker: str | None
    """The worker that has claimed it."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNotification:
    """A notification as MongoDB has it at the end."""

    notification_id: str
    key: str | None
    deliveries: Mapping[str, str]
    """Each channel's status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The record of a try to send, as MongoDB has it at the end."""

    notification_id: str
    channel: str
    number: int
    device_id: str | None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A process that was ended from outside, or that ended itself on demand."""

    worker: str
    """The name it signs its claims with."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that is known about a run."""

    answers: Sequence[Answer]
    requests: Sequence[Request]
    steps: Sequence[Step]
    stored: Sequence[StoredNotification]
    attempts: Sequence[Attempt]
    kills: Sequence[Kill] = ()
