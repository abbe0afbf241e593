"""Wake-ups: Celery messages that make a worker look at deliveries now.

A wake-up may be lost, repeated, or late: MongoDB holds what is due, and the sweeper finds it. So
sending one never fails a request and never delays it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bson import ObjectId

from domain.queues import BROADCASTS, queue_name
from domain.states import Channel, Priority
from notifyproject.platform import broker

DELIVER, PULL, HEARTBEAT = "notifications.deliver", "notifications.draw", "notifications.canary"
BROADCAST = "notifications.broadcast"
BULK_OPERATION = "notifications.operate"
MAX_DELAY_SECONDS = broker.MAX_COUNTDOWN
"""Hints are published up to this many seconds ahead; the sweep takes care of what lies further."""


def send_wakeup(
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


def send_pull(
    *,
    client_id: ObjectId,
    channel: Channel,
    priority: Priority,
    token: tuple[int, str] | None,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Tell a worker to look for what is due of a client in a lane: there is more than a few.

    ``token``: see :mod:`notifications.queueing.fair_queue`. Returns whether the broker took it.
    """
    args = [str(client_id), channel.value, priority.value, token]
    return broker.publish(PULL, args=args, queue=queue_name(channel, priority), at=at, now=now)


def publish_broadcast(broadcast_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Tell a worker to go on with a broadcast; return whether the broker took it."""
    return broker.publish(BROADCAST, args=[str(broadcast_id)], queue=BROADCASTS, at=at, now=now)


def request_heartbeat(*, now: datetime) -> bool:
    """Ask for a sign of life of any worker, by the broker; return whether it took the message."""
    return broker.publish(HEARTBEAT, args=[], queue=None, at=None, now=now)


def publish_operation(operation_id: ObjectId, *, at: datetime | None, now: datetime) -> bool:
    """Tell a worker to go on with a bulk operation; return whether the broker took it."""
    return broker.publish(BULK_OPERATION, args=[str(operation_id)], queue=None, at=at, now=now)


def depth(queue: str) -> int | None:
    """Return how many hints wait in a queue; None if the broker cannot be reached."""
    return broker.queue_depth(queue)


ISOLATED_PER_WAKEUP = 4
"""Deliveries that go alone, one after the other, in one message: a minute at 15 s for each, and a
message is not thought lost before two."""
WAKEUP_SIZE = 100
"""Deliveries in one hint: what one claim takes."""
HORIZON = timedelta(seconds=MAX_DELAY_SECONDS)


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A delivery that is to be looked at again at ``at``."""

    notification_id: ObjectId
    channel: Channel
    priority: Priority
    at: datetime


def send_wakeups(
    ids: Sequence[ObjectId],
    *,
    channel: Channel,
    priority: Priority,
    at: datetime | None = None,
    now: datetime,
    size: int = WAKEUP_SIZE,
) -> int:
    """Publish hints of up to ``size`` deliveries; return for how many the broker took one."""
    for start in range(0, len(ids), size):
        some = ids[start : start + size]
        if not send_wakeup(some, channel=channel, priority=priority, at=at, now=now):
            return start
    return len(ids)


def send_later(wakeups: Iterable[Wakeup], *, now: datetime) -> None:
    """Publish hints for what is to be looked at again within a minute."""
    groups: dict[tuple[Channel, Priority, datetime], list[ObjectId]] = {}
    for one in wakeups:
        group = (one.channel, one.priority, wakeup_time(one.at, now=now))
        groups.setdefault(group, []).append(one.notification_id)
    for (channel, priority, at), ids in groups.items():
        send_wakeups(ids, channel=channel, priority=priority, at=at, now=now)


def wakeup_time(at: datetime, *, now: datetime) -> datetime:
    """Return when to look: now for what is due, else the end of the second it falls due in."""
    if at <= now:
        return now
    full = at.replace(microsecond=0) + timedelta(seconds=1 if at.microsecond else 0)
    return min(full, max(now + HORIZON, at))
