"""Callback event types, states, and bodies. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from bson import ObjectId


class CallbackState(StrEnum):
    """The state of a callback endpoint."""

    ACTIVE = "active"
    DISABLED = "disabled"


class DisabledReason(StrEnum):
    """Why an endpoint was disabled."""

    GONE = "gone"
    FAILING = "failing"
    STUCK = "stuck"
    """Workers ended while they called it."""
    BY_OPERATOR = "by_operator"


class CallbackStatus(StrEnum):
    """The status of one callback message."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    """Not retried unless it's replayed on request."""


class EventType(StrEnum):
    """The type of an event; ``delivery.*`` as in :class:`domain.states.DeliveryStatus`."""

    DELIVERY_SENT = "delivery.sent"
    DELIVERY_DELIVERED = "delivery.delivered"
    DELIVERY_READ = "delivery.read"
    DELIVERY_FAILED = "delivery.failed"
    DELIVERY_UNKNOWN = "delivery.unknown"
    DELIVERY_SUPPRESSED = "delivery.suppressed"
    DELIVERY_EXPIRED = "delivery.expired"
    DELIVERY_CANCELLED = "delivery.cancelled"
    DELIVERY_MERGED = "delivery.merged"
    NOTIFICATION_COMPLETED = "notification.completed"
    """Every channel has ended."""
    NOTIFICATION_ACTED = "notification.acted"
    """The recipient chose one of the type's actions in the inbox."""
    TEST = "test"
    """A requested test, sent to every endpoint whatever its subscription."""


SUBSCRIBABLE = tuple(kind for kind in EventType if kind is not EventType.TEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event to send to a client. ``data`` contains only IDs and codes."""

    id: str
    """Deterministic: the same event always has the same ID."""
    client_id: ObjectId
    type: EventType
    at: datetime
    notification_id: ObjectId | None = None
    data: Mapping[str, Any]


def encode_event(event: Event) -> str:
    """Return the request body of an event, which is the same for every attempt."""
    at = event.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    document = {"type": event.type.value, "timestamp": at, "data": event.data}
    return msgspec.json.encode(document).decode()
