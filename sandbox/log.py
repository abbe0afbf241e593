"""The durable log, one JSON object per line: a request is on disk before its answer."""

import asyncio
import fcntl
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

REQUESTS_FILE = "requests.jsonl"
EVENTS_FILE = "events.jsonl"
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One request to a provider, and its outcome."""

    id: int
    time: datetime
    provider: str
    method: str
    path: str
    status: int | Literal["stalled", "reset"]
    """The HTTP status of the answer, if there was one."""
    outcome: str
    accepted: bool
    """Whether the provider accepted the message, even without an answer."""
    reason: str | None
    title: str | None
    references: tuple[str, ...]
    recipients: tuple[str, ...]
    message_id: str | None
    headers: Mapping[str, str]
    """Names in lower case, without credentials."""
    body: msgspec.Raw
    """The JSON body as sent; ``null`` for other bodies."""
    text: str | None
    is_message: bool = True

    def json(self) -> Any:
        """Return the decoded JSON body."""
        return msgspec.json.decode(self.body)


class CorruptLogError(ValueError):
    """A line in the middle of a log is unreadable. The message names it."""


class LogInUseError(RuntimeError):
    """Another sandbox writes this log."""


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a log, oldest first. Raises CorruptLogError.

    Skips an incomplete last line, whose request was not answered.
    """
    decoder = msgspec.json.Decoder(Record)
    for number, line in enumerate(_complete_lines(path), start=1):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise CorruptLogError(f"{path}, line {number}: {error}") from error


def read_last_lines(path: Path, count: int) -> list[bytes]:
    """Return the last lines of a log, oldest first; empty if there is no log."""
    return list(deque(_complete_lines(path), maxlen=count)) if path.exists() else []


class Journal:
    """The writer of a log, with an exclusive lock. Concurrent lines share one fsync."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._durable = durable
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise LogInUseError(f"Another sandbox runs on {path.parent}.") from error
        self._size = _truncate_partial_line(self._fd)
        self._pending: list[tuple[bytes, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=path.stem)

    def append(self, line: bytes) -> asyncio.Future[None]:
        """Add a line; the future completes when the line is on disk, or raises OSError."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._pending.append((line, done))
        if self._task is None:
            self._task = loop.create_task(self._write_pending())
        return done

    async def close(self) -> None:
        """Write all pending lines and close the file."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()
        os.close(self._fd)

    async def _write_pending(self) -> None:
        """Write until nothing is pending: lines that arrive during a write are written together."""
        loop = asyncio.get_running_loop()
        while self._pending:
            batch, self._pending = self._pending, []
            data = b"".join(line + b"\n" for line, _ in batch)
            failure = None
            try:
                await loop.run_in_executor(self._thread, self._write, data)
            except OSError as error:
                failure = error
            for done in (done for _, done in batch if not done.done()):
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)
        self._task = None

    def _write(self, data: bytes) -> None:
        """Append the data; after an error, truncate the log to its previous size."""
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            if self._durable:
                os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)


def _complete_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def _truncate_partial_line(fd: int) -> int:
    size = end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - CHUNK)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)
    return end
