"""Publishes Celery messages without blocking, and reads queue depths: Valkey or RabbitMQ."""

import os
from base64 import b64encode
from collections.abc import Collection
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

import msgspec
import redis
import structlog
from celery import current_app
from celery.utils.saferepr import saferepr
from django.conf import settings
from kombu.connection import Connection
from kombu.exceptions import LimitExceeded, OperationalError
from kombu.pools import ProducerPool

from . import rabbitmq, valkey
from .server_health import ServerHealth
from .unique import new_uuid

log = structlog.get_logger(__name__)
TIMEOUT = 0.3
"""Seconds for each command to RabbitMQ, for which an API request waits."""
TRUSTED_SECONDS = 1.0
"""Seconds after a success, in which messages are published without a ping."""
MAX_COUNTDOWN = 60.0
"""Messages due later than in this many seconds are left to the sweeper."""
MAX_CONNECTIONS = 10
"""Connections of a process to RabbitMQ for publishing."""
ERRORS = (OperationalError, redis.RedisError, *rabbitmq.ERRORS, OSError)
"""What publishing raises if the broker is unavailable."""
MAX_SHOWN = 1_024
"""Characters of the arguments that a message shows in its headers, as Celery does."""
_ID, _TAG, _ETA, _SHOWN, _BODY = b"@id", b"@tag", b'"@eta"', b'"@shown"', b'"@body"'
"""Places in a template, which no name of a task, queue, or host contains."""
_OPTIONS = dict.fromkeys(("callbacks", "errbacks", "chain", "chord"))
PERSISTENT = 2
"""Delivery mode of the messages. The transport keeps all in Valkey, whatever their mode."""
_ONE_TRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0}
"""Without these limits, kombu retries an unreachable broker for six seconds."""


def publish(
    task: str, *, args: list[Any], queue: str | None, at: datetime | None, now: datetime
) -> bool:
    """Publish a message; return whether the broker accepted it.

    A message for an instant over MAX_COUNTDOWN ahead isn't published. ``queue`` has a default.
    """
    countdown = max((at - now).total_seconds(), 0.0) if at is not None else 0.0
    if countdown > MAX_COUNTDOWN or not _is_up():
        return False
    later = at if countdown else None
    try:
        if is_rabbitmq():
            delay = {} if later is None else rabbitmq.delay_options(later, now=now)
            _send_to_rabbitmq(task, {"args": args, "queue": queue, **delay})
        else:
            name = queue or current_app.conf.task_default_queue
            valkey.send("LPUSH", name, encode(task, args=args, queue=name, eta=later))
    except LimitExceeded:
        # All producers of this process are in use, and none has failed yet.
        log.warning("message_not_published", reason="LimitExceeded")
        return False
    except ERRORS as error:
        _health.record_failure()
        _rabbitmq_pool.cache_clear()
        log.warning("message_not_published", reason=type(error).__name__)
        return False
    _health.record_answer()
    return True


def is_rabbitmq() -> bool:
    """Return whether the broker is RabbitMQ; otherwise it is Valkey."""
    return rabbitmq.is_rabbitmq(settings.CELERY_BROKER_URL)


def encode(task: str, *, args: list[Any], queue: str, eta: datetime | None = None) -> bytes:
    """Return a message as Celery and kombu's Redis transport put it into a queue.

    Celery's own way takes ten times as long as the round trip. So Celery makes one message for a
    task and a queue, and others differ in the parts that are filled in.
    """
    shown = repr(args)
    if len(shown) > MAX_SHOWN:
        shown = saferepr(args, MAX_SHOWN)
    body = msgspec.json.encode((args, {}, _OPTIONS))
    return (
        _template(os.getpid(), task, queue)
        .replace(_ID, str(new_uuid()).encode())
        .replace(_TAG, str(new_uuid()).encode())
        .replace(_ETA, msgspec.json.encode(eta.isoformat() if eta else None))
        .replace(_SHOWN, msgspec.json.encode(shown))
        .replace(_BODY, msgspec.json.encode(b64encode(body).decode()))
    )


