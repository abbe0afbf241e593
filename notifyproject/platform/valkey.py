"""Valkey client for state that may be lost: rates, circuits, fair queues."""

import hashlib
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
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

from .. import lockstep
from ..lockstep import Trip
from ..settings import sentinel_url
from .server_health import ServerHealth

log = structlog.get_logger(__name__)
TIMEOUT = 0.3
"""Seconds for a connection or a response. A send waits for it."""
MAX_IDLE = 0.05
"""Seconds after which an idle connection is checked before its use."""
_STORED_NUMBER = (Path(__file__).parent / "lua" / "stored_number.lua").read_text()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
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
        for connection in sentinel.sentinels:
            await connection.aclose()


@contextmanager
def connection() -> Iterator[redis.Redis]:
    """Yield the client. Raises Unavailable on an error and for PAUSE_AFTER_FAILURE after it."""
    if _health.is_paused():
        raise Unavailable
    try:
        yield client()
    except (redis.RedisError, OSError) as error:
        if not _health.is_paused():
            log.warning("valkey_unavailable", reason=type(error).__name__)
        _health.record_failure()
        raise Unavailable from error


def read_script(path: Path) -> str:
    """Return a Lua script after the helper ``stored_number``, with which it reads stored values."""
    return _STORED_NUMBER + path.read_text()


def run(script: str, *, keys: Sequence[str], args: Sequence[str | int | float]) -> Any:
    """Run a Lua script, in one round trip once it is loaded. Raises Unavailable."""
    # hiredis raises on a lone surrogate, which a provider's response may contain.
    encoded = [arg.encode(errors="replace") if isinstance(arg, str) else arg for arg in args]
    with connection():
        return _run(_Call(script, (len(keys), *keys, *encoded)))


def run_later(script: str, *, keys: Sequence[str], args: Sequence[str | int | bytes]) -> None:
    """Send a Lua script that Valkey runs in a moment, without waiting for its result.

    Scripts and commands of a thread run in its order. Raises Unavailable if sending fails; a script
    that fails later is logged.
    """
    with connection():
        _run_later(_Call(script, (len(keys), *keys, *args)))


def send(*command: str | int | bytes) -> Any:
    """Send a command and return its response. Raises RedisError and OSError, without a pause."""
    return _own.of(client()).execute(*command)


def clear() -> None:
    """Discard clients and the pause. For tests: the URL changed, or Valkey is back."""
    _client.cache_clear()
    _health.reset()


def to_milliseconds(instant: datetime) -> int:
    """Return an aware instant as whole milliseconds since 1970, as scripts use it."""
    return (instant - _EPOCH) // _MILLISECOND


def from_milliseconds(milliseconds: int) -> datetime:
    """Return the aware UTC instant for milliseconds since 1970."""
    return _EPOCH + milliseconds * _MILLISECOND


def stored_number(value: bytes | None, *, least: float = 0.0, most: float) -> float | None:
    """Return a stored value as a number in these bounds, or None, as ``stored_number`` in Lua.

    Whatever else is stored counts as absent.
    """
    try:
        number = float(value or b"")
    except ValueError:
        return None
    return number if least <= number <= most else None


def stored_instant(value: bytes | None, *, latest: datetime = _LATEST) -> datetime | None:
    """Return stored milliseconds since 1970 as an instant, or None if it is no such number.

    An instant after ``latest`` counts as absent, too.
    """
    number = stored_number(value, most=to_milliseconds(latest))
    return None if number is None else from_milliseconds(int(number))


_health = ServerHealth()


@dataclass(frozen=True, slots=True)
class _Call:
    script: str
    args: tuple[Any, ...]


