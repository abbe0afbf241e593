"""Event types, states, and the body of an event. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from bson import ObjectId


class CallbackState(StrEnum):
    """Whether a callback is called."""

    ACTIVE = "active"
    DISABLED = "disabled"


class DisabledReason(StrEnum):
    """Why a callback is not called any more."""

    GONE = "gone"
    """Its receiver answered 410."""
    FAILING = "failing"
    """Nothing came through for five days."""
    BY_OPERATOR = "by_operator"


class CallbackStatus(StrEnum):
    """Where one message to an app stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    """The receiver answered with a status from 200 to 299."""
    FAILED = "failed"
    """It is not tried again unless somebody asks."""


class EventType(StrEnum):
    """What happened."""

    DELIVERY_SENT = "delivery.sent"
    """A channel's provider took the message."""
    DELIVERY_DELIVERED = "delivery.delivered"
    """The provider reported it delivered, or it is in the person's inbox."""
    DELIVERY_READ = "delivery.read"
    """The person opened it."""
    DELIVERY_FAILED = "delivery.failed"
    """It will not be tried again on this channel, unless somebody asks."""
    DELIVERY_UNKNOWN = "delivery.unknown"
    """Bytes left and no answer came: a report, or the type's policy, will decide."""
    DELIVERY_SUPPRESSED = "delivery.suppressed"
    """The person does not want it, or the address is known to be bad."""
    DELIVERY_EXPIRED = "delivery.expired"
    """Its time was over before it could be sent."""
    DELIVERY_CANCELLED = "delivery.cancelled"
    """It was withdrawn before it was sent."""
    NOTIFICATION_COMPLETED = "notification.completed"
    """Nothing is left to do on any channel."""
    TEST = "test"
    """Somebody asked for it. It goes to every callback, whatever it is for."""


SUBSCRIBABLE = tuple(kind for kind in EventType if kind is not EventType.TEST)
"""What a callback may be for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a notification of an app.

    ``data`` holds ids and words: never an address, a text of the message or a variable.
    """

    id: str
    """The same for the same happening, however often it is found."""
    client_id: ObjectId
    type: EventType
    at: datetime
    notification_id: ObjectId | None = None
    data: Mapping[str, Any]


def encode_event(event: Event) -> str:
    """Return the body of the request that tells of an event: the same bytes at every try."""
    document = {"type": event.type.value, "timestamp": format_time(event.at), "data": event.data}
    return msgspec.json.encode(document).decode()


def format_time(at: datetime) -> str:
    """Return an instant as it stands in bodies: UTC, with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
