"""Streams: an inbox followed by server-sent events. Plain ASGI, in a process of its own.

A stream is a connection that mostly waits. Here it costs a task; as a view of Django's it would
hold a thread, of the few that answer everything else. What blocks, which is MongoDB, is done by a
small pool of threads for all streams together.
"""

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import structlog
from bson import ObjectId
from django.conf import settings
from pymongo.errors import PyMongoError

from access.clients.authentication import INBOX_CHALLENGE
from access.clients.inbox_tokens import InboxUser
from domain.time import utc_now

from ...http.problems import ApiError, bad_request, to_api_error
from .. import cors
from ..views import STREAM_PATH
from . import follower as stream_follower
from .connection import Receive, Scope, Send, StreamConnection
from .follower import HEARTBEAT, Follower, authenticate
from .subscriptions import ConnectionLimiter, TooManyStreamsError, WakeupListener

log = structlog.get_logger(__name__)
T = TypeVar("T")
SHUTDOWN_TIMEOUT = 1.0
"""Seconds streams have to end in when the process does."""
THREADS = 8
"""Looks at MongoDB at once: one takes a few milliseconds."""
PATH = re.compile(re.escape(STREAM_PATH) + "/?")
_EVENT_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTiming:
    """How often a stream does what."""

    heartbeat: float = 15.0
    """Seconds between signs of life, and between questions whether the token still holds."""
    poll: float = 60.0
    """Seconds after which it looks without a hint; while none can come, each heartbeat does."""
    write_timeout: float = 20.0
    """Seconds in which a client that has stopped reading must begin again."""
    retry_from: float = 2.0
    retry_to: float = 6.0
    """Seconds after which a client comes again, so that not all come at once after a restart."""


