"""A file's wrong rows, and the results of its broadcast, as the lines of a CSV file."""

import csv
import io
from collections.abc import Iterator, Sequence

from domain.tables.table import Row, escape_formula
from notifications.documents.files import AudienceFileDocument
from notifications.documents.notification import NOTIFICATIONS

from ..intake.addressees import notification_id
from . import parts
from .parts import Finding

PROBLEM = "problem"
RESULT_COLUMNS = ("row", "notification_id", "status", PROBLEM)


def wrong_rows(document: AudienceFileDocument) -> Iterator[str]:
    """Yield the header and the rows that aren't good, with a column that says why.

    A row that is right again can be uploaded with that column: nothing reads it.
    """
    head = parts.read_head(document["_id"])
    if head is None:
        return
    yield _line([*head.header, PROBLEM])
    for row, findings in _rows(document):
        if findings:
            yield _line([*row.cells, _said(findings)])


def results(document: AudienceFileDocument) -> Iterator[str]:
    """Yield for each row, by its number in the file, its notification and what became of it."""
    yield _line(RESULT_COLUMNS)
    batch: list[tuple[Row, Sequence[Finding]]] = []
    for pair in _rows(document):
        batch.append(pair)
        if len(batch) == parts.ROWS_IN_PART:
            yield from _results(document, batch)
            batch = []
    yield from _results(document, batch)


def _results(
    document: AudienceFileDocument, batch: Sequence[tuple[Row, Sequence[Finding]]]
) -> Iterator[str]:
    ids = {row.number: notification_id(document["_id"], str(row.number)) for row, _ in batch}
    found = NOTIFICATIONS().find({"_id": {"$in": list(ids.values())}}, {"status": 1})
    statuses = {each["_id"]: each["status"] for each in found}
    for row, findings in batch:
        own_id = ids[row.number]
        if (status := statuses.get(own_id)) is not None:
            yield _line([str(row.number), str(own_id), status, ""])
        else:
            yield _line([str(row.number), "", "", _said(findings)])


def _rows(document: AudienceFileDocument) -> Iterator[tuple[Row, Sequence[Finding]]]:
    for number in range(document.get("parts", 0)):
        part = parts.read_rows(document["_id"], number)
        if part is None:
            return
        findings = parts.findings_for(part, document["check_number"]) or {}
        for row in part.rows:
            yield row, findings.get(str(row.number), ())


def _said(findings: Sequence[Finding]) -> str:
    return " ".join(
        f"{finding.target}: {finding.detail}" if finding.target else finding.detail
        for finding in findings
    )


def _line(cells: Sequence[str]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow([escape_formula(cell) for cell in cells])
    return written.getvalue()
