"""What an app is told: recorded first, then hinted at."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId

from notifyproject.db.collections import collection

from . import hints, messages, registry
from .events import Event, EventType

Document = Mapping[str, Any]


def tell(events: Sequence[Event], *, now: datetime) -> None:
    """Tell apps of events, those that want to be; an event that was told before is not told again.

    When it returns, all of it is recorded. Raises PyMongoError.
    """
    for client_id in messages.record(events, now=now):
        hints.publish(client_id, now=now)


def send_test(client_id: ObjectId, *, now: datetime) -> Document:
    """Tell an app of nothing, to see whether it hears; raises NoCallback."""
    registry.get(client_id)
    event = Event(
        id=f"evt_test_{ObjectId()}",
        client_id=client_id,
        type=EventType.TEST,
        at=now,
        data={"message": "This is a test."},
    )
    tell([event], now=now)
    document = collection("callback_messages").find_one({"_id": event.id})
    if document is None:
        # The callback was removed meanwhile.
        raise registry.NoCallback
    return document


def replay(*, message_id: str, client_id: ObjectId | None, now: datetime) -> Document:
    """Send a message again; see :func:`callbacks.messages.replay`."""
    document = messages.replay(message_id=message_id, client_id=client_id, now=now)
    hints.publish(document["client_id"], now=now)
    return document
