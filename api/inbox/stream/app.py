"""ASGI application for inbox streams (server-sent events), in a process of its own.

A stream costs an asyncio task; a Django view would hold one of the few threads of the web process.
A small thread pool, shared by all streams, reads MongoDB.
"""

import asyncio
import random
import re
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

import structlog
from bson import ObjectId
from django.conf import settings
from pymongo.errors import PyMongoError

from access.clients.authentication import INBOX_CHALLENGE
from access.clients.inbox_tokens import InboxUser
from domain.time import utc_now

from ...http.problems import (
    INVALID_EVENT_ID,
    METHOD_NOT_ALLOWED,
    RESTARTING,
    UNAUTHENTICATED,
    UNKNOWN_PARAMETER,
    WRONG_ENDPOINT,
    ApiError,
    to_api_error,
)
from ...http.rate_limits import AuthenticationFailures
from .. import cors
from ..views import STREAM_PATH
from .connection import Receive, Scope, Send, StreamConnection
from .follower import HEARTBEAT, Follower, authenticate, encode_event
from .subscriptions import ConnectionLimiter, WakeupListener

log = structlog.get_logger(__name__)
T = TypeVar("T")
SHUTDOWN_TIMEOUT = 1.0  # Seconds for streams to end at shutdown
THREADS = 8  # Concurrent polls of MongoDB; each takes a few milliseconds
_EVENT_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)
STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    # Keeps nginx from buffering events.
    "X-Accel-Buffering": "no",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTiming:
    """Intervals of a stream, in seconds."""

    heartbeat: float = 15.0  # Between heartbeats, and between checks of the token
    poll: float = 60.0  # Between polls without a wake-up; without Valkey, each heartbeat polls
    repeat_poll: float = 1.0  # After a failed poll; at most twice as long
    write_timeout: float = 20.0  # Longest time that a client doesn't read
    retry_from: float = 2.0
    retry_to: float = 6.0  # Clients reconnect after a random delay in this range


