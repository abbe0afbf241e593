"""Files with rows as people save them, and those that are refused by name."""

import io
import random
import tracemalloc
import zipfile
from datetime import date, datetime, time
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.styles import PatternFill
from openpyxl.worksheet._reader import WorkSheetParser

from domain.tables.delimited import detect_separator
from domain.tables.reading import read_table
from domain.tables.table import MAX_CELL, MAX_ROWS, Row, RowFault, UnreadableTableError
from tests.support.tables import each_case
from tests.support.workbooks import (
    inline,
    repacked,
    saved,
    sheet_of,
    with_shared_texts,
    with_sheet,
    workbook,
)

SEPARATORS = ",;\t|"


def rows(content: bytes | str) -> list[list[str]]:
    """Return the header and the rows of a file."""
    table = read_table(content if isinstance(content, bytes) else content.encode())
    return [list(table.header), *(list(row.cells) for row in table.rows)]


def refusal(content: bytes | str) -> UnreadableTableError:
    with pytest.raises(UnreadableTableError) as refused:
        rows(content)
    return refused.value


@each_case(
    "content, encoding, cell",
    [
        ("name\nJosé", "UTF-8", "José"),
        (b"\xef\xbb\xbfname\nJos\xc3\xa9", "UTF-8", "José"),
        ("name\nJosé".encode("utf-16"), "UTF-16LE", "José"),
        (b"\xfe\xff" + "name\nJosé".encode("utf-16-be"), "UTF-16BE", "José"),
        ("name\nJosé".encode("utf-16-le"), "UTF-16LE", "José"),
        ("name\nJosé".encode("utf-16-be"), "UTF-16BE", "José"),
        (b"name\nJos\xe9 \x80 5", "Windows-1252", "José € 5"),
        ("name\n李明", "UTF-8", "李明"),
        ("name\n😀", "UTF-8", "😀"),
    ],
)
def test_encoding_is_detected_and_named(content: Any, encoding: str, cell: str) -> None:
    table = read_table(content if isinstance(content, bytes) else content.encode())
    assert table.encoding == encoding
    assert table.header == ("name",), "without the mark of its encoding"
    assert next(table.rows).cells == (cell,)


@each_case(
    "text, separator, width",
    [
        ("a,b\n1,2", ",", 2),
        ("a;b\n1,5;2", ";", 2),
        ("a\tb\n1,5\t2;3", "\t", 2),
        ("a|b\n1|2", "|", 2),
        ('name;text\nada;"Dear Ada, hello, and, more"\nbo;"a, b"', ";", 2),
        ('"Lovelace, Ada";b;c\n"x, y";2;3', ";", 3),
        ("sep=|\na|b\n1|2", "|", 2),
        ("name\nAda\nBob", ",", 1),
        ("email\nada@example.com", ",", 1),
        # What csv.Sniffer takes the letter o, or a blank, of.
        ("notes here\nhello world\nno one", ",", 1),
    ],
)
def test_separator_is_what_splits_the_rows_alike(text: str, separator: str, width: int) -> None:
    table = read_table(text.encode())
    assert table.separator == separator
    assert len(table.header) == width
    assert len(next(table.rows).cells) == width


def test_separator_after_a_long_first_cell_is_found() -> None:
    assert detect_separator(f'"{"x" * 5_000}";b\n1;2') == ";"


@each_case(
    "text, expected",
    [
        ('a,b\n"1,5","say ""hi"""', [["1,5", 'say "hi"']]),
        ('a,b\n"two\r\nlines",2', [["two\nlines", "2"]]),
        ("a,b\r\n1,2\r\n", [["1", "2"]]),
        ("a,b\r1,2\r3,4", [["1", "2"], ["3", "4"]]),
        ("a,b\n 1 ,\u00a02\u00a0", [["1", "2"]]),
        ("a,b\n1", [["1", ""]]),
        ("a,b\n1,2,,,", [["1", "2"]]),
        ("a,b,,\n1,2,,", [["1", "2"]]),
        ("a,b\n,\n \n\n1,2\n,,,\n", [["1", "2"]]),
        ("\n\na,b\n1,2", [["1", "2"]]),
    ],
)
def test_cells_are_as_they_were_meant(text: str, expected: list[list[str]]) -> None:
    assert rows(text)[1:] == expected


def test_rows_have_the_numbers_of_the_file() -> None:
    assert list(read_table(b"\na\n\n1\n,\n2").rows) == [Row(4, ("1",)), Row(6, ("2",))]
    book = Workbook()
    book.active["A2"], book.active["A5"], book.active["A9"] = "a", "1", "2"
    assert list(read_table(saved(book)).rows) == [Row(5, ("1",)), Row(9, ("2",))]


