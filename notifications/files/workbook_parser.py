"""Parses a workbook as a program of its own, with limits of its time and memory.

A workbook of a few kilobytes can keep a parser busy for minutes. In a worker, it would take turns
with the codes that the worker sends.

The program reads the file after a line with its length, and writes messages as lines of JSON. Its
input stays open until the worker ends, however that ends, and then the program ends too.
"""

import os
import resource
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from domain.tables.reading import read_table
from domain.tables.table import UnreadableTableError
from domain.tables.workbooks import too_large

NICENESS = 10
FIRST_TO_END = "1000"
ALIVE_SECONDS = 10.0
DEADLINE_SECONDS = 900
"""For a parser that gets no time on its machine, which is no fault of the workbook."""
ROWS_IN_MESSAGE = 100
CHARACTERS_IN_MESSAGE = 1_000_000


class Header(msgspec.Struct, frozen=True, tag="header"):
    """The first message about a workbook that is read."""

    sheet: str | None
    cells: tuple[str, ...]


class Rows(msgspec.Struct, frozen=True, tag="rows"):
    """The next rows: of each its number, its cells, and its fault."""

    rows: list[tuple[int, Sequence[str], str | None]]


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """Says that the program works, while it has no row."""


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """The last message about a workbook that can't be read."""

    code: str
    detail: str


class End(msgspec.Struct, frozen=True, tag="end"):
    """The last message about a workbook that is read."""


Message = Header | Rows | Alive | Refusal | End


class _Output:
    """The messages to the worker, from two threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Write a message."""
        with self._lock:
            sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
            sys.stdout.buffer.flush()

    def watch(self) -> None:
        """Say that the program works, and end it with the worker."""
        while not select.select([sys.stdin], [], [], ALIVE_SECONDS)[0]:
            self.send(Alive())
        os._exit(1)


def main(*, cpu_seconds: int, memory_bytes: int) -> None:
    """Parse the workbook in the input."""
    signal.alarm(DEADLINE_SECONDS)
    os.nice(NICENESS)
    with suppress(OSError):
        # Without memory, the kernel ends this program, and not the worker.
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_END)
    source = sys.stdin.buffer
    content = source.read(int(source.readline()))
    output = _Output()
    threading.Thread(target=output.watch, daemon=True).start()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    max_bytes = pages * resource.getpagesize() + memory_bytes
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
    # At the first limit, the signal says why. At the second one, it would be that of any kill.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    try:
        for message in _messages(content):
            output.send(message)
    except UnreadableTableError as refused:
        output.send(Refusal(refused.code, refused.detail))
    except MemoryError:
        refusal = too_large()
        output.send(Refusal(refusal.code, refusal.detail))


def _messages(content: bytes) -> Iterator[Message]:
    table = read_table(content)
    yield Header(table.sheet, table.header)
    rows: list[tuple[int, Sequence[str], str | None]] = []
    size = 0
    for row in table.rows:
        rows.append((row.number, row.cells, row.fault))
        size += sum(map(len, row.cells))
        if len(rows) == ROWS_IN_MESSAGE or size > CHARACTERS_IN_MESSAGE:
            yield Rows(rows)
            rows, size = [], 0
    yield Rows(rows)
    yield End()


if __name__ == "__main__":
    main(cpu_seconds=int(sys.argv[1]), memory_bytes=int(sys.argv[2]))