class _OwnConnection:
    """A connection that one thread uses.

    A connection from the client's pool costs as much CPU time as the round trip.
    """

    def __init__(self, redis_client: redis.Redis) -> None:
        pool = redis_client.connection_pool
        self.client = redis_client
        self._connection: AbstractConnection = pool.connection_class(**pool.connection_kwargs)
        self._used_at = time.monotonic()
        self._unread = 0
        """Responses that nobody has waited for."""
        self._loaded: set[str] = set()
        """Digests of scripts that Valkey has."""

    def execute(self, *command: Any) -> Any:
        """Send a command and return its response. Raises RedisError and OSError."""
        with self._in_step():
            self._connection.send_command(*command, check_health=False)
            return self._connection.read_response()

    def run(self, calls: Sequence[_Call]) -> list[Any]:
        """Run scripts in one round trip; return the result or the error of each, in order.

        Raises RedisError and OSError if the connection fails.
        """
        results: list[Any] = []
        with self._in_step():
            self._send(calls)
            for _ in calls:
                try:
                    results.append(self._connection.read_response())
                except redis.ResponseError as error:
                    results.append(error)
        for number, result in enumerate(results):
            if isinstance(result, NoScriptError):
                call = calls[number]
                (results[number],) = lockstep.for_each(self._evaluate, [call])
        return results

    def run_later(self, calls: Sequence[_Call]) -> list[redis.ResponseError | None]:
        """Send scripts without waiting, once Valkey has them; return the refusal of each, or None.

        Raises RedisError and OSError if the connection fails.
        """
        refusals: list[redis.ResponseError | None] = [None] * len(calls)
        waiting = []
        for number, call in enumerate(calls):
            if (digest := _digest(call.script)) in self._loaded:
                waiting.append(call)
                continue
            try:
                self._evaluate(call)
            except redis.ResponseError as refusal:
                refusals[number] = refusal
            else:
                self._loaded.add(digest)
        if waiting:
            with self._in_step():
                self._send(waiting)
                self._unread += len(waiting)
        return refusals

    def _evaluate(self, call: _Call) -> Any:
        return self.execute("EVAL", call.script, *call.args)

    def _send(self, calls: Sequence[_Call]) -> None:
        commands = [("EVALSHA", _digest(call.script), *call.args) for call in calls]
        packed = self._connection.pack_commands(commands)
        self._connection.send_packed_command(packed, check_health=False)

    @contextmanager
    def _in_step(self) -> Iterator[None]:
        """Read the responses of earlier commands. Disconnect if the command's may be left unread.

        Otherwise the next command would read it.
        """
        try:
            self._catch_up()
            if not self._connection.is_connected:
                # With Sentinels, it asks them for the primary.
                self._connection.connect()
            yield
        except redis.ResponseError:
            raise
        except BaseException:
            self._disconnect()
            raise

    def _catch_up(self) -> None:
        while self._unread:
            try:
                self._connection.read_response()
            except redis.ResponseError as error:
                # Valkey may have lost its scripts.
                self._loaded.clear()
                log.warning("valkey_script_failed", reason=type(error).__name__)
            self._unread -= 1
        now = time.monotonic()
        if now - self._used_at > MAX_IDLE and self._is_closed():
            self._disconnect()
        self._used_at = now

    def _is_closed(self) -> bool:
        # Nothing is awaited: there is input only at the end of a connection.
        try:
            return bool(self._connection.can_read())
        except (redis.RedisError, OSError):
            return True

    def _disconnect(self) -> None:
        self._connection.disconnect()
        self._unread = 0
        self._loaded.clear()


class _Own(threading.local):
    """The connection of each thread."""

    connection: _OwnConnection | None = None

    def of(self, redis_client: redis.Redis) -> _OwnConnection:
        """Return the connection of this thread."""
        if self.connection is None or self.connection.client is not redis_client:
            self.connection = _OwnConnection(redis_client)
        return self.connection


_own = _Own()


def _run_together(calls: Sequence[_Call]) -> list[Any]:
    return _own.of(client()).run(calls)


def _run_later_together(calls: Sequence[_Call]) -> list[redis.ResponseError | None]:
    return _own.of(client()).run_later(calls)


_run = Trip(_run_together)
_run_later = Trip(_run_later_together)


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