class InboxStreamApp:
    """Answers streams, and whoever asks whether the process is alive."""

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
        """Answer a request, or begin and end with the server."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(
                StreamConnection.from_scope(scope, receive, send, self._timing.write_timeout)
            )
        else:
            await send({"type": "websocket.close"})

    async def stop(self) -> None:
        """End the streams in order, and let go of what they share."""
        self._is_shutting_down = True
        self.listener.wake_all()
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
            if not PATH.fullmatch(connection.path):
                await _serve_other_path(connection)
                return
            if cors.is_preflight(connection.method, connection.headers):
                await connection.start(204, {})
                await connection.write(b"", is_last=True)
                return
            try:
                if self._is_shutting_down:
                    raise _unavailable(
                        "restarting", "This process is about to end: ask again.", retry_after=2
                    )
                user = await self._authenticate(connection)
                follower = Follower(user=user, last_event_id=_last_event_id(connection.headers))
                with self._connections.acquire(follower.inbox.key):
                    await self._follow(connection, follower)
            except (ApiError, TooManyStreamsError, PyMongoError) as error:
                await connection.send_problem(_to_api_error(error))

    async def _authenticate(self, connection: StreamConnection) -> InboxUser:
        """Return who asks; raises ApiError, and PyMongoError."""
        if connection.method != "GET":
            detail = "This address does not take this method."
            raise ApiError(status=405, code="method_not_allowed", detail=detail)
        if connection.query:
            detail = "There are no parameters; the token belongs into the header Authorization."
            raise bad_request("unknown_parameter", detail)
        header = connection.headers.get("Authorization", "")
        user = await self._run_blocking(partial(authenticate, header, now=self._clock()))
        if user is None:
            raise ApiError(
                status=401,
                code="unauthenticated",
                detail="The inbox token is missing, or it is not a valid one.",
                headers={"WWW-Authenticate": INBOX_CHALLENGE},
            )
        return user

    async def _follow(self, connection: StreamConnection, follower: Follower) -> None:
        """Send events until the client is gone, its token over, or the process ends."""
        wakeup = asyncio.Event()
        disconnect = asyncio.create_task(connection.wait_for_disconnect(wakeup))
        try:
            with self.listener.subscribe(wakeup, on=(follower.inbox.key, follower.user.jti)):
                await connection.start(200, STREAM_HEADERS)
                await connection.write(stream_follower.retry_event(retry_after=self._retry_after()))
                reason = await self._send_until_end(connection, follower, wakeup)
            await connection.write(stream_follower.end_event(reason), is_last=True)
        except TimeoutError:
            # It keeps its place: the connection is there as long as the client wants it to be.
            reason = "not_read"
            with suppress(asyncio.CancelledError):
                await asyncio.wait(
                    {disconnect}, timeout=self._seconds_until(follower.user.expires_at)
                )
        finally:
            disconnect.cancel()
        log.info("inbox_stream_ended", token_id=follower.user.jti, reason=reason)

    async def _send_until_end(
        self, connection: StreamConnection, follower: Follower, wakeup: asyncio.Event
    ) -> str:
        """Send events; return why there are no more."""
        try:
            return await self._send_events(connection, follower, wakeup)
        except asyncio.CancelledError:
            # The server is about to end. This stream ends in order: its client comes again.
            return "restart"

    async def _send_events(
        self, connection: StreamConnection, follower: Follower, wakeup: asyncio.Event
    ) -> str:
        """Send events; return why there are no more."""
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
                log.warning("inbox_stream_waits", reason=type(error).__name__)
                events, polled_at = [], float("-inf")
            else:
                polled_at = loop.time() if is_poll else polled_at
            if events is None:
                return "token_revoked"
            # One after the other: none is written before the client has read the others.
            for event in events or [HEARTBEAT]:
                await connection.write(event)
            await self._wait(wakeup, follower.user.expires_at)
        return "left"

    async def _next_events(self, follower: Follower, *, is_poll: bool) -> list[bytes] | None:
        """Return what to send, which may be nothing; None if the token does not hold any more."""
        now = self._clock()
        if is_poll:
            return await self._run_blocking(partial(follower.poll, now))
        return [] if await self._run_blocking(partial(follower.is_token_valid, now)) else None

    async def _wait(self, wakeup: asyncio.Event, until: datetime) -> None:
        """Wait for a hint, for the next heartbeat, or for the token's end."""
        try:
            async with asyncio.timeout(min(self._timing.heartbeat, self._seconds_until(until))):
                await wakeup.wait()
        except TimeoutError:
            return

    def _seconds_until(self, moment: datetime) -> float:
        return max((moment - self._clock()).total_seconds(), 0.0)

    async def _run_blocking(self, function: Callable[[], T]) -> T:
        """Return what something that blocks returns."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def _retry_after(self) -> timedelta:
        span = round((self._timing.retry_to - self._timing.retry_from) * 1000)
        return timedelta(seconds=self._timing.retry_from, milliseconds=secrets.randbelow(span + 1))


STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    # nginx would collect events before it passes them on.
    "X-Accel-Buffering": "no",
}


async def _serve_other_path(connection: StreamConnection) -> None:
    if connection.path == "/healthz":
        await connection.start(200, {"Content-Type": "application/json"})
        await connection.write(b'{"status": "ok"}', is_last=True)
        return
    detail = f"This process answers streams only; the web is at {settings.PUBLIC_URL}."
    await connection.send_problem(ApiError(status=421, code="not_here", detail=detail))


def _last_event_id(headers: Mapping[str, str]) -> ObjectId | None:
    given = headers.get("Last-Event-ID")
    if not given:
        return None
    if not _EVENT_ID.fullmatch(given):
        raise bad_request("invalid_event_id", "Last-Event-ID is none of a notification's event.")
    return ObjectId(given)


def _to_api_error(error: ApiError | TooManyStreamsError | PyMongoError) -> ApiError:
    if not isinstance(error, TooManyStreamsError):
        return to_api_error(error)
    if error.is_process_full:
        return _unavailable("too_many_streams", "This process is full.", retry_after=30)
    return ApiError(
        status=429,
        code="rate_limited",
        detail="Too many streams are open for this person.",
        headers={"Retry-After": "30"},
    )


def _unavailable(code: str, detail: str, *, retry_after: int) -> ApiError:
    headers = {"Retry-After": str(retry_after)}
    return ApiError(status=503, code=code, detail=detail, headers=headers)