class InboxStreamApp:
    """Serves inbox streams and ``/healthz``."""

    def __init__(
        self, *, clock: Callable[[], datetime] = utc_now, timing: StreamTiming | None = None
    ) -> None:
        self._clock = clock
        self._timing = timing or StreamTiming()
        self._is_shutting_down = False
        self.listener = WakeupListener()
        self._connections = ConnectionLimiter(max_connections=settings.INBOX_STREAMS)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="inbox")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an HTTP request, or the lifespan protocol."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(
                StreamConnection.from_scope(scope, receive, send, self._timing.write_timeout)
            )
        else:
            await send({"type": "websocket.close"})

    async def stop(self) -> None:
        """End all streams, the Valkey subscription, and the threads."""
        self._is_shutting_down = True
        self.listener.signal_all()
        deadline = asyncio.get_running_loop().time() + SHUTDOWN_TIMEOUT
        while len(self._connections) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        await self.listener.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = (await receive())["type"]
            if event == "lifespan.shutdown":
                await self.stop()
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    async def _serve(self, connection: StreamConnection) -> None:
        with structlog.contextvars.bound_contextvars(request_id=connection.request_id):
            if connection.path != STREAM_PATH:
                await _serve_other_path(connection)
                return
            if cors.is_preflight(connection.method, connection.headers):
                await connection.start(204, {})
                await connection.write(b"", is_last=True)
                return
            try:
                if self._is_shutting_down:
                    raise RESTARTING.error(retry_after=2)
                user = await self._authenticate(connection)
                follower = Follower(user=user, last_event_id=_last_event_id(connection.headers))
                with self._connections.acquire(follower.inbox.key):
                    await self._follow(connection, follower)
            except (ApiError, PyMongoError) as error:
                await connection.send_problem(to_api_error(error))

    async def _authenticate(self, connection: StreamConnection) -> InboxUser:
        """Check the request; return its token's user. Raises ApiError or PyMongoError."""
        if connection.method != "GET":
            raise METHOD_NOT_ALLOWED.error(methods="GET")
        if connection.query:
            detail = "No parameters allowed; send the token in the header `Authorization`."
            raise UNKNOWN_PARAMETER.error(detail)
        return await self._run_blocking(partial(_token_user, connection, now=self._clock()))

    async def _follow(self, connection: StreamConnection, follower: Follower) -> None:
        """Send events until the client leaves, its token ends, or the process shuts down."""
        wakeup = asyncio.Event()
        disconnect = asyncio.create_task(connection.wait_for_disconnect(wakeup))
        try:
            with self.listener.subscribe(wakeup, on=(follower.inbox.key, follower.user.jti)):
                await connection.start(200, STREAM_HEADERS)
                await connection.write(self._retry_event())
                try:
                    reason = await self._send_events(connection, follower, wakeup)
                except asyncio.CancelledError:
                    # The server is shutting down. Ending in order makes the client reconnect.
                    reason = "restart"
            await connection.write(encode_event("end", {"reason": reason}), is_last=True)
        except TimeoutError:
            # The stream counts toward the limit until the client closes the connection.
            reason = "not_read"
            with suppress(asyncio.CancelledError):
                await asyncio.wait(
                    {disconnect}, timeout=self._seconds_until(follower.user.expires_at)
                )
        finally:
            disconnect.cancel()
        log.info("inbox_stream_ended", token_id=follower.user.jti, reason=reason)

    async def _send_events(
        self, connection: StreamConnection, follower: Follower, wakeup: asyncio.Event
    ) -> str:
        """Send events until the stream ends; return the reason."""
        wakeup.set()
        polled_at = float("-inf")
        loop = asyncio.get_running_loop()
        while not connection.is_disconnected:
            if self._is_shutting_down:
                return "restart"
            if self._clock() >= follower.user.expires_at:
                return "token_expired"
            interval = self._timing.poll if self.listener.is_connected else self._timing.heartbeat
            is_poll = wakeup.is_set() or loop.time() - polled_at >= interval
            wakeup.clear()
            try:
                events = await self._next_events(follower, is_poll=is_poll)
            except PyMongoError as error:
                log.warning("inbox_stream_poll_failed", reason=type(error).__name__)
                events, polled_at = [], float("-inf")
                # With jitter: all streams fail at the same time.
                longest_wait = (1 + random.SystemRandom().random()) * self._timing.repeat_poll
            else:
                polled_at = loop.time() if is_poll else polled_at
                longest_wait = self._timing.heartbeat
            if events is None:
                return "token_revoked"
            # One by one: each is written once the client has read the previous one.
            for event in events or [HEARTBEAT]:
                await connection.write(event)
            await self._wait(wakeup, longest_wait, until=follower.user.expires_at)
        return "left"

    async def _next_events(self, follower: Follower, *, is_poll: bool) -> list[bytes] | None:
        """Poll, or only check the token. Return the events, or None if the token is invalid."""
        now = self._clock()
        if is_poll:
            return await self._run_blocking(partial(follower.poll, now))
        return [] if await self._run_blocking(partial(follower.is_token_valid, now)) else None

    async def _wait(self, wakeup: asyncio.Event, seconds: float, *, until: datetime) -> None:
        """Wait for a wake-up, at most ``seconds``, and not beyond the token's expiry."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, self._seconds_until(until))):
                await wakeup.wait()

    def _seconds_until(self, moment: datetime) -> float:
        return max((moment - self._clock()).total_seconds(), 0.0)

    async def _run_blocking(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def _retry_event(self) -> bytes:
        """Return the event that begins a stream: the reconnection delay in milliseconds."""
        shortest, longest = (
            round(self._timing.retry_from * 1000),
            round(self._timing.retry_to * 1000),
        )
        return f"retry: {shortest + secrets.randbelow(longest - shortest + 1)}\n\n".encode()


def _token_user(connection: StreamConnection, *, now: datetime) -> InboxUser:
    """Return the token's user. Counts failures. Raises ApiError or PyMongoError."""
    failures = AuthenticationFailures.of(connection.meta)
    failures.raise_if_blocked()
    user = authenticate(connection.headers.get("Authorization", ""), now=now)
    if user is None:
        failures.count()
        raise UNAUTHENTICATED.error(headers={"WWW-Authenticate": INBOX_CHALLENGE})
    return user


async def _serve_other_path(connection: StreamConnection) -> None:
    if connection.path == "/healthz":
        await connection.start(200, {"Content-Type": "application/json"})
        await connection.write(b'{"status": "ok"}', is_last=True)
        return
    detail = f"This process serves only inbox streams. Use {settings.PUBLIC_URL}."
    await connection.send_problem(WRONG_ENDPOINT.error(detail))


def _last_event_id(headers: Mapping[str, str]) -> ObjectId | None:
    given = headers.get("Last-Event-ID")
    if not given:
        return None
    if not _EVENT_ID.fullmatch(given):
        raise INVALID_EVENT_ID.error()
    return ObjectId(given)
