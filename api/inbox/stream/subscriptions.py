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

from notifications.inbox.wakeups import TOPIC

log = structlog.get_logger(__name__)
NAME = "inbox-streams"
"""How Valkey's list of clients shows a stream process."""
PER_PERSON = 10
"""Streams of one person at one client in a process: tabs and devices, and some that died unseen."""
ANSWER = 2.0
"""Seconds Valkey may take over a connection or an answer: nobody waits for it here."""
SILENCE = 10.0
"""Seconds without a word from Valkey after which it is asked whether it is there."""
PAUSE = 1.0
"""Seconds between two tries to reach it."""
ENDING = 0.2
"""Seconds after which whoever was told to end is told again."""


class TooManyStreamsError(Exception):
    """The person, or the process, has as many streams as it may."""

    def __init__(self, *, is_crowded: bool) -> None:
        super().__init__()
        self.is_crowded = is_crowded
        """It is the process that is full, not the person's share of it."""


class ConnectionLimiter:
    """Who has how many streams open here."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    @contextmanager
    def take(self, person: str) -> Iterator[None]:
        """Hold a place for one of a person's streams; raises NoPlace."""
        if len(self) >= self._most:
            raise TooManyStreamsError(is_crowded=True)
        if self._taken[person] >= PER_PERSON:
            raise TooManyStreamsError(is_crowded=False)
        self._taken[person] += 1
        try:
            yield
        finally:
            self._taken[person] -= 1
            if not self._taken[person]:
                del self._taken[person]


class WakeupListener:
    """Hears the hints of all inboxes and wakes the streams that they concern.

    While Valkey is away nothing is heard and streams look for themselves; when it is back all are
    woken, as nobody knows what was missed.
    """

    def __init__(self) -> None:
        self.is_connected = False
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._listening: asyncio.Task[None] | None = None

    @contextmanager
    def wakes(self, bell: asyncio.Event, *, on: Sequence[str]) -> Iterator[None]:
        """Ring a stream's bell at a hint with one of these keys."""
        if self._listening is None or self._listening.done():
            # It concerns no request: not the one that happens to be the first either.
            self._listening = asyncio.create_task(self._listen(), context=Context())
        for key in on:
            self._waiting.setdefault(key, set()).add(bell)
        try:
            yield
        finally:
            for key in on:
                self._waiting[key].discard(bell)
                if not self._waiting[key]:
                    del self._waiting[key]

    def wake_all(self) -> None:
        """Ring every bell."""
        self._ring(list(self._waiting))

    async def stop(self) -> None:
        """Stop listening."""
        listening, self._listening = self._listening, None
        while listening is not None and not listening.done():
            # Once is not always enough: a library may take it for a timeout of its own.
            listening.cancel()
            await asyncio.wait({listening}, timeout=ENDING)

    async def _listen(self) -> None:
        """Hear hints for ever, connecting anew as often as it takes."""
        while True:
            try:
                await self._hear()
            except (redis.RedisError, OSError) as error:
                if self.is_connected:
                    log.warning("inbox_hints_away", reason=type(error).__name__)
                self.is_connected = False
            await asyncio.sleep(PAUSE)

    async def _hear(self) -> None:
        """Hear hints until Valkey is gone; raises RedisError, OSError."""
        client = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            socket_connect_timeout=ANSWER,
            socket_timeout=ANSWER,
            socket_keepalive=True,
            client_name=NAME,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(TOPIC)
            was_asked = False
            while True:
                message = await subscription.get_message(timeout=SILENCE)
                if message is not None:
                    was_asked = False
                    self._heard(message["type"], message["data"])
                elif was_asked:
                    raise redis.ConnectionError("no answer to a ping")
                else:
                    was_asked = True
                    await _ask(subscription)

    def _heard(self, kind: str, data: bytes) -> None:
        if kind == "subscribe":
            self.is_connected = True
            log.info("inbox_hints_heard")
            self.wake_all()
        elif kind == "message":
            self._ring(data.decode("ascii", errors="replace").split(" "))

    def _ring(self, keys: Sequence[str]) -> None:
        for key in keys:
            for bell in self._waiting.get(key, ()):
                bell.set()


async def _ask(subscription: PubSub) -> None:
    """Ask whether Valkey is still there; the answer comes as a message."""
    async with asyncio.timeout(ANSWER):
        await subscription.ping()
