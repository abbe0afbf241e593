"""What the streams of a process share: one subscription to hints, a limited number of places."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context

import redis.asyncio
import structlog
from django.conf import settings
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from notifications.inbox.wakeups import VALKEY_CHANNEL

log = structlog.get_logger(__name__)
CLIENT_NAME = "inbox-streams"
"""How Valkey's list of clients shows a stream process."""
MAX_PER_INBOX = 10
"""Streams of one person at one client in a process: tabs and devices, and some that died unseen."""
VALKEY_TIMEOUT = 2.0
"""Seconds Valkey may take over a connection or an answer: nobody waits for it here."""
PING_AFTER = 10.0
"""Seconds without a word from Valkey after which it is asked whether it is there."""
RECONNECT_DELAY = 1.0
"""Seconds between two tries to reach it."""
CANCEL_INTERVAL = 0.2
"""Seconds after which whoever was told to end is told again."""


class TooManyStreamsError(Exception):
    """The person, or the process, has as many streams as it may."""

    def __init__(self, *, is_process_full: bool) -> None:
        super().__init__()
        self.is_process_full = is_process_full
        """It is the process that is full, not the person's share of it."""


class ConnectionLimiter:
    """Who has how many streams open here."""

    def __init__(self, *, max_connections: int) -> None:
        self._max_connections = max_connections
        self._in_use: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._in_use.total()

    @contextmanager
    def acquire(self, inbox_key: str) -> Iterator[None]:
        """Hold a place for one of a person's streams; raises TooManyStreamsError."""
        if len(self) >= self._max_connections:
            raise TooManyStreamsError(is_process_full=True)
        if self._in_use[inbox_key] >= MAX_PER_INBOX:
            raise TooManyStreamsError(is_process_full=False)
        self._in_use[inbox_key] += 1
        try:
            yield
        finally:
            self._in_use[inbox_key] -= 1
            if not self._in_use[inbox_key]:
                del self._in_use[inbox_key]


class WakeupListener:
    """Hears the hints of all inboxes and wakes the streams that they concern.

    While Valkey is away nothing is heard and streams look for themselves; when it is back all are
    woken, as nobody knows what was missed.
    """

    def __init__(self) -> None:
        self.is_connected = False
        self._subscribers: dict[str, set[asyncio.Event]] = {}
        self._listen_task: asyncio.Task[None] | None = None

    @contextmanager
    def subscribe(self, wakeup: asyncio.Event, *, on: Sequence[str]) -> Iterator[None]:
        """Ring a stream's bell at a hint with one of these keys."""
        if self._listen_task is None or self._listen_task.done():
            # It concerns no request: not the one that happens to be the first either.
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

    def wake_all(self) -> None:
        """Ring every bell."""
        self._wake(list(self._subscribers))

    async def stop(self) -> None:
        """Stop listening."""
        task, self._listen_task = self._listen_task, None
        while task is not None and not task.done():
            # Once is not always enough: a library may take it for a timeout of its own.
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_INTERVAL)

    async def _listen(self) -> None:
        """Hear hints for ever, connecting anew as often as it takes."""
        while True:
            try:
                await self._receive()
            except (redis.RedisError, OSError) as error:
                if self.is_connected:
                    log.warning("inbox_hints_away", reason=type(error).__name__)
                self.is_connected = False
            await asyncio.sleep(RECONNECT_DELAY)

    async def _receive(self) -> None:
        """Hear hints until Valkey is gone; raises RedisError, OSError."""
        client = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            socket_connect_timeout=VALKEY_TIMEOUT,
            socket_timeout=VALKEY_TIMEOUT,
            socket_keepalive=True,
            client_name=CLIENT_NAME,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(VALKEY_CHANNEL)
            is_ping_sent = False
            while True:
                message = await subscription.get_message(timeout=PING_AFTER)
                if message is not None:
                    is_ping_sent = False
                    self._handle_message(message["type"], message["data"])
                elif is_ping_sent:
                    raise redis.ConnectionError("no answer to a ping")
                else:
                    is_ping_sent = True
                    await _ping(subscription)

    def _handle_message(self, kind: str, data: bytes) -> None:
        if kind == "subscribe":
            self.is_connected = True
            log.info("inbox_hints_heard")
            self.wake_all()
        elif kind == "message":
            self._wake(data.decode("ascii", errors="replace").split(" "))

    def _wake(self, keys: Sequence[str]) -> None:
        for key in keys:
            for wakeup in self._subscribers.get(key, ()):
                wakeup.set()


async def _ping(subscription: PubSub) -> None:
    """Ask whether Valkey is still there; the answer comes as a message."""
    async with asyncio.timeout(VALKEY_TIMEOUT):
        await subscription.ping()
