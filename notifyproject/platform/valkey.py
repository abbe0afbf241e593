"""Valkey as the memory all processes share, for what may be lost and need not be waited for.

Who asks it must be able to do without an answer: MongoDB has everything that counts.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import redis
import structlog
from django.conf import settings
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.retry import Retry

log = structlog.get_logger(__name__)
TIMEOUT = 0.3
"""Seconds Valkey may take over a connection or an answer. A send waits for it."""
PAUSE_AFTER_FAILURE = 5.0
"""Seconds in which this process does not ask again after it got no answer."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Unavailable(Exception):
    """Valkey did not answer, or did not a few seconds ago."""


def client() -> redis.Redis:
    """Return this process's client: bytes in and out, and no second try of anything."""
    return _client(os.getpid(), settings.REDIS_URL)


@contextmanager
def connection() -> Iterator[redis.Redis]:
    """Lend the client to somebody who can do without an answer.

    Raises Unavailable when there is none, and then at once for PAUSE_AFTER_FAILURE seconds: whatever is
    sent meanwhile does not wait for each question in turn.
    """
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
    """Return what a Lua script answers, in one round trip once Valkey knows it; raises Unavailable."""
    # hiredis raises at half a character, of what a provider said say: here it is spoilt.
    encoded = [arg.encode(errors="replace") if isinstance(arg, str) else arg for arg in args]
    with connection() as redis_client:
        return _script(redis_client, script)(keys=keys, args=encoded)


def clear() -> None:
    """Begin anew: the address is another one, or Valkey is known to be back."""
    _client.cache_clear()
    _script.cache_clear()
    _pause.end()


def to_milliseconds(instant: datetime) -> int:
    """Return an aware instant as scripts reckon with it: whole milliseconds since 1970."""
    return (instant - _EPOCH) // _MILLISECOND


def from_milliseconds(milliseconds: int) -> datetime:
    """Return the aware UTC instant of :func:`to_milliseconds`."""
    return _EPOCH + milliseconds * _MILLISECOND


class _Pause:
    """The seconds after a failure."""

    def __init__(self) -> None:
        self._until = float("-inf")

    def begin(self) -> None:
        self._until = time.monotonic() + PAUSE_AFTER_FAILURE

    def end(self) -> None:
        self._until = float("-inf")

    def is_on(self) -> bool:
        return time.monotonic() < self._until


_pause = _Pause()


@lru_cache(maxsize=100)
def _script(redis_client: redis.Redis, script: str) -> Script:
    """Return a script as the client names it: its digest is reckoned once."""
    return redis_client.register_script(script)


@cache
def _client(_process_id: int, url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        decode_responses=False,
        socket_connect_timeout=TIMEOUT,
        socket_timeout=TIMEOUT,
        retry=Retry(NoBackoff(), 0),
        # Version 3 begins each connection with two more questions, and each may take so long.
        protocol=2,
    )
