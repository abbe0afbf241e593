"""Valkey client for state that may be lost: rates, circuits, fair queues."""

import hashlib
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import redis.asyncio
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.sentinel
import structlog
from django.conf import settings
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.exceptions import NoScriptError
from redis.retry import Retry

from ..settings import sentinel_url

log = structlog.get_logger(__name__)
TIMEOUT = 0.3
"""Seconds for a connection or a response. A send waits for it."""
PAUSE_AFTER_FAILURE = 5.0
MAX_IDLE = 1.0
"""Seconds after which an idle connection is checked before its use."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Unavailable(Exception):
    """Valkey did not respond now, or within the last PAUSE_AFTER_FAILURE seconds."""


def client() -> redis.Redis:
    """Return this process's client, which takes and returns bytes and never retries."""
    return _client(os.getpid(), settings.REDIS_URL)


def open_client(url: str, *, timeout: float) -> redis.Redis:
    """Return a client of the primary that waits ``timeout`` seconds and never retries.

    With Sentinels, each new connection asks them for the primary, one after the other.
    """
    options: dict[str, Any] = {
        "decode_responses": False,
        **_connection_options(timeout),
        "retry": Retry(NoBackoff(), 0),
    }
    sentinels = sentinel_url.parse(url)
    if sentinels is None:
        return redis.Redis.from_url(url, **options)
    found: redis.Redis = redis.sentinel.Sentinel(
        sentinels.hosts, sentinel_kwargs=sentinels.sentinel_options(timeout=timeout)
    ).master_for(sentinels.master, **_account(sentinels), **options)
    return found


@asynccontextmanager
async def open_async_client(
    url: str, *, timeout: float, name: str
) -> AsyncIterator["redis.asyncio.Redis"]:
    """Yield an asynchronous client with a client name; see :func:`open_client`."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    options: dict[str, Any] = {
        **_connection_options(timeout),
        "client_name": name,
        "socket_keepalive": True,
        "retry": retry,
    }
    sentinels = sentinel_url.parse(url)
    if sentinels is None:
        async with redis.asyncio.Redis.from_url(url, **options) as client:
            yield client
        return
    sentinel_options = {**sentinels.sentinel_options(timeout=timeout), "retry": retry}
    sentinel = redis.asyncio.sentinel.Sentinel(sentinels.hosts, sentinel_kwargs=sentinel_options)
    try:
        async with sentinel.master_for(
            sentinels.master, **_account(sentinels), **options
        ) as client:
            yield client
    finally:
        for one in sentinel.sentinels:
            await one.aclose()


@contextmanager
def connection() -> Iterator[redis.Redis]:
    """Yield the client. Raises Unavailable on an error and for PAUSE_AFTER_FAILURE after it."""
    if _pause.is_on():
        raise Unavailable
    try:
        yield client()
    except (redis.RedisError, OSError) as error:
        if not _pause.is_on():
            log.warning("valkey_unavailable", reason=type(error).__name__)
        _pause.begin()
        raise Unavailable from error


def run(script: str, *, keys: Sequence[str], args: Sequence[str | int | float]) -> Any:
    """Run a Lua script, in one round trip once it is loaded. Raises Unavailable."""
    # hiredis raises on a lone surrogate, which a provider's response may contain.
    encoded = [arg.encode(errors="replace") if isinstance(arg, str) else arg for arg in args]
    call = (len(keys), *keys, *encoded)
    with connection() as redis_client:
        own = _connections.of_thread(redis_client)
        try:
            return _send(own, "EVALSHA", _digest(script), *call)
        except NoScriptError:
            return _send(own, "EVAL", script, *call)


def send(*command: str | int | bytes) -> Any:
    """Send a command and return its response. Raises RedisError and OSError, without a pause."""
    return _send(_connections.of_thread(client()), *command)


def clear() -> None:
    """Discard clients and the pause. For tests: the URL changed, or Valkey is back."""
    _client.cache_clear()
    _pause.end()


def to_milliseconds(instant: datetime) -> int:
    """Return an aware instant as whole milliseconds since 1970, as scripts use it."""
    return (instant - _EPOCH) // _MILLISECOND


def from_milliseconds(milliseconds: int) -> datetime:
    """Return the aware UTC instant for milliseconds since 1970."""
    return _EPOCH + milliseconds * _MILLISECOND


class _Pause:
    """The pause after a failure."""

    def __init__(self) -> None:
        self.end()

    def begin(self) -> None:
        self._until = time.monotonic() + PAUSE_AFTER_FAILURE

    def end(self) -> None:
        self._until = float("-inf")

    def is_on(self) -> bool:
        return time.monotonic() < self._until


_pause = _Pause()


class _Connections(threading.local):
    """The connection of a thread for scripts.

    A connection from the client's pool costs as much CPU time as the script's round trip.
    """

    client: redis.Redis | None = None
    connection: AbstractConnection
    used_at = float("-inf")

    def of_thread(self, redis_client: redis.Redis) -> AbstractConnection:
        """Return the connection."""
        now = time.monotonic()
        if self.client is not redis_client:
            self.client = redis_client
            pool = redis_client.connection_pool
            self.connection = pool.connection_class(**pool.connection_kwargs)
        elif now - self.used_at > MAX_IDLE:
            _reconnect_if_closed(self.connection)
        self.used_at = now
        return self.connection


_connections = _Connections()


def _send(own: AbstractConnection, *command: Any) -> Any:
    """Send a command and return its response. Raises RedisError."""
    try:
        own.send_command(*command, check_health=False)
        return own.read_response()
    except redis.ResponseError:
        raise
    except BaseException:
        # The next command must not read the response of this one.
        own.disconnect()
        raise


def _reconnect_if_closed(idle: AbstractConnection) -> None:
    try:
        # Nothing is awaited: there is input only at the end of a connection.
        if idle.can_read():
            idle.disconnect()
    except (redis.RedisError, OSError):
        idle.disconnect()


@lru_cache(maxsize=100)
def _digest(script: str) -> str:
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


@cache
def _client(_process_id: int, url: str) -> redis.Redis:
    return open_client(url, timeout=TIMEOUT)


def _connection_options(timeout: float) -> dict[str, Any]:
    # Version 3 adds two commands to each connection, each with a timeout of its own.
    return {"socket_connect_timeout": timeout, "socket_timeout": timeout, "protocol": 2}


def _account(sentinels: sentinel_url.SentinelAddress) -> dict[str, Any]:
    return {
        "db": sentinels.database,
        "username": sentinels.username,
        "password": sentinels.password,
    }
