"""What a file with rows is, its limits, and why one isn't read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_BYTES = 20 * 1024 * 1024
MAX_ROWS = 100_000  # Without the header and blank rows
MAX_COLUMNS = 60
MAX_CELL = 32_767  # Characters: Excel's own limit


class TableFormat(StrEnum):
    """What a file is."""

    CSV = "csv"  # Text, whatever separates its cells
    XLSX = "xlsx"


class RowFault(StrEnum):
    """Why the cells of a row can't be trusted."""

    TOO_MANY_CELLS = "too_many_cells"  # More than the header has
    ROUNDED_NUMBER = "rounded_number"  # Of over 15 digits, which spreadsheets don't keep
    CELL_ERROR = "cell_error"  # Such as #N/A


class UnreadableTableError(Exception):
    """A file that isn't read, with a code and a sentence for the person who made it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Row:
    """One row below the header, with as many cells as the header has."""

    number: int
    """As a spreadsheet shows it: the first row of a file is 1."""
    cells: tuple[str, ...]
    fault: RowFault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A file whose header is read, and whose rows are read one by one."""

    format: TableFormat
    encoding: str | None = None
    separator: str | None = None
    sheet: str | None = None
    header: tuple[str, ...]
    rows: Iterator[Row]
    """Raises UnreadableTableError where the file can't be read further."""


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With which a formula begins."""
_ESCAPED = re.compile(r"\A'(?=[=+\-@\t\r])")
RawRow = tuple[int, Sequence[str], RowFault | None]
"""A row as a format has it: its number, its cells, and what is wrong with one of them."""


def split_header(raw: Iterable[RawRow]) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Return the header, which is the first row that isn't blank, and the rows below it."""
    rows = _checked(raw)
    for number, cells, _ in rows:
        header = _without_blank_end(cells)
        if not header:
            continue
        if len(header) > MAX_COLUMNS:
            raise UnreadableTableError(
                "too_many_columns",
                f"The header in row {number} has {len(header):,} columns, of at most "
                f"{MAX_COLUMNS}.",
            )
        return header, _below(rows, width=len(header))
    raise UnreadableTableError("empty", "The file is empty.")


def _checked(raw: Iterable[RawRow]) -> Iterator[tuple[int, list[str], RowFault | None]]:
    for number, cells, fault in raw:
        if any(len(cell) > MAX_CELL for cell in cells):
            raise UnreadableTableError(
                "cell_too_long",
                f"A cell of row {number:,} has over {MAX_CELL:,} characters. Perhaps a quotation "
                "mark opens there and never closes.",
            )
        yield number, [_plain(cell) for cell in cells], fault


def _plain(cell: str) -> str:
    return _ESCAPED.sub("", cell.strip().replace("\r\n", "\n"))


def escape_formula(cell: str) -> str:
    """Return a cell that a spreadsheet doesn't take for a formula. Read again, it is as before."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def _below(rows: Iterator[tuple[int, list[str], RowFault | None]], *, width: int) -> Iterator[Row]:
    count = 0
    for number, cells, fault in rows:
        found = _without_blank_end(cells)
        if not found:
            continue
        count += 1
        if count > MAX_ROWS:
            raise UnreadableTableError(
                "too_many_rows", f"The file has over {MAX_ROWS:,} rows. Split it."
            )
        own_fault = RowFault.TOO_MANY_CELLS if len(found) > width else fault
        yield Row(number, (*found[:width], *("",) * (width - len(found))), own_fault)


def _without_blank_end(cells: Sequence[str]) -> tuple[str, ...]:
    end = len(cells)
    while end and not cells[end - 1]:
        end -= 1
    return tuple(cells[:end])
