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
from redis.backoff import NoBackoff
from redis.retry import Retry

log = structlog.get_logger(__name__)
PAUSE_AFTER_FAILURE = 5.0
"""Seconds without a further try after the broker could not be reached."""
TIMEOUT = 0.3
"""Seconds a broker may take over a command; its client tries four times. A caller waits for it."""
TRUSTED_SECONDS = 1.0
"""A broker that answered this recently is not pinged first."""
MAX_COUNTDOWN = 60.0
"""Messages are published up to this many seconds ahead."""


def publish(
    task: str, *, args: list[Any], queue: str | None, at: datetime | None, now: datetime
) -> bool:
    """Send a message, to be looked at now or at an instant within a minute.

    ``queue`` None: the one for what has none of its own. Returns whether the broker took it.
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
                # Not as a countdown: Celery would add it to this machine's clock, right or wrong.
                eta=at if countdown else None,
                retry=False,
                ignore_result=True,
                producer=producer,
            )
    except LimitExceeded:
        # Every producer of this process waits for the broker, and none of them has failed yet.
        log.warning("message_not_published", reason="LimitExceeded")
        return False
    except (OperationalError, redis.RedisError, OSError) as error:
        _health.record_failure()
        log.warning("message_not_published", reason=type(error).__name__)
        return False
    _health.record_success()
    return True


def load_driver() -> None:
    """Load what talks to the broker, which is not asked anything yet."""
    _connection(os.getpid())
    # Celery makes these when the first message is sent: also where results, which we have not, go.
    attrgetter("backend", "amqp.send_task_message")(current_app)


def queue_depth(queue: str) -> int | None:
    """Return how many messages wait in a queue; None if the broker cannot be reached."""
    try:
        return int(_client().llen(queue))
    except (redis.RedisError, OSError):
        return None


class _BrokerHealth:
    """Whether the broker is worth asking: a publish to one that hangs takes many seconds."""

    def __init__(self) -> None:
        self._answered_at = self._failed_at = float("-inf")

    def record_success(self) -> None:
        """Note that it took a hint."""
        self._answered_at = time.monotonic()

    def record_failure(self) -> None:
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
            _client().ping()
        except (redis.RedisError, OSError):
            self.record_failure()
            log.warning("broker_unreachable")
            return False
        self.record_success()
        return True


_health = _BrokerHealth()


@cache
def _connection(_process_id: int) -> Connection:
    """Return this process's connection for publishing: it gives up sooner than a worker's."""
    connection = current_app.connection_for_write()
    transport_options = {
        "socket_timeout": TIMEOUT,
        "socket_connect_timeout": TIMEOUT,
        # Without these a channel to a broker that is gone is asked for again for six seconds.
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
    }
    return connection.clone(transport_options={**connection.transport_options, **transport_options})


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=TIMEOUT,
        socket_timeout=TIMEOUT,
        retry=Retry(NoBackoff(), 0),
    )