@lru_cache(maxsize=200)
def _template(_process_id: int, task: str, queue: str) -> bytes:
    message = current_app.amqp.as_task_v2("@id", task, args=[], eta="@eta", argsrepr="@shown")
    filled = {
        "body": "@body",
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {**message.headers, "ignore_result": True},
        "properties": {
            **message.properties,
            "delivery_mode": PERSISTENT,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": "@tag",
        },
    }
    return msgspec.json.encode(filled)


def _send(pool: ProducerPool, task: str, options: dict[str, Any]) -> None:
    with pool.acquire(block=True, timeout=TIMEOUT) as producer:
        current_app.send_task(task, retry=False, ignore_result=True, producer=producer, **options)


def _send_to_rabbitmq(task: str, options: dict[str, Any]) -> None:
    """Publish a message and wait for RabbitMQ's confirm, which needs a write to disk."""
    options = {**options, "timeout": TIMEOUT, "confirm_timeout": 2 * TIMEOUT}
    try:
        _send(_rabbitmq_pool(os.getpid()), task, options)
    except ERRORS:
        _rabbitmq_pool.cache_clear()
        if not _health.is_well():
            raise
        # The connection may be of a node that has restarted since the last message.
        _send(_rabbitmq_pool(os.getpid()), task, options)


def load_driver() -> None:
    """Load the modules that publishing needs. Doesn't connect to the broker."""
    if is_rabbitmq():
        _rabbitmq_connection(timeout=TIMEOUT)
    encode("none", args=[], queue="none")


def queue_depth(queue: str) -> int | None:
    """Return the number of messages in a queue, or None if the broker is unreachable."""
    if is_rabbitmq():
        found = queue_depths([queue])
        return None if found is None else found[queue]
    try:
        return int(valkey.client().llen(queue))
    except (redis.RedisError, OSError):
        return None


def queue_depths(queues: Collection[str]) -> dict[str, int] | None:
    """Return the number of messages in each queue, or None if the broker is unreachable."""
    if is_rabbitmq():
        return _rabbitmq_depths(queues)
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            for name in queues:
                pipe.llen(name)
            return dict(zip(queues, pipe.execute(), strict=True))
    except valkey.Unavailable:
        return None


def probe(*, timeout: float) -> str | None:
    """Connect to the broker within some seconds; return the name of the error, or None."""
    try:
        if is_rabbitmq():
            with _rabbitmq_connection(timeout=timeout) as connection:
                connection.ensure_connection(max_retries=1, timeout=timeout)
        else:
            with valkey.open_client(settings.REDIS_URL, timeout=timeout) as client:
                client.ping()
    except ERRORS as error:
        return type(error).__name__
    return None


def _rabbitmq_depths(queues: Collection[str]) -> dict[str, int] | None:
    if _health.is_paused():
        return None
    try:
        pool = _rabbitmq_pool(os.getpid())
        with pool.acquire(block=True, timeout=TIMEOUT) as producer:
            return rabbitmq.depths(producer.connection, queues)
    except LimitExceeded:
        return None
    except ERRORS:
        # Only a message that isn't published pauses publishing.
        _rabbitmq_pool.cache_clear()
        return None


_health = ServerHealth()


def _is_up() -> bool:
    """Return whether to try the broker: not during the pause after a failure.

    Valkey must also have answered just now, or answer a ping. RabbitMQ confirms each message.
    """
    if _health.is_paused():
        return False
    # RabbitMQ confirms each message, so a ping would tell nothing more.
    if is_rabbitmq() or _health.has_answered(within=TRUSTED_SECONDS):
        return True
    try:
        valkey.client().ping()
    except (redis.RedisError, OSError):
        _health.record_failure()
        log.warning("broker_unreachable")
        return False
    _health.record_answer()
    return True


@cache
def _rabbitmq_pool(_process_id: int) -> ProducerPool:
    """Return this process's connections to RabbitMQ. After an error they are replaced."""
    # kombu's own pools close connections that other threads use.
    connections = _rabbitmq_connection(timeout=TIMEOUT).Pool(limit=MAX_CONNECTIONS)
    return ProducerPool(connections, limit=MAX_CONNECTIONS)


def _rabbitmq_connection(*, timeout: float) -> Connection:
    connection = current_app.connection_for_write()
    timeouts = {"read_timeout": timeout, "write_timeout": timeout}
    options = {**connection.transport_options, **timeouts, **_ONE_TRY}
    return connection.clone(connect_timeout=timeout, transport_options=options)
