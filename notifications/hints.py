"""Hints: Celery messages that say "look at these deliveries now", and nothing else.

A hint may be lost, repeated or late: what is due stands in MongoDB, and the sweep finds it. So
publishing never fails a request and never holds one up.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId

from domain.queues import BROADCASTS, queue_name
from domain.states import Channel, Priority
from notifyproject.platform import broker

DELIVER, DRAW, CANARY = "notifications.deliver", "notifications.draw", "notifications.canary"


BROADCAST = "notifications.broadcast"


OPERATE = "notifications.operate"


SOON = broker.SOON
"""Hints are published up to this many seconds ahead; the sweep takes care of what lies further."""


def publish(
    ids: Sequence[ObjectId],
    *,
    channel: Channel,
    priority: Priority,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Tell a worker to look at these deliveries, now or ``at`` an instant less than a minute ahead.

    Returns whether the broker took the hint.
    """
    if not ids:
        return False
    args = [[str(one) for one in ids], channel.value, priority.value]
    queue = queue_name(channel, priority)
    return broker.publish(DELIVER, args=args, queue=queue, at=at, now=now)


def publish_draw(
    *,
    client_id: ObjectId,
    channel: Channel,
    priority: Priority,
    ticket: tuple[int, str] | None,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Tell a worker to look for what is due of a client in a lane: there is more than a few.

    ``ticket``: see :mod:`notifications.lanes`. Returns whether the broker took it.
    """
    args = [str(client_id), channel.value, priority.value, ticket]
    return broker.publish(DRAW, args=args, queue=queue_name(channel, priority), at=at, now=now)


def publish_broadcast(broadcast_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Tell a worker to go on with a broadcast; return whether the broker took it."""
    return broker.publish(BROADCAST, args=[str(broadcast_id)], queue=BROADCASTS, at=at, now=now)


def publish_canary(*, now: datetime) -> bool:
    """Ask for a sign of life of any worker, by the broker; return whether it took the message."""
    return broker.publish(CANARY, args=[], queue=None, at=None, now=now)


def publish_operation(operation_id: ObjectId, *, at: datetime | None, now: datetime) -> bool:
    """Tell a worker to go on with a bulk operation; return whether the broker took it."""
    return broker.publish(OPERATE, args=[str(operation_id)], queue=None, at=at, now=now)


def depth(queue: str) -> int | None:
    """Return how many hints wait in a queue; None if the broker cannot be reached."""
    return broker.queue_depth(queue)
