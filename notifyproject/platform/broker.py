"""Publishes Celery messages without blocking."""

import os
import time
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

import redis
import structlog
from celery import current_app
from django.conf import settings
from kombu.connection import Connection
from kombu.exceptions import LimitExceeded, OperationalError
from kombu.pools import producers

from ..settings import sentinel_url
from . import valkey

log = structlog.get_logger(__name__)
PAUSE_AFTER_FAILURE = 5.0
TIMEOUT = 0.3
"""Seconds for each command. The client tries four times, while an API request waits."""
TRUSTED_SECONDS = 1.0
"""Seconds after a success, in which messages are published without a ping."""
MAX_COUNTDOWN = 60.0
"""Messages due later than in this many seconds are left to the sweeper."""


def publish(
    task: str, *, args: list[Any], queue: str | None, at: datetime | None, now: datetime
) -> bool:
    """Publish a message; return whether the broker accepted it.

    A message for an instant over MAX_COUNTDOWN ahead isn't published. ``queue`` has a default.
    """
    countdown = max((at - now).total_seconds(), 0.0) if at is not None else 0.0
    if countdown > MAX_COUNTDOWN or not _health.is_up():
        return False
    try:
        with producers[_connection(os.getpid())].acquire(block=True, timeout=TIMEOUT) as producer:
            current_app.send_task(
                task,
                args=args,
                queue=queue,
                eta=at if countdown else None,
                retry=False,
                ignore_result=True,
                producer=producer,
            )
    except LimitExceeded:
        # All producers of this process are in use, and none has failed yet.
        log.warning("message_not_published", reason="LimitExceeded")
        return False
    except (OperationalError, redis.RedisError, OSError) as error:
        _health.record_failure()
        log.warning("message_not_published", reason=type(error).__name__)
        return False
    _health.record_success()
    return True


def load_driver() -> None:
    """Load the broker's client library, without a connection."""
    _connection(os.getpid())
    # Celery creates these at the first message. The result backend is unused.
    attrgetter("backend", "amqp.send_task_message")(current_app)


def queue_depth(queue: str) -> int | None:
    """Return the number of messages in a queue, or None if the broker is unreachable."""
    try:
        return int(valkey.client().llen(queue))
    except (redis.RedisError, OSError):
        return None


class _BrokerHealth:
    """Circuit breaker of the broker. Publishing to a broker that hangs takes many seconds."""

    def __init__(self) -> None:
        self._answered_at = self._failed_at = float("-inf")

    def record_success(self) -> None:
        self._answered_at = time.monotonic()

    def record_failure(self) -> None:
        self._failed_at = time.monotonic()

    def is_up(self) -> bool:
        """Return whether the broker responded just now, or responds to a ping."""
        now = time.monotonic()
        if now - self._failed_at < PAUSE_AFTER_FAILURE:
            return False
        if now - self._answered_at < TRUSTED_SECONDS:
            return True
        try:
            valkey.client().ping()
        except (redis.RedisError, OSError):
            self.record_failure()
            log.warning("broker_unreachable")
            return False
        self.record_success()
        return True


_health = _BrokerHealth()


@cache
def _connection(_process_id: int) -> Connection:
    """Return this process's connection for publishing. Its timeouts are shorter than a worker's."""
    connection = current_app.connection_for_write()
    transport_options: dict[str, Any] = {
        "socket_timeout": TIMEOUT,
        "socket_connect_timeout": TIMEOUT,
        # Without these limits, kombu retries an unreachable broker for six seconds.
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
    }
    if (sentinels := sentinel_url.parse(settings.REDIS_URL)) is not None:
        transport_options |= sentinels.transport_options(timeout=TIMEOUT)
    return connection.clone(transport_options={**connection.transport_options, **transport_options})
