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
from .follower import HEARTBEAT, Follower, authenticated
from .subscriptions import ConnectionLimiter, TooManyStreamsError, WakeupListener

log = structlog.get_logger(__name__)
T = TypeVar("T")
ENDING = 1.0
"""Seconds streams have to end in when the process does."""
THREADS = 8
"""Looks at MongoDB at once: one takes a few milliseconds."""
PATH = re.compile(re.escape(STREAM_PATH) + "/?")
_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTiming:
    """How often a stream does what."""

    heartbeat: float = 15.0
    """Seconds between signs of life, and between questions whether the token still holds."""
    look: float = 60.0
    """Seconds after which it looks without a hint; while none can come, each heartbeat does."""
    write: float = 20.0
    """Seconds in which a client that has stopped reading must begin again."""
    retry_from: float = 2.0
    retry_to: float = 6.0
    """Seconds after which a client comes again, so that not all come at once after a restart."""


class InboxStreamApp:
    """Answers streams, and whoever asks whether the process is alive."""

    def __init__(
        self, *, clock: Callable[[], datetime] = utc_now, pace: StreamTiming | None = None
    ) -> None:
        self._clock = clock
        self._pace = pace or StreamTiming()
        self._is_ending = False
        self.hub = WakeupListener()
        self._places = ConnectionLimiter(most=settings.INBOX_STREAMS)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="inbox")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or begin and end with the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(StreamConnection.of(scope, receive, send, self._pace.write))
        else:
            await send({"type": "websocket.close"})

    async def stop(self) -> None:
        """End the streams in order, and let go of what they share."""
        self._is_ending = True
        self.hub.wake_all()
        deadline = asyncio.get_running_loop().time() + ENDING
        while len(self._places) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        await self.hub.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            event = (await receive())["type"]
            if event == "lifespan.shutdown":
                await self.stop()
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    async def _answer(self, exchange: StreamConnection) -> None:
        with structlog.contextvars.bound_contextvars(request_id=exchange.request_id):
            if not PATH.fullmatch(exchange.path):
                await _answer_otherwise(exchange)
                return
            if cors.is_preflight(exchange.method, exchange.headers):
                await exchange.start(204, {})
                await exchange.write(b"", is_last=True)
                return
            try:
                if self._is_ending:
                    raise _not_now("restarting", "This process is about to end: ask again.", wait=2)
                user = await self._user(exchange)
                follower = Follower(user=user, last_id=_last_id(exchange.headers))
                with self._places.take(follower.inbox.key):
                    await self._follow(exchange, follower)
            except (ApiError, TooManyStreamsError, PyMongoError) as error:
                await exchange.refuse(_problem(error))

    async def _user(self, exchange: StreamConnection) -> InboxUser:
        """Return who asks; raises Problem, and PyMongoError."""
        if exchange.method != "GET":
            detail = "This address does not take this method."
            raise ApiError(status=405, code="method_not_allowed", detail=detail)
        if exchange.query:
            detail = "There are no parameters; the token belongs into the header Authorization."
            raise bad_request("unknown_parameter", detail)
        header = exchange.headers.get("Authorization", "")
        user = await self._aside(partial(authenticated, header, now=self._clock()))
        if user is None:
            raise ApiError(
                status=401,
                code="unauthenticated",
                detail="The inbox token is missing, or it is not a valid one.",
                headers={"WWW-Authenticate": INBOX_CHALLENGE},
            )
        return user

    async def _follow(self, exchange: StreamConnection, follower: Follower) -> None:
        """Send events until the client is gone, its token over, or the process ends."""
        bell = asyncio.Event()
        leaving = asyncio.create_task(exchange.until_left(bell))
        try:
            with self.hub.wakes(bell, on=(follower.inbox.key, follower.user.jti)):
                await exchange.start(200, STREAM_HEADERS)
                await exchange.write(stream_follower.beginning(retry_after=self._retry_after()))
                reason = await self._until_over(exchange, follower, bell)
            await exchange.write(stream_follower.end(reason), is_last=True)
        except TimeoutError:
            # It keeps its place: the connection is there as long as the client wants it to be.
            reason = "not_read"
            with suppress(asyncio.CancelledError):
                await asyncio.wait({leaving}, timeout=self._seconds_until(follower.user.expires_at))
        finally:
            leaving.cancel()
        log.info("inbox_stream_ended", token_id=follower.user.jti, reason=reason)

    async def _until_over(
        self, exchange: StreamConnection, follower: Follower, bell: asyncio.Event
    ) -> str:
        """Send events; return why there are no more."""
        try:
            return await self._send_events(exchange, follower, bell)
        except asyncio.CancelledError:
            # The server is about to end. This stream ends in order: its client comes again.
            return "restart"

    async def _send_events(
        self, exchange: StreamConnection, follower: Follower, bell: asyncio.Event
    ) -> str:
        """Send events; return why there are no more."""
        bell.set()
        looked_at = float("-inf")
        loop = asyncio.get_running_loop()
        while not exchange.is_left:
            if self._is_ending:
                return "restart"
            if self._clock() >= follower.user.expires_at:
                return "token_expired"
            pause = self._pace.look if self.hub.is_connected else self._pace.heartbeat
            is_look = bell.is_set() or loop.time() - looked_at >= pause
            bell.clear()
            try:
                events = await self._events(follower, is_look=is_look)
            except PyMongoError as error:
                log.warning("inbox_stream_waits", reason=type(error).__name__)
                events, looked_at = [], float("-inf")
            else:
                looked_at = loop.time() if is_look else looked_at
            if events is None:
                return "token_revoked"
            # One after the other: none is written before the client has read the others.
            for event in events or [HEARTBEAT]:
                await exchange.write(event)
            await self._rest(bell, follower.user.expires_at)
        return "left"

    async def _events(self, follower: Follower, *, is_look: bool) -> list[bytes] | None:
        """Return what to send, which may be nothing; None if the token does not hold any more."""
        now = self._clock()
        if is_look:
            return await self._aside(partial(follower.look, now))
        return [] if await self._aside(partial(follower.holds, now)) else None

    async def _rest(self, bell: asyncio.Event, until: datetime) -> None:
        """Wait for a hint, for the next heartbeat, or for the token's end."""
        try:
            async with asyncio.timeout(min(self._pace.heartbeat, self._seconds_until(until))):
                await bell.wait()
        except TimeoutError:
            return

    def _seconds_until(self, moment: datetime) -> float:
        return max((moment - self._clock()).total_seconds(), 0.0)

    async def _aside(self, work: Callable[[], T]) -> T:
        """Return what something that blocks returns."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _retry_after(self) -> timedelta:
        span = round((self._pace.retry_to - self._pace.retry_from) * 1000)
        return timedelta(seconds=self._pace.retry_from, milliseconds=secrets.randbelow(span + 1))


STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    # nginx would collect events before it passes them on.
    "X-Accel-Buffering": "no",
}


async def _answer_otherwise(exchange: StreamConnection) -> None:
    if exchange.path == "/healthz":
        await exchange.start(200, {"Content-Type": "application/json"})
        await exchange.write(b'{"status": "ok"}', is_last=True)
        return
    detail = f"This process answers streams only; the web is at {settings.PUBLIC_URL}."
    await exchange.refuse(ApiError(status=421, code="not_here", detail=detail))


def _last_id(headers: Mapping[str, str]) -> ObjectId | None:
    given = headers.get("Last-Event-ID")
    if not given:
        return None
    if not _ID.fullmatch(given):
        raise bad_request("invalid_event_id", "Last-Event-ID is none of a notification's event.")
    return ObjectId(given)


def _problem(error: ApiError | TooManyStreamsError | PyMongoError) -> ApiError:
    if not isinstance(error, TooManyStreamsError):
        return to_api_error(error)
    if error.is_crowded:
        return _not_now("too_many_streams", "This process is full.", wait=30)
    return ApiError(
        status=429,
        code="rate_limited",
        detail="Too many streams are open for this person.",
        headers={"Retry-After": "30"},
    )


def _not_now(code: str, detail: str, *, wait: int) -> ApiError:
    headers = {"Retry-After": str(wait)}
    return ApiError(status=503, code=code, detail=detail, headers=headers)
