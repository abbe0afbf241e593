"""Hints: Celery messages that say "look at these deliveries now", and nothing else.

A hint may be lost, repeated or late: what is due stands in MongoDB, and the sweep finds it. So
publishing never fails a request and never holds one up.
"""

import os
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache

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

from .states import Channel, DeliveryStatus, Priority
from .store import Document

log = structlog.get_logger(__name__)

DELIVER = "notifications.deliver"
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
    countdown = max((at - now).total_seconds(), 0.0) if at is not None else 0.0
    if not ids or countdown > SOON or not _health.is_up():
        return False
    try:
        with producers[_connection(os.getpid())].acquire(block=True, timeout=ANSWER) as producer:
            current_app.send_task(
                DELIVER,
                args=[[str(notification_id) for notification_id in ids], channel.value],
                queue=queue_of(channel, priority),
                countdown=countdown or None,
                retry=False,
                ignore_result=True,
                producer=producer,
            )
    except (OperationalError, redis.RedisError, OSError) as error:
        _health.failed()
        log.warning("hint_not_published", reason=type(error).__name__, count=len(ids))
        return False
    _health.answered()
    return True


def announce(documents: Iterable[Document], *, now: datetime) -> None:
    """Tell workers of what is due within a minute, one hint for each queue and time."""
    groups: dict[tuple[str, str, datetime], list[ObjectId]] = {}
    for document in documents:
        for delivery in document["delivery"]:
            if delivery["status"] == DeliveryStatus.PENDING:
                group = (delivery["channel"], document["priority"], delivery["next_attempt_at"])
                groups.setdefault(group, []).append(document["_id"])
    for (channel, priority, at), ids in groups.items():
        publish(ids, channel=Channel(channel), priority=Priority(priority), at=at, now=now)


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
