"""Wake-ups: Celery messages that make a worker process deliveries now.

They may be lost, repeated, or late. MongoDB says what is due, and the sweeper finds what was
missed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from domain.queues import BROADCASTS, DIGESTS, queue_name
from domain.states import Priority
from notifyproject.platform import broker

DELIVER, PULL, HEARTBEAT = "notifications.deliver", "notifications.pull", "notifications.heartbeat"
BROADCAST = "notifications.broadcast"
BULK_OPERATION = "notifications.bulk_operation"
FILE = "notifications.file"
CLOSE_DIGESTS = "notifications.close_digests"
TEST_CLOCK = "notifications.test_clock"
MAX_DELAY_SECONDS = broker.MAX_COUNTDOWN
"""Maximum delay of a message, in seconds. The sweeper enqueues work that is due later."""
ISOLATED_PER_WAKEUP = 20
"""Maximum of poison candidates in one wake-up. With more, few threads and processes would share
what a lost worker had claimed, since each wake-up isolates one at a time."""
WAKEUP_SIZE = 100  # Deliveries in one wake-up, and in one claim
HORIZON = timedelta(seconds=MAX_DELAY_SECONDS)


def send_wakeup(
    ids: Sequence[ObjectId],
    *,
    channel: Channel,
    priority: Priority,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Wake a worker for these deliveries, now or at ``at``. Return whether the broker accepts."""
    if not ids:
        return False
    return broker.publish(
        DELIVER,
        args=wakeup_args(ids, channel, priority),
        queue=queue_name(channel, priority),
        at=at,
        now=now,
    )


def wakeup_args(ids: Sequence[ObjectId], channel: Channel, priority: Priority) -> list[Any]:
    """Return the arguments of a wake-up's message."""
    return [[str(notification_id) for notification_id in ids], str(channel), str(priority)]


def publish_broadcast(broadcast_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Wake a worker for a broadcast. Return whether the broker accepts the message."""
    return broker.publish(BROADCAST, args=[str(broadcast_id)], queue=BROADCASTS, at=at, now=now)


def request_heartbeat(*, now: datetime) -> bool:
    """Request a heartbeat from any worker. Return whether the broker accepts the message."""
    return broker.publish(HEARTBEAT, args=[], queue=None, at=None, now=now)


def publish_operation(operation_id: ObjectId, *, at: datetime | None, now: datetime) -> bool:
    """Wake a worker for a bulk operation. Return whether the broker accepts the message."""
    return broker.publish(BULK_OPERATION, args=[str(operation_id)], queue=None, at=at, now=now)


def publish_file(file_id: ObjectId, *, at: datetime | None, now: datetime) -> bool:
    """Wake a worker for a file of recipients. Return whether the broker accepts the message."""
    return broker.publish(FILE, args=[str(file_id)], queue=BROADCASTS, at=at, now=now)


def publish_digests(*, at: datetime | None, now: datetime) -> bool:
    """Wake a worker to close due digests. Return whether the broker accepts the message."""
    return broker.publish(CLOSE_DIGESTS, args=[], queue=DIGESTS, at=at, now=now)


def publish_test_clock(client_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Wake a worker for what is due by a test client's clock. Return whether the broker accepts."""
    return broker.publish(TEST_CLOCK, args=[str(client_id)], queue=DIGESTS, at=at, now=now)


def depth(queue: str) -> int | None:
    """Return the number of messages in a queue, or None if the broker is unavailable."""
    return broker.queue_depth(queue)


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A delivery, and when to wake a worker for it."""

    notification_id: ObjectId
    channel: Channel
    priority: Priority
    at: datetime
    pulled_for: ObjectId | None = None
    """The client whose pull is to take it, because many wait for the same."""


def send_wakeups(
    ids: Sequence[ObjectId],
    *,
    channel: Channel,
    priority: Priority,
    at: datetime | None = None,
    now: datetime,
    size: int = WAKEUP_SIZE,
) -> int:
    """Send wake-ups of up to ``size`` deliveries each. Return how many deliveries they cover."""
    if not channel.is_known:
        # Its version finds them in MongoDB. This one has no queue for it.
        return 0
    for start in range(0, len(ids), size):
        some = ids[start : start + size]
        if not send_wakeup(some, channel=channel, priority=priority, at=at, now=now):
            return start
    return len(ids)


def send_later(wakeups: Iterable[Wakeup], *, now: datetime) -> None:
    """Send wake-ups for their times. Those beyond the horizon are left to the sweeper."""
    groups: dict[tuple[Channel, Priority, datetime], list[ObjectId]] = {}
    for wakeup in wakeups:
        group = (wakeup.channel, wakeup.priority, wakeup_time(wakeup.at, now=now))
        groups.setdefault(group, []).append(wakeup.notification_id)
    for (channel, priority, at), ids in groups.items():
        send_wakeups(ids, channel=channel, priority=priority, at=at, now=now)


def wakeup_time(at: datetime, *, now: datetime) -> datetime:
    """Return when to send a wake-up: now if due, else rounded up to a second to share messages."""
    if at <= now:
        return now
    full = at.replace(microsecond=0) + timedelta(seconds=1 if at.microsecond else 0)
    return min(full, max(now + HORIZON, at))
