"""A file's wrong rows, and the results of its broadcast, as the lines of a CSV file."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bson import ObjectId

from domain.tables.table import Row, escape_formula
from notifications.documents.broadcasts import BROADCASTS
from notifications.documents.files import AudienceFileDocument
from notifications.documents.notification import NOTIFICATIONS

from ..intake.addressees import notification_id
from . import parts, type_data
from .columns import PROBLEM, own_header
from .parts import Finding

BYTE_ORDER_MARK = "\ufeff"
"""Without it, Excel reads UTF-8 as the code page of its country."""
COMMA = ","
NOT_SENT = "Not sent: it was refused or skipped when its turn came, or the broadcast ended before."
RESULT_COLUMNS = ("row", "notification_id", "status", PROBLEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """What became of a row."""

    row: int
    notification_id: ObjectId | None = None
    """None if it has none: it isn't sent, or not yet."""
    status: str = ""
    problem: str = ""
    """Why it isn't sent, if its check found that or the broadcast is over."""


def wrong_rows(document: AudienceFileDocument) -> Iterator[str]:
    """Yield the header and the rows that aren't good, with a column that says why.

    A spreadsheet opens it as it opened the upload. A row that is right again can be uploaded with
    that column: nothing reads it.
    """
    head = parts.read_head(document["_id"])
    if head is None:
        return
    separator = document.get("separator", COMMA)
    header = own_header(head.header, data=type_data.read(document["type"]))
    yield BYTE_ORDER_MARK + _line([*header, PROBLEM], separator)
    for row, findings in read_rows(document):
        if findings:
            yield _line([*row.cells[: len(header)], said(findings)], separator)


def results(document: AudienceFileDocument) -> Iterator[str]:
    """Yield for each row, by its number in the file, its notification and what became of it."""
    ended = {"_id": document["_id"], "finished_at": {"$exists": True}}
    is_over = BROADCASTS().find_one(ended, {"_id": 1}) is not None
    yield _line(RESULT_COLUMNS, COMMA)
    batch: list[tuple[Row, Sequence[Finding]]] = []
    for pair in read_rows(document):
        batch.append(pair)
        if len(batch) == parts.ROWS_IN_PART:
            yield from map(_result_line, results_of(document, batch, is_over=is_over))
            batch = []
    yield from map(_result_line, results_of(document, batch, is_over=is_over))


def results_of(
    document: AudienceFileDocument,
    rows: Sequence[tuple[Row, Sequence[Finding]]],
    *,
    is_over: bool,
) -> Iterator[RowResult]:
    """Yield what became of these rows. ``is_over`` says that their broadcast had ended before."""
    ids = {row.number: notification_id(document["_id"], str(row.number)) for row, _ in rows}
    found = NOTIFICATIONS().find({"_id": {"$in": list(ids.values())}}, {"status": 1})
    statuses = {each["_id"]: each["status"] for each in found}
    for row, findings in rows:
        own_id = ids[row.number]
        if (status := statuses.get(own_id)) is not None:
            yield RowResult(row=row.number, notification_id=own_id, status=status)
        else:
            unsaid = NOT_SENT if is_over else ""
            yield RowResult(row=row.number, problem=said(findings) or unsaid)


def _result_line(result: RowResult) -> str:
    own_id = result.notification_id
    cells = (str(result.row), str(own_id or ""), result.status, result.problem)
    return _line(cells, COMMA)


def read_rows(
    document: AudienceFileDocument, *, start: int = 0
) -> Iterator[tuple[Row, Sequence[Finding]]]:
    """Yield the rows of a file from a number on, each with what its check found.

    No earlier part is read. After a removal, none are left.
    """
    head = parts.read_head(document["_id"]) if start else None
    first = head.part_of(start) if head is not None else 0
    for number in range(first, document.get("parts", 0)):
        part = parts.read_rows(document["_id"], number)
        if part is None:
            return
        findings = parts.findings_for(part, document["check_number"]) or {}
        for row in part.rows:
            if row.number >= start:
                yield row, findings.get(str(row.number), ())


def said(findings: Sequence[Finding]) -> str:
    """Return what was found of a row as one text."""
    return " ".join(
        f"{finding.target}: {finding.detail}" if finding.target else finding.detail
        for finding in findings
    )


def _line(cells: Sequence[str], separator: str) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=separator).writerow([escape_formula(cell) for cell in cells])
    return written.getvalue()
