"""Clients of inbox streams: one asyncio process that reconnects as browsers do.

``python -m bench.chaos.stream_clients HOST PORT TOKENS LOG`` opens a stream for each line of
TOKENS, and logs each opening, end, and event.
"""

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from bson import ObjectId

STREAM_PATH = "/api/v1/inbox/stream"
SUBJECT = re.compile(rb'"subject":"sent (\d+) (\d+)"')
RETRY = re.compile(rb"retry: (\d+)\n")
EVENT_ID = re.compile(rb"\nid: ([0-9a-f]{24})\n|^id: ([0-9a-f]{24})\n")
CONNECTING = 200
"""Connections that are opened at once."""
FLUSH_SECONDS = 0.25
DEFAULT_RETRY = 2.0


def subject(number: int, *, at: float) -> str:
    """Return the subject of an event's notification, which tells when it was sent."""
    return f"sent {number} {round(at * 1000)}"


@dataclass(slots=True)
class StreamLog:
    """What the clients logged."""

    open_count: int = 0
    """Streams that are open now."""
    opened: list[float] = field(default_factory=list)
    """Unix times of all openings."""
    received: set[int] = field(default_factory=set)
    """Numbers of the events received."""


def read_log(lines: Iterable[str]) -> StreamLog:
    """Return what the log's lines say."""
    log = StreamLog()
    for kind, at, *rest in map(str.split, lines):
        if kind == "open":
            log.open_count += 1
            log.opened.append(float(at))
        elif kind == "end":
            log.open_count -= 1
        elif kind == "event":
            # After a reconnection, a stream repeats its last events.
            log.received.add(int(rest[0]))
    return log


def user(number: int) -> str:
    """Return the ID of a recipient with a stream."""
    return f"reader-{number}"


def issue_tokens(count: int, *, client_id: ObjectId) -> Iterator[str]:
    """Yield an inbox token for each of ``count`` recipients."""
    # After Django's setup
    from access.clients import inbox_tokens

    now = datetime.now(UTC)
    for number in range(count):
        yield inbox_tokens.issue(client_id=client_id, user_id=user(number), now=now).text


def read_file(path: Path) -> StreamLog:
    """Return what the whole lines of a log file say."""
    with path.open() as lines:
        return read_log(line for line in lines if line.endswith("\n"))


class _Client:
    """One stream, opened again whenever it ends."""

    def __init__(self, host: str, port: int, token: str, log: TextIO) -> None:
        self._host, self._port, self._token, self._log = host, port, token, log
        self._retry = DEFAULT_RETRY
        self._last_id = b""
        self._partial = b""

    async def run(self, connecting: asyncio.Semaphore) -> None:
        """Read the stream forever."""
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._read(connecting)
            await asyncio.sleep(self._retry)

    async def _read(self, connecting: asyncio.Semaphore) -> None:
        async with connecting:
            reader, writer = await asyncio.open_connection(self._host, self._port)
            last = b"Last-Event-ID: %b\r\n" % self._last_id if self._last_id else b""
            head = f"GET {STREAM_PATH} HTTP/1.1\r\nHost: {self._host}\r\n"
            authorization = f"Authorization: Bearer {self._token}\r\n"
            writer.write((head + authorization).encode() + last + b"\r\n")
            try:
                answer = await reader.readuntil(b"\r\n\r\n")
            except BaseException:
                writer.close()
                raise
        is_open = answer.startswith(b"HTTP/1.1 200")
        self._write("open" if is_open else "refused", "" if is_open else answer[9:12].decode())
        self._partial = b""
        try:
            while is_open and (data := await reader.read(65_536)):
                self._receive(data)
        finally:
            writer.close()
            if is_open:
                self._write("end")

    def _receive(self, data: bytes) -> None:
        # A proxy may pass an event on in pieces.
        events, end, self._partial = (self._partial + data).rpartition(b"\n\n")
        data = events + end
        if found := RETRY.search(data):
            self._retry = int(found[1]) / 1000
        for match in EVENT_ID.finditer(data):
            self._last_id = match[1] or match[2]
        for match in SUBJECT.finditer(data):
            self._write("event", f"{match[1].decode()} {match[2].decode()}")

    def _write(self, kind: str, rest: str = "") -> None:
        self._log.write(f"{kind} {time.time():.3f} {rest}\n")


async def _run(host: str, port: int, tokens: Iterable[str], log: TextIO) -> None:
    connecting = asyncio.Semaphore(CONNECTING)
    async with asyncio.TaskGroup() as tasks:
        for token in tokens:
            tasks.create_task(_Client(host, port, token, log).run(connecting))
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            log.flush()


if __name__ == "__main__":
    with Path(sys.argv[4]).open("w") as file, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(
            _run(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).read_text().split(), file)
        )
