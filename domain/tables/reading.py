"""Reads the rows of a file, whatever its name says: the content decides."""

from .delimited import read_delimited
from .table import MAX_BYTES, Table, UnreadableTableError
from .workbooks import read_workbook

_ZIP = b"PK\x03\x04"
_KNOWN = (
    (b"\xd0\xcf\x11\xe0", "an XLS file of Excel before 2007, or has a password"),
    (b"%PDF", "a PDF file"),
    (b"\x1f\x8b", "a compressed file"),
    (b"{\\rtf", "an RTF file"),
)


def is_workbook(content: bytes) -> bool:
    """Return whether a file is one that :func:`read_workbook` reads, or a ZIP file."""
    return content.startswith(_ZIP)


def read_table(content: bytes) -> Table:
    """Return the table in a file: its header, and its rows one by one.

    Raises UnreadableTableError, as do the rows.
    """
    if len(content) > MAX_BYTES:
        raise UnreadableTableError(
            "too_large", f"The file has over {MAX_BYTES // 1024 // 1024} MB. Split it."
        )
    if is_workbook(content):
        return read_workbook(content)
    for beginning, name in _KNOWN:
        if content.startswith(beginning):
            raise UnreadableTableError("unknown_format", f"This is {name}. Save it as XLSX or CSV.")
    return read_delimited(content)
