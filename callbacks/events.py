"""What an app may be told of, and what such a message looks like. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from bson import ObjectId


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


CHOOSABLE = tuple(kind for kind in EventType if kind is not EventType.TEST)
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


def body_of(event: Event) -> str:
    """Return the body of the request that tells of an event: the same bytes at every try."""
    document = {"type": event.type.value, "timestamp": written(event.at), "data": event.data}
    return msgspec.json.encode(document).decode()


def written(at: datetime) -> str:
    """Return an instant as it stands in bodies: UTC, with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
