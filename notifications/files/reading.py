"""Opens an upload as a table. A workbook is parsed by a process of its own, within limits."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

import msgspec

from domain.tables.reading import is_workbook, read_table
from domain.tables.table import Row, RowFault, Table, TableFormat, UnreadableTableError
from notifyproject.supervision.forking import describe_exit

from . import workbook_parser
from .workbook_parser import Alive, End, Header, Message, Refusal, Rows

MAX_CPU_SECONDS = 180
MAX_MEMORY_BYTES = 256 * 1024 * 1024
"""What the process may use on top of its size at startup."""
LOCK = f"notifyproject-workbook-{os.getuid()}.lock"
"""A temporary file. Whoever has locked it parses a workbook: one at a time on a machine or in a
container, whose memory would otherwise have to be enough for one in each thread."""
PROGRAM = ("-m", workbook_parser.__name__)
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
"""That of the process, without the worker's secrets."""
_FOLDER = Path(__file__).parents[2]
_OF_THE_WORKBOOK = frozenset(
    {
        -signal.SIGXCPU,
        -signal.SIGSEGV,
        -signal.SIGABRT,
        -signal.SIGBUS,
        -signal.SIGFPE,
        -signal.SIGILL,
    }
)
"""Ends of the process that another attempt would have, too."""


class ParserLostError(Exception):
    """The process that parses a workbook ended by what may not occur again, such as a kill."""


class ParserBusyError(Exception):
    """Another workbook is parsed on this machine."""


@contextmanager
def open_table(content: bytes, *, while_waiting: Callable[[], None]) -> Iterator[Table]:
    """Yield the table in a file. ``while_waiting`` is called about every ten seconds without rows.

    Raises UnreadableTableError and ParserLostError, as do the table's rows, and ParserBusyError.
    """
    if not is_workbook(content):
        yield read_table(content)
        return
    with _only_parser():
        yield from _parse(content, while_waiting)


@contextmanager
def _only_parser() -> Iterator[None]:
    """Be the only one on this machine that parses a workbook. Raises ParserBusyError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(Path(tempfile.gettempdir()) / LOCK, flags, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ParserBusyError from None
        yield
    finally:
        # The kernel does so, too, when the worker ends.
        os.close(lock)


def _parse(content: bytes, while_waiting: Callable[[], None]) -> Iterator[Table]:
    """Yield the table in a workbook, and end its parser after that."""
    limits = [str(MAX_CPU_SECONDS), str(MAX_MEMORY_BYTES)]
    with subprocess.Popen(
        [sys.executable, *PROGRAM, *limits],
        cwd=_FOLDER,
        env=_ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A traceback may have a value of a cell.
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for the worker, which ends the process when it ends.
        start_new_session=True,
    ) as process:
        source, output = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        try:
            with suppress(BrokenPipeError):  # What the process said before says why.
                source.write(b"%d\n" % len(content))
                source.write(content)
                source.flush()
            yield _table(_messages(process, output, while_waiting))
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                source.close()


def _table(messages: Iterator[Header | Rows]) -> Table:
    header = next(messages)
    if not isinstance(header, Header):
        raise TypeError("the first message isn't the header")
    return Table(
        format=TableFormat.XLSX, sheet=header.sheet, header=header.cells, rows=_rows(messages)
    )


def _rows(messages: Iterator[Header | Rows]) -> Iterator[Row]:
    for message in messages:
        if isinstance(message, Rows):
            for number, cells, fault in message.rows:
                yield Row(number, tuple(cells), RowFault(fault) if fault else None)


def _messages(
    process: subprocess.Popen[bytes], output: IO[bytes], while_waiting: Callable[[], None]
) -> Iterator[Header | Rows]:
    for line in output:
        if not line.endswith(b"\n"):
            break
        match msgspec.json.decode(line, type=Message):
            case Alive():
                while_waiting()
            case Refusal(code=code, detail=detail):
                raise UnreadableTableError(code, detail)
            case End():
                return
            case message:
                yield message
    status = process.wait()
    if status in _OF_THE_WORKBOOK:
        raise UnreadableTableError(
            "too_complex", "The workbook takes too long to read. Save the sheet as CSV."
        )
    raise ParserLostError(describe_exit(status))
