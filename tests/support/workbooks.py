"""Workbooks as spreadsheets and attackers write them."""

import io
import zipfile
from collections.abc import Sequence
from typing import Any

from openpyxl import Workbook


def workbook(*given: Sequence[Any], title: str = "People") -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = title
    for row in given:
        sheet.append(row)
    return saved(book)


def saved(book: Workbook) -> bytes:
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def repacked(content: bytes, **replaced: bytes) -> bytes:
    """Return a workbook with other parts; the names have __ for a slash and _dot_ for a dot."""
    parts = {name.replace("__", "/").replace("_dot_", "."): data for name, data in replaced.items()}
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in [*old.namelist(), *(part for part in parts if part not in old.namelist())]:
            new.writestr(name, parts.get(name) or old.read(name))
    return written.getvalue()


def sheet_of(body: str) -> bytes:
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return (
        f'<worksheet xmlns="{namespace}"><dimension ref="A1:XFD1048576"/>'
        f"<sheetData>{body}</sheetData></worksheet>"
    ).encode()


def inline(reference: str, text: str) -> str:
    return f'<c r="{reference}" t="inlineStr"><is><t>{text}</t></is></c>'


def with_sheet(body: str) -> bytes:
    return repacked(workbook(["a"]), xl__worksheets__sheet1_dot_xml=sheet_of(body))


def with_shared_texts(texts: str, rows: str) -> bytes:
    """Return a workbook whose cells may name shared texts by their numbers."""
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    content = with_sheet(rows)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        types = archive.read("[Content_Types].xml").decode()
    named = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    replaced = {
        "[Content_Types]_dot_xml": types.replace("</Types>", named),
        "xl__sharedStrings_dot_xml": f'<sst xmlns="{namespace}/main">{texts}</sst>',
    }
    return repacked(content, **{part: text.encode() for part, text in replaced.items()})
