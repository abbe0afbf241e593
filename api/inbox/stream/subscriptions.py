"""Shared by the streams of a process: one Valkey subscription, and the connection limits."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context

import redis
import structlog
from django.conf import settings
from redis.asyncio.client import PubSub

from notifications.inbox.wakeups import VALKEY_CHANNEL
from notifyproject.platform import valkey

from ...http.problems import RATE_LIMITED, TOO_MANY_STREAMS

log = structlog.get_logger(__name__)
CLIENT_NAME = "inbox-streams"  # Name of a stream process in Valkey's list of clients
MAX_PER_INBOX = 10
"""Streams per inbox in a process: tabs, devices, and dead connections not yet noticed."""
VALKEY_TIMEOUT = 2.0  # Seconds for a connection to Valkey or a response
PING_AFTER = 10.0  # Seconds without a message from Valkey before a ping
RECONNECT_DELAY = 1.0  # Seconds between connection attempts
CANCEL_INTERVAL = 0.2  # Seconds between attempts to cancel the listening task


class ConnectionLimiter:
    """Limits the streams per process and per inbox."""

    def __init__(self, *, max_connections: int) -> None:
        self._max_connections = max_connections
        self._in_use: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._in_use.total()

    @contextmanager
    def acquire(self, inbox_key: str) -> Iterator[None]:
        """Count a stream of an inbox while it's open. Raises ApiError at a limit."""
        if len(self) >= self._max_connections:
            raise TOO_MANY_STREAMS.error(retry_after=30)
        if self._in_use[inbox_key] >= MAX_PER_INBOX:
            raise RATE_LIMITED.error("Too many open streams for this recipient.", retry_after=30)
        self._in_use[inbox_key] += 1
        try:
            yield
        finally:
            self._in_use[inbox_key] -= 1
            if not self._in_use[inbox_key]:
                del self._in_use[inbox_key]


class WakeupListener:
    """Receives wake-ups of inboxes and wakes their streams. After an outage, wakes all streams."""

    def __init__(self) -> None:
        self.is_connected = False
        self._subscribers: dict[str, set[asyncio.Event]] = {}
        self._listen_task: asyncio.Task[None] | None = None

    @contextmanager
    def subscribe(self, wakeup: asyncio.Event, *, on: Sequence[str]) -> Iterator[None]:
        """Set ``wakeup`` at each message with one of the keys, while the context is open."""
        if self._listen_task is None or self._listen_task.done():
            # A context of its own: the task must not log the first request's ID.
            self._listen_task = asyncio.create_task(self._listen(), context=Context())
        for key in on:
            self._subscribers.setdefault(key, set()).add(wakeup)
        try:
            yield
        finally:
            for key in on:
                self._subscribers[key].discard(wakeup)
                if not self._subscribers[key]:
                    del self._subscribers[key]

    def signal_all(self) -> None:
        """Wake all streams."""
        self._signal(list(self._subscribers))

    async def stop(self) -> None:
        """Stop listening."""
        task, self._listen_task = self._listen_task, None
        while task is not None and not task.done():
            # Repeated, because a library may take the cancellation for its own timeout.
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_INTERVAL)

    async def _listen(self) -> None:
        """Receive wake-ups forever, reconnecting as needed."""
        while True:
            try:
                await self._receive()
            except (redis.RedisError, OSError) as error:
                if self.is_connected:
                    log.warning("inbox_wakeups_disconnected", reason=type(error).__name__)
                self.is_connected = False
            await asyncio.sleep(RECONNECT_DELAY)

    async def _receive(self) -> None:
        """Receive wake-ups until the connection breaks. Raises RedisError or OSError."""
        opened = valkey.open_async_client(
            settings.REDIS_URL, timeout=VALKEY_TIMEOUT, name=CLIENT_NAME
        )
        async with opened as client, client.pubsub() as subscription:
            await subscription.subscribe(VALKEY_CHANNEL)
            is_ping_sent = False
            while True:
                message = await subscription.get_message(timeout=PING_AFTER)
                if message is not None:
                    is_ping_sent = False
                    self._handle_message(message["type"], message["data"])
                elif is_ping_sent:
                    raise redis.ConnectionError("ping timed out")
                else:
                    is_ping_sent = True
                    await _ping(subscription)

    def _handle_message(self, kind: str, data: bytes) -> None:
        if kind == "subscribe":
            self.is_connected = True
            log.info("inbox_wakeups_connected")
            self.signal_all()
        elif kind == "message":
            self._signal(data.decode("ascii", errors="replace").split(" "))

    def _signal(self, keys: Sequence[str]) -> None:
        for key in keys:
            for wakeup in self._subscribers.get(key, ()):
                wakeup.set()


async def _ping(subscription: PubSub) -> None:
    async with asyncio.timeout(VALKEY_TIMEOUT):
        await subscription.ping()
