"""Hints: Celery messages that say "look at these deliveries now", and nothing else.

A hint may be lost, repeated or late: what is due stands in MongoDB, and the sweep finds it. So
publishing never fails a request and never holds one up.
"""

import os
import time
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import redis
import structlog
from bson import ObjectId
from celery import current_app
from django.conf import settings
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from kombu.pools import producers
from redis.backoff import NoBackoff
from redis.retry import Retry

from .states import Channel, Priority

log = structlog.get_logger(__name__)

DELIVER, DRAW, CANARY = "notifications.deliver", "notifications.draw", "notifications.canary"
PAUSE_AFTER_FAILURE = 5.0
"""Seconds without a further try after the broker could not be reached."""
ANSWER = 0.3
"""Seconds a broker may take over a command; its client tries four times. A caller waits for it."""
TRUSTED_SECONDS = 1.0
"""A broker that answered this recently is not pinged first."""
SOON = 60.0
"""Hints are published up to this many seconds ahead; the sweep takes care of what lies further."""


def queue_of(channel: Channel, priority: Priority) -> str:
    """Return the name of the queue that deliveries of this channel and priority wait in."""
    return f"{channel.value}.{priority.value}"


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
    queue = queue_of(channel, priority)
    return _publish(DELIVER, args=args, queue=queue, at=at, now=now)


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
    return _publish(DRAW, args=args, queue=queue_of(channel, priority), at=at, now=now)


def publish_canary(*, now: datetime) -> bool:
    """Ask for a sign of life of any worker, by the broker; return whether it took the message."""
    return _publish(CANARY, args=[], queue=None, at=None, now=now)


def _publish(
    task: str, *, args: list[Any], queue: str | None, at: datetime | None, now: datetime
) -> bool:
    countdown = max((at - now).total_seconds(), 0.0) if at is not None else 0.0
    if countdown > SOON or not _health.is_up():
        return False
    try:
        with producers[_connection(os.getpid())].acquire(block=True, timeout=ANSWER) as producer:
            current_app.send_task(
                task,
                args=args,
                queue=queue,
                countdown=countdown or None,
                retry=False,
                ignore_result=True,
                producer=producer,
            )
    except (OperationalError, redis.RedisError, OSError) as error:
        _health.failed()
        log.warning("hint_not_published", reason=type(error).__name__)
        return False
    _health.answered()
    return True


def depth(queue: str) -> int | None:
    """Return how many hints wait in a queue; None if the broker cannot be reached."""
    try:
        return int(_broker().llen(queue))
    except (redis.RedisError, OSError):
        return None


class _Health:
    """Whether the broker is worth asking: a publish to one that hangs takes many seconds."""

    def __init__(self) -> None:
        self._answered_at = self._failed_at = float("-inf")

    def answered(self) -> None:
        """Note that it took a hint."""
        self._answered_at = time.monotonic()

    def failed(self) -> None:
        """Note that it did not, or did not answer."""
        self._failed_at = time.monotonic()

    def is_up(self) -> bool:
        """Return whether it has just answered, or answers a ping now."""
        now = time.monotonic()
        if now - self._failed_at < PAUSE_AFTER_FAILURE:
            return False
        if now - self._answered_at < TRUSTED_SECONDS:
            return True
        try:
            _broker().ping()
        except (redis.RedisError, OSError):
            self.failed()
            log.warning("broker_unreachable")
            return False
        self.answered()
        return True


_health = _Health()


@cache
def _connection(_process_id: int) -> Connection:
    """Return this process's connection for publishing: it gives up sooner than a worker's."""
    connection = current_app.connection_for_write()
    impatient = {
        "socket_timeout": ANSWER,
        "socket_connect_timeout": ANSWER,
        # Without these a channel to a broker that is gone is asked for again for six seconds.
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
    }
    return connection.clone(transport_options={**connection.transport_options, **impatient})


@cache
def _broker() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=ANSWER,
        socket_timeout=ANSWER,
        retry=Retry(NoBackoff(), 0),
    )
