"""XLSX: the first visible sheet of a workbook, row by row.

openpyxl reads it (decision 76). What a workbook may unpack to is checked before: a file of a few
kilobytes can hold gigabytes. How long that takes and what memory it needs is limited by a process
of its own, so no service process calls this.
"""

import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from .table import (
    MAX_COLUMNS,
    RawRow,
    RowFault,
    Table,
    TableFormat,
    UnreadableTableError,
    split_header,
)

MAX_PARTS = 1_000
MAX_UNPACKED = 300 * 1024 * 1024
MAX_STRINGS = 40 * 1024 * 1024
"""Bytes of the texts that cells share, which are held in memory: half a million distinct ones."""
MAX_OTHER = 10 * 1024 * 1024  # Bytes of a part that is neither, such as the styles
EXACT = 10**15  # Spreadsheets keep 15 digits
_STRINGS = "sharedStrings.xml"
_SHEETS = "xl/worksheets/"
_PROLOG = 4096
_ROOT = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|<\?(?>.*?\?>)|<!--(?>.*?-->))*+<[A-Za-z]", re.DOTALL)
"""What precedes the root element of a part: no declaration of entities, and no other encoding.

A comment ends where it first can. Otherwise, the ways to divide many comments are tried for ages.
"""
_WORKBOOK = "xl/workbook.xml"
MAX_SHEETS = 255
MAX_SHEET_ROWS = 1_048_576  # Excel's own limit


def read_workbook(content: bytes) -> Table:
    """Return the table in the first visible sheet of a workbook. Raises UnreadableTableError."""
    _check_parts(content)
    try:
        with warnings.catch_warnings():
            # Of what it leaves out, such as the rules of cells' colours.
            warnings.simplefilter("ignore")
            title, sheet = _first_sheet(content)
    except UnreadableTableError:
        raise
    except MemoryError:
        raise too_large() from None
    except Exception as error:  # Any: a broken part fails in many ways
        raise _broken() from error
    header, rows = split_header(_rows(sheet))
    return Table(format=TableFormat.XLSX, sheet=title, header=header, rows=rows)


