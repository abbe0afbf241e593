"""RabbitMQ as the broker: quorum queues, and what Celery needs to use them.

A quorum queue has no global prefetch, so RabbitMQ pushes messages of every queue to a worker, and
the worker's pool runs the most urgent first. Delayed messages wait in RabbitMQ: topic exchanges
pass them through queues whose time to live is a power of two seconds.
"""

import heapq
import itertools
import math
import re
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from amqp.exceptions import AMQPError, MessageNacked, NotFound
from celery.concurrency.base import apply_target
from celery.concurrency.thread import ApplyResult, TaskPool
from django.conf import settings
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

ERRORS = (AMQPError, MessageNacked)
"""What the client library raises besides OSError and kombu's own errors."""
TRANSPORT_OPTIONS = {"confirm_publish": True, "read_timeout": 10, "write_timeout": 10}
"""Timeouts in seconds. A quorum queue drops a message without a confirm if its channel closes."""
POOL = "notifyproject.platform.rabbitmq:PriorityPool"
HEARTBEAT = 15
"""Seconds. A peer that is silent for two of these is disconnected."""
_MIN_ETA = timedelta(seconds=1.1)
"""Shortest delay that Celery turns into whole seconds of at least one, with time to spare."""
_DELAY = re.compile(r"^(?:[01]\.)+")


def is_rabbitmq(url: str) -> bool:
    """Return whether a broker URL is RabbitMQ's."""
    return url.startswith(("amqp://", "amqps://"))


def quorum_queue(name: str) -> Queue:
    """Return a durable queue, replicated if RabbitMQ is a cluster."""
    # Celery's delayed delivery needs a topic exchange.
    arguments = {"x-queue-type": "quorum"}
    exchange = Exchange(name, type="topic")
    return Queue(name, exchange, routing_key=name, queue_arguments=arguments)


def delay_options(at: datetime, *, now: datetime) -> dict[str, Any]:
    """Return the options with which Celery delays a message to an instant after ``now``.

    RabbitMQ delays it by whole seconds, and the worker holds it for the rest. A delay of less than
    a second becomes one second, because Celery can't express it.
    """
    delay = at - now
    if delay >= _MIN_ETA:
        return {"eta": at}
    return {"countdown": max(math.floor(delay.total_seconds()), 1)}


def queue_of(routing_key: str) -> str:
    """Return the queue of a message; a delayed one has its delay before the queue's name."""
    return _DELAY.sub("", routing_key)


def depths(connection: Connection, queues: Collection[str]) -> dict[str, int]:
    """Return the messages that wait in each queue, without those that workers hold."""
    found = dict.fromkeys(queues, 0)
    for name in queues:
        # No worker has declared a queue that isn't found. The error closes the channel.
        with suppress(NotFound), connection.channel() as channel:
            found[name] = int(channel.queue_declare(name, passive=True).message_count)
    return found


class PriorityPool(TaskPool):
    """Celery's thread pool, whose free threads take the message of the most urgent queue.

    Messages of one queue run in the order of their arrival.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = (queue.name for queue in settings.CELERY_TASK_QUEUES)
        self._ranks = {name: rank for rank, name in enumerate(names)}
        self._waiting: list[tuple[int, int, Callable[[], Any]]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def on_apply(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        callback: Callable[..., Any] | None = None,
        accept_callback: Callable[..., Any] | None = None,
        **_: Any,
    ) -> ApplyResult:
        """Run a task when a thread is free and nothing more urgent waits."""
        # Celery passes the task's name, its ID, and the request.
        routing_key = args[2]["delivery_info"]["routing_key"]
        rank = self._ranks.get(queue_of(routing_key), len(self._ranks))

        def call() -> Any:
            return apply_target(target, args, kwargs, callback, accept_callback)

        with self._lock:
            heapq.heappush(self._waiting, (rank, next(self._numbers), call))
        return ApplyResult(self.executor.submit(self._run_most_urgent))

    def _run_most_urgent(self) -> Any:
        with self._lock:
            _, _, call = heapq.heappop(self._waiting)
        return call()
