"""A client of inbox streams that speaks ASGI with the application in a thread."""

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from api.inbox.stream.app import InboxStreamApp, StreamTiming
from domain.time import utc_now
from tests.support.waiting import LIMIT, until

REFUSED = {"errorCode": 13}
"""MongoDB's driver doesn't retry this error."""
NEVER = 3_600.0
"""Longer than any test."""
QUICK = StreamTiming(heartbeat=0.05, poll=NEVER, write_timeout=0.1)
BY_WAKEUP = StreamTiming(heartbeat=NEVER, poll=NEVER)
"""Polls only after a wake-up."""


@dataclass(frozen=True)
class Event:
    name: str
    data: Any
    id: str | None = None


@dataclass
class SSEClient:
    """An open stream."""

    is_reading: bool = True
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    refused: int = 0
    """The number of writes that the client left unread."""
    _unread: bytes = b""
    _chunks: queue.Queue[bytes | None] = field(default_factory=queue.Queue)
    _gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {n.decode(): v.decode() for n, v in message["headers"]}
            return
        if not self.is_reading:
            self.refused += 1
            await asyncio.sleep(NEVER)
        self.body += message["body"]
        self._chunks.put(message["body"])
        if not message.get("more_body"):
            self._chunks.put(None)

    def leave(self) -> None:
        self._gone.set()

    def event(self) -> Event | None:
        """Return the next event, or None at the end of the stream."""
        while True:
            while b"\n\n" not in self._unread:
                chunk = self._chunks.get(timeout=LIMIT)
                if chunk is None:
                    return None
                self._unread += chunk
            first, _, self._unread = self._unread.partition(b"\n\n")
            if first.startswith((b"event:", b"id:")):
                return _parsed(first.decode())

    def events(self, count: int) -> list[Event]:
        found = [self.event() for _ in range(count)]
        assert None not in found
        return [event for event in found if event is not None]

    def problem(self) -> dict[str, Any]:
        until(lambda: bool(self.body))
        problem: dict[str, Any] = json.loads(self.body)
        return problem


def _parsed(text: str) -> Event:
    fields = dict(line.split(": ", 1) for line in text.split("\n"))
    return Event(fields["event"], json.loads(fields["data"]), fields.get("id"))


@dataclass
class Process:
    streams: InboxStreamApp
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(LIMIT)

    @contextmanager
    def open(
        self,
        token: str,
        *,
        method: str = "GET",
        path: str = "/api/v1/inbox/stream",
        query: bytes = b"",
        is_reading: bool = True,
        **headers: str,
    ) -> Iterator[SSEClient]:
        listener = SSEClient(is_reading=is_reading)
        given = {"authorization": f"Bearer {token}", **headers} if token else headers
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query,
            "client": ("203.0.113.7", 50_000),
            "headers": [
                (n.replace("_", "-").encode(), v.encode("latin-1")) for n, v in given.items()
            ],
        }
        answer = asyncio.run_coroutine_threadsafe(
            self.streams(scope, listener.receive, listener.send), self.loop
        )
        until(lambda: listener.status > 0)
        try:
            yield listener
        finally:
            self.loop.call_soon_threadsafe(listener.leave)
            answer.result(LIMIT)

    def connected(self) -> None:
        """Wait until the process is subscribed to wake-ups in Valkey."""
        until(lambda: self.streams.listener.is_connected)


@contextmanager
def process(
    *, timing: StreamTiming = QUICK, clock: Callable[[], datetime] = utc_now
) -> Iterator[Process]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    process = Process(InboxStreamApp(clock=clock, timing=timing), loop)
    try:
        yield process
    finally:
        process.run(process.streams.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LIMIT)
        loop.close()