def test_row_with_more_cells_than_the_header_has_a_fault() -> None:
    (row,) = read_table(b"a,b\n1,2,3").rows
    assert row == Row(2, ("1", "2"), RowFault.TOO_MANY_CELLS)


@each_case(
    "content, code, part",
    [
        (b"", "empty", "empty"),
        (b"\n\n,,\n", "empty", "empty"),
        (b'a,b\n1,"open\n2,3\n', "open_quote", "row 2"),
        (b'a,b\n1,"open\n' + b"x,y\n" * 50_000, "open_quote", "row 2"),
        (b'a,b\n1,"x" y\n', "broken_quote", "row 2"),
        (",".join(f"c{n}" for n in range(61)), "too_many_columns", "61 columns"),
        (f"a,b\n1,{'x' * (MAX_CELL + 1)}", "cell_too_long", "row 2"),
        (b"a\n" + b"1\n" * (MAX_ROWS + 1), "too_many_rows", "100,000 rows"),
        (b"x" * (20 * 1024 * 1024 + 1), "too_large", "20 MB"),
        (b"a,b\n\x00\x01\x02\x03", "unknown_format", "CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "unknown_format", "XLS"),
        (b"%PDF-1.7", "unknown_format", "PDF"),
        (b"\x1f\x8b\x08", "unknown_format", "compressed"),
        ("a\nx".encode("utf-32"), "unknown_encoding", "UTF-32"),
        (b"name\n\x81\x8d", "unknown_encoding", "UTF-8"),
        ("name\nJosé Zoë Ana\u0303".encode() + b"\xff", "broken_encoding", "broken"),
        ("a\nb".encode("utf-16") + b"x", "broken_encoding", "broken"),
        (b"PK\x03\x04 nothing", "broken_workbook", "XLSX"),
    ],
)
def test_file_is_refused_by_name(content: Any, code: str, part: str) -> None:
    refused = refusal(content)
    assert refused.code == code
    assert part in refused.detail


def test_header_only_has_no_rows() -> None:
    assert rows("email,name\n") == [["email", "name"]]
    assert rows(workbook(["email", "name"])) == [["email", "name"]]


@each_case(
    "value, text, fault",
    [
        ("+351912345678", "+351912345678", None),
        ("007", "007", None),
        (351912345678, "351912345678", None),
        (351912345678.0, "351912345678", None),
        (49.9, "49.9", None),
        (0.1 + 0.2, "0.3", None),
        (True, "true", None),
        (datetime(2026, 12, 24, 18, 30), "2026-12-24T18:30:00", None),
        (date(2026, 12, 24), "2026-12-24", None),
        (time(9, 5), "09:05:00", None),
        ("two\nlines", "two\nlines", None),
        (1234567890123456, "1234567890123456", RowFault.ROUNDED_NUMBER),
        ("#N/A", "#N/A", RowFault.CELL_ERROR),
    ],
)
def test_cell_of_a_workbook_is_the_text_that_csv_has(
    value: Any, text: str, fault: RowFault | None
) -> None:
    (row,) = read_table(workbook(["a"], [value])).rows
    assert row == Row(2, (text,), fault)


def test_formula_is_its_last_value_and_is_empty_without_one() -> None:
    assert rows(workbook(["a", "b"], ["=1+1", "x"])) == [["a", "b"], ["", "x"]]


def test_first_visible_sheet_is_read_and_named() -> None:
    book = Workbook()
    book.active.title, book.active.sheet_state = "Hidden", "hidden"
    book.active.append(["wrong"])
    shown = book.create_sheet("March")
    shown.append(["a"])
    shown.append(["1"])
    table = read_table(saved(book))
    assert (table.sheet, table.header) == ("March", ("a",))


@each_case(
    "prolog",
    [
        b"",
        b"\xef\xbb\xbf<?xml version='1.0'?>\r\n",
        b"<?xml version='1.0'?><!-- a --> <?mso x?><!---->",
        b"<!---->" * 580,
    ],
)
def test_comments_may_precede_a_part(prolog: bytes) -> None:
    sheet = sheet_of(f'<row r="1">{inline("A1", "a")}</row>')
    content = repacked(workbook(["b"]), xl__worksheets__sheet1_dot_xml=prolog + sheet)
    assert rows(content) == [["a"]]


def test_comments_without_a_root_are_refused_in_one_pass() -> None:
    content = repacked(workbook(["a"]), xl__workbook_dot_xml=b"<!---->" * 580 + b"<!")
    assert refusal(content).code == "broken_workbook"


def test_declared_size_of_a_sheet_is_not_believed() -> None:
    body = f'<row r="1">{inline("A1", "a")}</row><row r="1048576">{inline("A1048576", "1")}</row>'
    assert list(read_table(with_sheet(body)).rows) == [Row(1_048_576, ("1",))]


def test_cell_in_the_last_column_is_one_cell_too_many() -> None:
    body = f'<row r="1">{inline("A1", "a")}</row><row r="2">{inline("XFD2", "x")}</row>'
    (row,) = read_table(with_sheet(body)).rows
    assert row.fault is RowFault.TOO_MANY_CELLS


def test_rows_whose_numbers_do_not_rise_are_refused() -> None:
    body = "".join(f'<row r="{n}">{inline(f"A{n}", "x")}</row>' for n in (1, 2, 2))
    with pytest.raises(UnreadableTableError) as raised:
        list(read_table(with_sheet(body)).rows)
    assert raised.value.code == "broken_workbook"


def test_empty_rows_take_no_memory() -> None:
    blank = "".join(f'<row r="{n}" s="1" ht="15"/>' for n in range(2, 20_000))
    content = with_sheet(f'<row r="1">{inline("A1", "a")}</row>{blank}')
    tracemalloc.start()
    try:
        assert list(read_table(content).rows) == []
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024, "a fiftieth of a sheet's rows, with what they look like"


def test_sheet_without_a_size_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(
        WorkSheetParser, "parse_dimensions", lambda parser: read.append(parser.source)
    )
    body = "".join(f'<row r="{n}">{inline(f"A{n}", "x")}</row>' for n in (1, 2))
    sheet = sheet_of(body).replace(b'<dimension ref="A1:XFD1048576"/>', b"")
    content = repacked(workbook(["a"]), xl__worksheets__sheet1_dot_xml=sheet)
    assert len(list(read_table(content).rows)) == 1
    assert read == []


def test_what_follows_the_rows_is_not_read() -> None:
    broken = sheet_of(f'<row r="1">{inline("A1", "a")}</row><row r="2">{inline("A2", "x")}</row>')
    content = repacked(
        workbook(["a"]),
        xl__worksheets__sheet1_dot_xml=broken.replace(b"</worksheet>", b"<mergeCells>"),
    )
    assert list(read_table(content).rows) == [Row(2, ("x",))]


@each_case(
    "written, text",
    [("_x000A_", "\n"), ("_xD83D__xDE00_", "😀"), ("half _xD800_", "half \ufffd")],
)
def test_characters_that_are_written_as_numbers_are_text(written: str, text: str) -> None:
    (row,) = read_table(workbook(["a"], [f"<{written}>"])).rows
    assert row.cells == (f"<{text}>",)
    row.cells[0].encode()


@each_case(
    "part, data, code",
    [
        ("xl__worksheets__sheet1_dot_xml", b" " * (301 * 1024 * 1024), "unpacks_too_large"),
        ("xl__sharedStrings_dot_xml", b" " * (41 * 1024 * 1024), "unpacks_too_large"),
        ("xl__styles_dot_xml", b" " * (11 * 1024 * 1024), "unpacks_too_large"),
        ("xl__styles_dot_xml", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "broken_workbook"),
        ("xl__styles_dot_xml", b"<!--" + b"-" * 5_000 + b"--><!DOCTYPE x><x/>", "broken_workbook"),
        ("xl__styles_dot_xml", "<!DOCTYPE x><x/>".encode("utf-16"), "broken_workbook"),
        ("xl__workbook_dot_xml", b"<workbook>" + b"<sheet />" * 256, "unpacks_too_large"),
        ("xl__worksheets__sheet1_dot_xml", b"<worksheet", "broken_workbook"),
        ("xl__worksheets__sheet1_dot_xml", sheet_of('<row r="x"/>'), "broken_workbook"),
        ("xl__workbook_dot_xml", b"<x/>", "empty"),
    ],
)
def test_workbook_that_is_a_bomb_or_broken_is_refused(part: str, data: bytes, code: str) -> None:
    content = repacked(workbook(["a"], [1]), **{part: data})
    assert len(content) < 1024 * 1024, "a bomb is small"
    assert refusal(content).code == code


def test_shared_texts_are_read_with_their_runs() -> None:
    texts = (
        "<si><t>a</t></si><si><r><t>Dear </t></r><r><t>Ada</t></r><rPh><t>eida</t></rPh></si>"
        "<si><t>_x005F_x000A_</t></si>"
    )
    cells = "".join(
        f'<row r="{n + 1}"><c r="A{n + 1}" t="s"><v>{n}</v></c></row>' for n in range(3)
    )
    content = with_shared_texts(texts, cells)
    assert rows(content) == [["a"], ["Dear Ada"], ["_x000A_"]]


def test_zip_without_a_sheet_is_no_workbook() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("photo.jpg", b"x")
    assert refusal(written.getvalue()).code == "unknown_format"


def plain_rows(text: str, separator: str) -> list[list[str]]:
    """Return the rows of a text, character by character."""
    found: list[list[str]] = [[]]
    cell, quoted, position = "", False, 0
    while position < len(text):
        character = text[position]
        position += 1
        if quoted:
            if character != '"':
                cell += character
            elif text[position : position + 1] == '"':
                cell += '"'
                position += 1
            else:
                quoted = False
        elif character == '"' and not cell:
            quoted = True
        elif character == separator:
            found[-1].append(cell)
            cell = ""
        elif character in "\r\n":
            if character == "\r" and text[position : position + 1] == "\n":
                position += 1
            found[-1].append(cell)
            found.append([])
            cell = ""
        else:
            cell += character
    found[-1].append(cell)
    return found


def plain_table(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """Return the header and rows of a text with their numbers, blank rows left out."""
    kept = [
        (number, [cell.strip().replace("\r\n", "\n") for cell in cells])
        for number, cells in enumerate(plain_rows(text, separator), 1)
    ]
    kept = [(number, cells) for number, cells in kept if any(cells)]
    width = len(kept[0][1])
    return [(number, (cells + [""] * width)[:width]) for number, cells in kept]


def written(cell: str, separator: str, chance: random.Random) -> str:
    if any(character in cell for character in f'{separator}"\r\n') or chance.random() < 0.3:
        doubled = cell.replace('"', '""')
        return f'"{doubled}"'
    return cell


ALPHABET = [
    "a",
    "b",
    "Z",
    "1",
    "é",
    "€",
    " ",
    '"',
    "\n",
    "\r\n",
    ",",
    ";",
    "\t",
    "|",
    "+",
    "=",
    "-",
]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")


@pytest.mark.parametrize("seed", range(8))
def test_random_files_are_read_as_by_plain_reading(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        separator, width = chance.choice(SEPARATORS), chance.randint(2, 6)
        end = chance.choice(["\n", "\r\n", "\r"])
        given = [
            ["".join(chance.choices(ALPHABET, k=chance.randint(0, 6))) for _ in range(width)]
            for _ in range(chance.randint(1, 12))
        ]
        table = [[f"column{n}" for n in range(width)], *given]
        lines = [separator.join(written(cell, separator, chance) for cell in row) for row in table]
        text = f"sep={separator}\n" + end.join(lines)
        read = read_table(text.encode(chance.choice(ENCODINGS[:2])))
        found = [(0, list(read.header)), *((row.number, list(row.cells)) for row in read.rows)]
        expected = plain_table(text.partition("\n")[2], separator)
        assert [cells for _, cells in found] == [cells for _, cells in expected]
        assert [number for number, _ in found[1:]] == [number for number, _ in expected[1:]]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_separator_and_encoding_are_found_in_random_files(encoding: str) -> None:
    chance = random.Random(encoding)
    for _ in range(40):
        separator, width = chance.choice(SEPARATORS), chance.randint(2, 6)
        given = [
            ["".join(chance.choices("abcé 1.@", k=chance.randint(1, 9))) for _ in range(width)]
            for _ in range(chance.randint(3, 12))
        ]
        table = [[f"column{n}" for n in range(width)], *given]
        text = "\n".join(separator.join(row) for row in table)
        assert rows(text.encode(encoding)) == [cells for _, cells in plain_table(text, separator)]


def test_random_workbooks_are_read_as_they_were_written() -> None:
    chance = random.Random(1)
    for _ in range(15):
        width = chance.randint(1, 8)
        given = [
            [
                chance.choice([None, "x", "é,;", chance.randint(0, 10**9), date(2026, 1, 2)])
                for _ in range(width)
            ]
            for _ in range(chance.randint(1, 20))
        ]
        book = Workbook()
        book.active.append([f"column{n}" for n in range(width)])
        for row in given:
            book.active.append(row)
        book.active["A1"].fill = PatternFill("solid", fgColor="FFFF00")
        expected = [
            ["" if value is None else str(value) for value in row]
            for row in given
            if any(value is not None for value in row)
        ]
        assert rows(saved(book))[1:] == expected
