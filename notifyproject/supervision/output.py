"""Where the output of programs goes: into one labelled log, or where that of their parent goes.

No thread reads it, because a process with threads can't fork.
"""

import itertools
import os
import re
import select
import selectors
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog

log = structlog.get_logger(__name__)
COLOURS = (36, 32, 33, 35, 34, 96, 92)
OWN_COLOUR = 37
OWN_LABEL = "stack"
LABEL_WIDTH = 8
LOG_LINES = 10
MAX_LOG_LINE = 500
READ_BYTES = 64 * 1024
MAX_UNWRITTEN = 256 * 1024
"""Bytes that wait for a slow reader of the log. With more, the programs wait, too."""
LAST_SECONDS = 1.0
"""Longest wait for the last lines of a program, or for the log's reader at the end."""
_STDOUT = 1
_ANSI = re.compile(rb"\x1b\[[0-9;]*m")


class Output(Protocol):
    """The output of a supervisor and of its programs."""

    def open(self, name: str) -> AbstractContextManager[int | None]:
        """Yield the descriptor of a program's output, or None for that of its parent."""

    def pump(self, seconds: float) -> None:
        """Write what programs have written, and wait for more."""

    def last_lines(self, name: str) -> list[str]:
        """Return the last lines of a program that has ended."""

    def report_end(self, name: str, *, reason: str, seconds: float) -> None:
        """Report that a program has ended, and starts again in ``seconds``."""

    def close(self) -> None:
        """Write the rest."""

    def release(self) -> None:
        """Close what a child of this process doesn't need."""


@dataclass(kw_only=True)
class _Source:
    name: str
    label: bytes
    unread: bytearray = field(default_factory=bytearray)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    is_open: bool = True


class LabelledLog:
    """Standard output, where each line begins with the name of its program."""

    def __init__(self, *, is_coloured: bool) -> None:
        self._is_coloured = is_coloured
        self._selector = selectors.DefaultSelector()
        self._sources: dict[str, _Source] = {}
        self._colours = itertools.cycle(COLOURS)
        self._unwritten = bytearray()
        self._has_reader = True

    @contextmanager
    def open(self, name: str) -> Iterator[int]:
        """Yield the writing end of a new pipe."""
        before = self._sources.get(name)
        label = before.label if before else self._label(name, next(self._colours))
        source = self._sources[name] = _Source(name=name, label=label)
        reading, writing = os.pipe()
        self._selector.register(reading, selectors.EVENT_READ, source)
        try:
            yield writing
        finally:
            os.close(writing)

    def pump(self, seconds: float) -> None:
        """Write what programs have written, and wait for more.

        Nothing is written that the reader doesn't take now: a paused terminal must not keep this
        process from its signals. Raises OSError once, if the reader is gone.
        """
        if self._unwritten:
            select.select([], [_STDOUT], [], seconds)
            self._write()
        if len(self._unwritten) > MAX_UNWRITTEN:
            return
        for key, _ in self._selector.select(seconds):
            self._read(key.fd, key.data)
        self._write()

    def last_lines(self, name: str) -> list[str]:
        """Return the last lines of a program that has ended."""
        source = self._sources[name]
        deadline = time.monotonic() + LAST_SECONDS
        while source.is_open and time.monotonic() < deadline:
            self.pump(0.05)
        return list(source.lines)

    def report_end(self, name: str, *, reason: str, seconds: float) -> None:
        """Print that a program has ended, and starts again in ``seconds``."""
        self.print_lines(f"{name} ended ({reason}); it starts again in {seconds:.0f} s")

    def print_lines(self, text: str) -> None:
        """Print lines of the stack itself."""
        label = self._label(OWN_LABEL, OWN_COLOUR)
        for line in text.splitlines() or [""]:
            self._unwritten += label + line.encode() + b"\n"
        self._write()

    def close(self) -> None:
        """Write the rest, if somebody reads it."""
        deadline = time.monotonic() + LAST_SECONDS
        while (
            self._unwritten or any(source.is_open for source in self._sources.values())
        ) and time.monotonic() < deadline:
            self.pump(0.05)

    def release(self) -> None:
        """Close what a child of this process doesn't need."""
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()

    def _label(self, name: str, colour: int) -> bytes:
        label = f"{name:<{LABEL_WIDTH}} |"
        return (f"\x1b[{colour}m{label}\x1b[0m " if self._is_coloured else f"{label} ").encode()

    def _read(self, descriptor: int, source: _Source) -> None:
        data = os.read(descriptor, READ_BYTES)
        if not data:
            self._selector.unregister(descriptor)
            os.close(descriptor)
            source.is_open = False
        *lines, rest = (source.unread + data).split(b"\n")
        if rest and (not data or len(rest) > READ_BYTES):
            lines.append(rest)
            rest = bytearray()
        source.unread = rest
        for line in lines:
            plain = _ANSI.sub(b"", line)
            source.lines.append(plain.decode(errors="replace")[:MAX_LOG_LINE])
            self._unwritten += source.label + (line if self._is_coloured else plain) + b"\n"

    def _write(self) -> None:
        if not self._has_reader:
            self._unwritten.clear()
        # A pipe or terminal that takes anything takes this much without waiting.
        while self._unwritten and select.select([], [_STDOUT], [], 0)[1]:
            try:
                written = os.write(_STDOUT, self._unwritten[: select.PIPE_BUF])
            except OSError:
                self._has_reader = False
                raise
            del self._unwritten[:written]


class InheritedOutput:
    """The output of the parent, to which each program writes by itself."""

    @contextmanager
    def open(self, name: str) -> Iterator[None]:
        """Yield None."""
        yield

    def pump(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def last_lines(self, name: str) -> list[str]:
        """Return nothing: the lines are in the log."""
        return []

    def report_end(self, name: str, *, reason: str, seconds: float) -> None:
        """Log that a program has ended, and starts again in ``seconds``."""
        log.error("program_ended", program=name, reason=reason, restart_seconds=seconds)

    def close(self) -> None:
        """Do nothing."""

    release = close
