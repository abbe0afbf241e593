"""Text with separated cells: its encoding, its separator, and its rows.

The encoding is detected by rules of our own: files of people are UTF-8, what Excel calls Unicode
text, or Windows-1252. ``csv.Sniffer`` isn't used: it takes letters for separators, and quadratic
time for quotation marks that don't close.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from .table import RawRow, Table, TableFormat, UnreadableTableError, split_header

SEPARATORS = (",", ";", "\t", "|")
UTF_8, UTF_16_LE, UTF_16_BE, WINDOWS_1252 = "UTF-8", "UTF-16LE", "UTF-16BE", "Windows-1252"
_SAMPLE = 64 * 1024  # Bytes from which the separator is detected
_SAMPLE_ROWS = 20
_MOSTLY = 0.4
"""Share of zero bytes at even or odd places from which a text without a mark is UTF-16."""
_BLOCK = 1024 * 1024
_UTF_32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_MARKS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, UTF_16_LE),
    (codecs.BOM_UTF16_BE, UTF_16_BE),
)
_CODECS = {WINDOWS_1252: "cp1252"}
_NAMED_SEPARATOR = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""Excel's own first line, which it doesn't show as a row."""


def read_delimited(content: bytes) -> Table:
    """Return the table in a text. Raises UnreadableTableError."""
    encoding, start = detect_encoding(content)
    text = _decoded(content, encoding, start)
    try:
        sample = text.read(_SAMPLE)
    except UnicodeDecodeError:
        raise _broken_characters() from None
    is_cut = len(sample) == _SAMPLE
    text.seek(0)
    named = _NAMED_SEPARATOR.match(sample)
    if named:
        text.readline()
    separator = named[1] if named else detect_separator(sample, is_cut=is_cut)
    header, rows = split_header(_rows(text, separator))
    return Table(
        format=TableFormat.CSV, encoding=encoding, separator=separator, header=header, rows=rows
    )


def detect_encoding(content: bytes) -> tuple[str, int]:
    """Return the encoding of a text, and where it begins. Raises UnreadableTableError."""
    if content.startswith(_UTF_32_MARKS):
        raise UnreadableTableError("unknown_encoding", "The file is UTF-32. Save it as UTF-8.")
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding, len(mark)
    if b"\0" in content:
        return _without_mark(content), 0
    good, bad = _count_utf_8(content)
    if not bad:
        return UTF_8, 0
    if good > bad:
        # Windows-1252 hardly ever looks like UTF-8: read as that, each name would be wrong.
        raise _broken_characters()
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        raise UnreadableTableError(
            "unknown_encoding", "The file's encoding is unknown. Save it as UTF-8."
        ) from None
    return WINDOWS_1252, 0


def _without_mark(content: bytes) -> str:
    """Return which UTF-16 a text without a mark is: of most letters, one byte is zero."""
    sample = content[: _SAMPLE // 2 * 2]
    half = max(len(sample) // 2, 1)
    at_even, at_odd = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if at_odd > 2 * at_even and at_odd > _MOSTLY:
        return UTF_16_LE
    if at_even > 2 * at_odd and at_even > _MOSTLY:
        return UTF_16_BE
    raise UnreadableTableError(
        "unknown_format", "This is no CSV, TSV, or XLSX file. Save it as one of these."
    )


def _count_utf_8(content: bytes) -> tuple[int, int]:
    """Return how many characters beyond ASCII are UTF-8, and how many bytes aren't."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    good = bad = 0
    for start in range(0, max(len(content), 1), _BLOCK):
        block = decode(content[start : start + _BLOCK], final=start + _BLOCK >= len(content))
        if not block.isascii():
            wrong = block.count("\ufffd")
            bad += wrong
            good += sum(1 for character in block if character > "\x7f") - wrong
    return good, bad


def _broken_characters() -> UnreadableTableError:
    return UnreadableTableError(
        "broken_encoding", "The file has broken characters. Save it as UTF-8 again."
    )


def _decoded(content: bytes, encoding: str, start: int) -> io.TextIOWrapper:
    raw = io.BytesIO(memoryview(content)[start:] if start else content)
    return io.TextIOWrapper(raw, encoding=_CODECS.get(encoding, encoding), newline="")


def detect_separator(sample: str, *, is_cut: bool = False) -> str:
    """Return what separates cells: what splits the first rows into as many as the header has.

    A file of one column has none: then it is a comma.
    """
    best, best_score = SEPARATORS[0], (0.0, 1)
    for separator in SEPARATORS:
        widths = _widths(sample, separator, is_cut=is_cut)
        if not widths or widths[0] == 1:
            continue
        score = (widths.count(widths[0]) / len(widths), widths[0])
        if score > best_score:
            best, best_score = separator, score
    return best


def _widths(sample: str, separator: str, *, is_cut: bool) -> list[int]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
    try:
        rows: Sequence[Sequence[str]] = [row for row in islice(reader, _SAMPLE_ROWS) if any(row)]
    except csv.Error:
        return []
    if is_cut and len(rows) > 1:
        rows = rows[:-1]
    return [len(row) for row in rows]


def _rows(text: io.TextIOWrapper, separator: str) -> Iterator[RawRow]:
    reader = csv.reader(text, delimiter=separator, strict=True)
    number = 0
    while True:
        number += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _broken_row(number, str(error)) from None
        except UnicodeDecodeError:
            raise _broken_characters() from None
        yield number, cells, None


def _broken_row(number: int, reason: str) -> UnreadableTableError:
    if "end of data" in reason or "field limit" in reason:
        return UnreadableTableError(
            "open_quote", f"A quotation mark opens in row {number:,} and never closes."
        )
    return UnreadableTableError(
        "broken_quote",
        f"A quotation mark in row {number:,} is neither at the end of its cell nor doubled.",
    )
