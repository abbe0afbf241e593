"""The records of a run: API answers, provider requests, steps, and the final state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

ACCEPTED = 202


class NotAcceptedError(RuntimeError):
    """The service refused a request that a scenario needs. The message has the status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of the API about one notification; a bulk answer has one for each item."""

    key: str
    item: int = 0
    at: datetime
    status: int | None
    """None: the connection ended without an answer."""
    notification_id: str | None = None
    channels: tuple[str, ...] = ()

    @property
    def is_accepted(self) -> bool:
        """Whether the service accepted the notification."""
        return self.status == ACCEPTED

    def accepted_id(self) -> str:
        """Return the ID of the accepted notification. Raises NotAcceptedError."""
        if self.notification_id is None:
            raise NotAcceptedError(f"{self.key}: {self.status}")
        return self.notification_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A message to one address or device, as the provider received it."""

    notification_id: str
    channel: str
    attempt: int
    device_id: str | None
    at: datetime
    accepted: bool
    """Whether the provider accepted the message, even without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The state of a delivery after one write to its notification."""

    notification_id: str
    channel: str
    status: str
    attempt: int
    worker: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNotification:
    """The final state of a notification."""

    notification_id: str
    key: str | None
    deliveries: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The final state of an attempt."""

    notification_id: str
    channel: str
    number: int
    device_id: str | None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The end of a worker process."""

    worker: str
    """The worker's name, as in its leases."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All records of a run, which the analysis compares."""

    answers: Sequence[Answer]
    requests: Sequence[Request]
    steps: Sequence[Step]
    stored: Sequence[StoredNotification]
    attempts: Sequence[Attempt]
    kills: Sequence[Kill] = ()