def _first_sheet(content: bytes) -> tuple[str, Iterator[Any]]:
    """Return the title of the first visible sheet, and its rows as openpyxl reads them.

    Not by load_workbook(): it reads every sheet that declares no size from its first row to its
    last, to find the size out.
    """
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.styles.stylesheet import apply_stylesheet

    reader = ExcelReader(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    reader.read_manifest()
    reader.shared_strings = _shared_texts(reader)
    reader.read_workbook()
    apply_stylesheet(reader.archive, reader.wb)
    sheets = [
        (sheet, link.target)
        for sheet, link in reader.parser.find_sheets()
        if link.Type.endswith("/worksheet") and link.target in reader.valid_files
    ]
    visible = [found for found in sheets if found[0].state == "visible"] or sheets
    if not visible:
        raise UnreadableTableError("empty", "The workbook has no sheet with cells.")
    sheet, path = visible[0]
    return sheet.name, _parsed(reader, path)


def _shared_texts(reader: Any) -> list[str]:
    """Return the texts that cells share, without how they look and are pronounced.

    Not by read_strings(): it keeps an empty element of each.
    """
    from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS
    from openpyxl.xml.functions import iterparse

    found: list[str] = []
    named = reader.package.find(SHARED_STRINGS)
    if named is None:
        return found
    item, text, run = (f"{{{SHEET_MAIN_NS}}}{name}" for name in ("si", "t", "r"))
    with reader.archive.open(named.PartName[1:]) as source:
        parsed = iterparse(source, events=("start", "end"))
        _, root = next(parsed)
        for event, element in parsed:
            if event == "end" and element.tag == item:
                pieces = [element, *element.findall(run)]
                found.append("".join(piece.findtext(text) or "" for piece in pieces))
                root.clear()
    return found


def _parsed(reader: Any, path: str) -> Iterator[Any]:
    """Yield the number of each row of a sheet, and its cells.

    Not by iter_rows() and parse(): one adds the rows and cells that a file leaves out, up to the
    size that the file declares, which may be a million rows, or wrong. The other keeps each row's
    height and an empty element, and reads what follows the rows.
    """
    from openpyxl.worksheet._reader import DATA_TAG, ROW_TAG, WorkSheetParser
    from openpyxl.xml.functions import iterparse

    parser = WorkSheetParser(
        None,
        reader.shared_strings,
        data_only=True,
        epoch=reader.wb.epoch,
        date_formats=reader.wb._date_formats,
        timedelta_formats=reader.wb._timedelta_formats,
    )
    with reader.archive.open(path) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = None
        for event, element in iterparse(source, events=("start", "end")):
            if event == "start":
                data = element if element.tag == DATA_TAG else data
            elif element is data:
                return
            elif element.tag == ROW_TAG and data is not None:
                row = parser.parse_row(element)
                parser.row_dimensions.clear()
                data.clear()
                yield row
        raise _broken()


def _broken() -> UnreadableTableError:
    return UnreadableTableError(
        "broken_workbook", "The workbook can't be read. Save it as XLSX or CSV again."
    )


def too_large() -> UnreadableTableError:
    """Return the refusal of a workbook that would take too much memory."""
    return UnreadableTableError(
        "unpacks_too_large",
        "The workbook unpacks to more than a file of its size should. Save the sheet as CSV.",
    )


def _check_parts(content: bytes) -> None:
    """Check what the file declares. A part that unpacks to more than it declares is cut off."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if len(parts) > MAX_PARTS or sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise too_large()
            names = {part.filename for part in parts}
            if "[Content_Types].xml" not in names or not any(
                name.startswith("xl/") for name in names
            ):
                raise UnreadableTableError(
                    "unknown_format", "This is no XLSX file. Save it as XLSX or CSV."
                )
            for part in parts:
                _check_part(archive, part)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        # Also a part with a password, or an unknown compression.
        raise _broken() from error


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    if not part.filename.endswith((".xml", ".rels")):
        return
    limit = MAX_UNPACKED if part.filename.startswith(_SHEETS) else MAX_OTHER
    if part.file_size > (MAX_STRINGS if part.filename.endswith(_STRINGS) else limit):
        raise too_large()
    with archive.open(part) as opened:
        prolog = opened.read(_PROLOG)
        if _ROOT.match(prolog) is None:
            raise _broken()
        if part.filename == _WORKBOOK and (prolog + opened.read()).count(b"<sheet ") > MAX_SHEETS:
            raise too_large()


def _rows(parsed: Iterator[Any]) -> Iterator[RawRow]:
    before = count = 0
    while True:
        try:
            number, cells = next(parsed)
        except StopIteration:
            return
        except MemoryError:
            raise too_large() from None
        except Exception as error:  # Any: a broken part fails in many ways
            raise _broken() from error
        count += 1
        # A number that doesn't rise would put a row in the place of another one.
        if number <= before or count > MAX_SHEET_ROWS:
            raise _broken()
        before = number
        yield _row(number, cells)


def _row(number: int, cells: list[dict[str, Any]]) -> RawRow:
    found: dict[int, str] = {}
    fault: RowFault | None = None
    for cell in cells:
        value = cell["value"]
        if value is None:
            continue
        found[cell["column"]] = text_of(value)
        if cell["data_type"] == "e":
            fault = RowFault.CELL_ERROR
        elif cell["data_type"] == "n" and abs(value) >= EXACT:
            fault = RowFault.ROUNDED_NUMBER
    width = max((column for column, text in found.items() if text.strip()), default=0)
    shown = [found.get(column, "") for column in range(1, min(width, MAX_COLUMNS) + 1)]
    # One more cell than allowed says that there are too many, wherever it is.
    return number, [*shown, found[width]] if width > MAX_COLUMNS else shown, fault


def text_of(value: Any) -> str:
    """Return a cell's value as a CSV file would have it, with times as ISO 8601 writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # 15 digits are what a spreadsheet shows: 0.3, and not 0.30000000000000004.
        is_whole = value.is_integer() and abs(value) < EXACT
        return str(int(value)) if is_whole else f"{value:.15g}"
    if isinstance(value, datetime):
        is_date = value.time() == time()
        return value.date().isoformat() if is_date else value.isoformat(timespec="seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    return _unescaped(str(value))


def _unescaped(text: str) -> str:
    """Return a text in which Excel wrote a character as its number, such as ``_x000D_``."""
    if "_x" not in text:
        return text
    from openpyxl.utils.escape import unescape

    # A number may be that of half a character, which is none by itself.
    return str(unescape(text)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
