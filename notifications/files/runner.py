"""Reads and checks files, one step at a time, each under a lease. Each step can be repeated."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from bson import ObjectId

from domain.states import Duplicates, FileStatus
from domain.tables.table import Row, Table, UnreadableTableError
from domain.time import Clock, utc_now
from notifyproject.platform import crash_points, process
from notifyproject.platform.crash_points import Boundary

from ..queueing import wakeups
from . import checking, columns, parts, repository, type_data
from .enumeration import mapping_of
from .parts import Findings, Head
from .reading import ParserBusyError, ParserLostError, open_table
from .repository import FileLease
from .rows import RowMapping, person_digests

log = structlog.get_logger(__name__)
F = FileStatus
STUCK = f"{repository.LEASES.max_claims} consecutive workers failed on it."
MAX_CHARACTERS = 200_000_000
"""Characters of all cells: ten times the bytes of the largest file, since a workbook may repeat a
text that it has once."""
TOO_MUCH_TEXT = "The cells have over 200 million characters together. Split the file."
NO_ROWS = "The file has a header and no rows."
BUSY_DELAY = timedelta(seconds=5)
"""Until a workbook that waits for another one on this machine is tried again, by any worker."""
INCOMPLETE = "The upload is incomplete."


class LeaseLostError(Exception):
    """Another worker has the file, another check was asked for, or the worker is stopped."""


def run(file_id: ObjectId, *, clock: Clock = utc_now) -> bool:
    """Run the next step of a file, and enqueue the one after. Return whether it was leased."""
    now = clock()
    lease = repository.acquire_lease(file_id, worker=process.worker_name(), now=now)
    if lease is None:
        return False
    crash_points.reach(Boundary.FILE_LEASED)
    try:
        is_left = _step(lease, clock)
    except LeaseLostError:
        log.warning("file_lease_lost", file_id=str(file_id))
        return True
    except ParserBusyError:
        now = clock()
        repository.give_back(lease, until=now + BUSY_DELAY, now=now)
        enqueue(file_id, at=now + BUSY_DELAY, now=now)
        return True
    except ParserLostError as error:
        # As after a lost worker, another attempt begins once the lease ends.
        log.warning("file_parser_lost", file_id=str(file_id), error=str(error))
        return True
    crash_points.reach(Boundary.FILE_ADVANCED)
    if is_left:
        enqueue(file_id, now=clock())
    return True


def enqueue(file_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Enqueue a step of a file. Return False if the sweeper must do so later."""
    return wakeups.publish_file(file_id, at=at, now=now)


def enqueue_due(*, now: datetime) -> int:
    """Enqueue a step of each file that is due. Return how many there are."""
    due = repository.due_files(until=now, now=now)
    for file_id, _ in due:
        enqueue(file_id, now=now)
    return len(due)


def _step(lease: FileLease, clock: Clock) -> bool:
    """Run a step. Return whether another one is left. Raises LeaseLostError."""
    now = clock()
    if lease.claim.is_exhausted:
        _refuse(lease, "stuck", STUCK, now)
        return False
    if process.is_shutting_down():
        repository.give_back(lease, now=now)
        return True
    if lease.document["status"] == F.READING:
        return _read(lease, clock)
    if "cursor" not in lease.document:
        return _begin(lease, clock)
    return _check(lease, clock)


def _read(lease: FileLease, clock: Clock) -> bool:
    """Store the rows of an upload, and find out what its columns are."""
    document, until = lease.document, lease.document["content_until"]
    count = repository.chunk_count(document["size"])
    chunks = [parts.read_chunk(lease.id, number) for number in range(count)]
    content = b"".join(chunk for chunk in chunks if chunk is not None)
    if len(content) != document["size"]:
        _refuse(lease, "incomplete", INCOMPLETE, clock())
        return False
    try:
        with open_table(content, while_waiting=partial(_renew, lease, clock)) as table:
            first, row_count, starts = _store_rows(lease, table, clock)
    except UnreadableTableError as error:
        _refuse(lease, error.code, error.detail, clock())
        return False
    if row_count == 0:
        _refuse(lease, "no_rows", NO_ROWS, clock())
        return False
    head = parts.read_head(lease.id)
    name = head.name if head is not None else ""
    new_head = Head(name=name, sheet=table.sheet, header=table.header, starts=tuple(starts))
    parts.write_head(lease.id, new_head, until=until)
    client_id = document["client_id"]
    data = type_data.read(document["type"])
    header = "\0".join(columns.own_header(table.header, data=data)).encode(errors="replace")
    header_digest = repository.digest_of(client_id, "header", header)
    chosen = document.get("columns") or columns.fitted(
        repository.known_columns(
            client_id, type_slug=document["type"], header_digest=header_digest
        ),
        table.header,
    )
    changes = {
        "status": F.CHECKING.value,
        "format": table.format.value,
        "rows": row_count,
        "parts": len(starts),
        "columns": chosen or columns.guess(table.header, first, data=data),
        "digest": repository.digest_of(client_id, "content", content),
        "header_digest": header_digest,
        "due_at": clock(),
    }
    if table.encoding is not None and table.separator is not None:
        changes |= {"charset": table.encoding, "separator": table.separator}
    crash_points.reach(Boundary.FILE_STORED)
    if not repository.release(lease, changes, now=clock()):
        raise LeaseLostError
    parts.delete_chunks(lease.id, count=count)
    log.info("file_read", file_id=str(lease.id), rows=row_count)
    return True


def _store_rows(
    lease: FileLease, table: Table, clock: Clock
) -> tuple[list[tuple[str, ...]], int, list[int]]:
    """Store the rows in parts. Return the first rows, how many there are, and where parts begin."""
    first: list[tuple[str, ...]] = []
    starts: list[int] = []
    row_count = 0
    for number, rows in enumerate(_batches(table.rows)):
        first += [row.cells for row in rows[: columns.SAMPLE - len(first)]]
        parts.write_rows(lease.id, number, rows, people=(), until=lease.document["content_until"])
        starts.append(rows[0].number)
        row_count += len(rows)
        _renew(lease, clock)
    return first, row_count, starts


def _renew(lease: FileLease, clock: Clock) -> None:
    """Keep the lease during a long step, unless the worker is stopped. Raises LeaseLostError."""
    if process.is_shutting_down():
        repository.give_back(lease, now=clock())
        raise LeaseLostError
    if not repository.renew(lease, now=clock()):
        raise LeaseLostError


def _batches(rows: Iterator[Row]) -> Iterator[Sequence[Row]]:
    batch: list[Row] = []
    size = total = 0
    for row in rows:
        length = sum(map(len, row.cells))
        if batch and (len(batch) == parts.ROWS_IN_PART or size + length > parts.CHARACTERS_IN_PART):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
        total += length
        if total > MAX_CHARACTERS:
            raise UnreadableTableError("too_much_text", TOO_MUCH_TEXT)
    if batch:
        yield batch


def _begin(lease: FileLease, clock: Clock) -> bool:
    """Check the columns, and find rows that name the same person."""
    document = lease.document
    mapping = mapping_of(document)
    head = parts.read_head(lease.id)
    if head is None:
        return _expire(lease, clock)
    if columns.problems_of(mapping.columns, width=len(head.header), data=mapping.data):
        _store_people(lease, mapping)
        changes = {"status": F.UNMAPPED.value}
        if not repository.release(lease, changes, unset=("due_at",), now=clock()):
            raise LeaseLostError
        return False
    people: list[tuple[int, Sequence[tuple[str, str]]]] = []
    for number in range(document.get("parts", 0)):
        part = parts.read_rows(lease.id, number)
        if part is None:
            return _expire(lease, clock)
        _renew(lease, clock)
        people += checking.people_of(part.rows, mapping)
    keeps_last = document["duplicates"] == Duplicates.LAST
    found = checking.find_duplicates(people, keeps_last=keeps_last)
    number = document["check_number"]
    parts.write_duplicates(lease.id, found, check_number=number, until=document["content_until"])
    if not repository.release(lease, {"cursor": 0, "due_at": clock()}, now=clock()):
        raise LeaseLostError
    return True


def _store_people(lease: FileLease, mapping: RowMapping) -> None:
    """Store who is in rows that wait for their columns, as far as these are known."""
    for number in range(lease.document.get("parts", 0)):
        part = parts.read_rows(lease.id, number)
        rows = part.rows if part is not None else ()
        people = [each for row in rows for each in person_digests(mapping.fields_of(row.cells))]
        parts.write_people(lease.id, number, people)


def _check(lease: FileLease, clock: Clock) -> bool:
    """Check the next part."""
    document = lease.document
    number = document.get("cursor", 0)
    part = parts.read_rows(lease.id, number)
    if part is None:
        return _expire(lease, clock)
    mapping: RowMapping = mapping_of(document)
    checked = checking.check_part(
        part.rows,
        document=document,
        mapping=mapping,
        duplicates=parts.read_duplicates(lease.id, check_number=document["check_number"]),
        now=clock(),
    )
    findings = Findings(
        check_number=document["check_number"],
        rows={key: list(own) for key, own in checked.findings.items()},
    )
    parts.write_findings(lease.id, number, findings, people=checked.people)
    crash_points.reach(Boundary.FILE_CHECKED)
    now, is_last = clock(), number + 1 >= document.get("parts", 0)
    changes: dict[str, Any] = {
        "problems": checking.add_problems(document["problems"], checked.findings),
        "doubts": checking.add_problems(document["doubts"], checked.doubts),
        "messages": checking.add_totals(document["messages"], checked.totals),
    }
    if is_last:
        changes |= {"status": F.CHECKED.value, "checked_at": now}
    else:
        changes |= {"cursor": number + 1, "due_at": now}
    increments = {"good": checked.good, "wrong": checked.wrong, "skipped": checked.skipped}
    unset = ("due_at", "cursor") if is_last else ()
    if not repository.release(lease, changes, increments=increments, unset=unset, now=now):
        raise LeaseLostError
    log.info(
        "file_part_checked",
        file_id=str(lease.id),
        good=checked.good,
        wrong=checked.wrong,
        skipped=checked.skipped,
        is_last=is_last,
    )
    return not is_last


def _expire(lease: FileLease, clock: Clock) -> bool:
    """End the check of a file whose rows are gone."""
    _refuse(lease, "expired", "Its rows were removed before they were checked.", clock())
    return False


def _refuse(lease: FileLease, code: str, reason: str, now: datetime) -> None:
    if not repository.refuse(lease, code=code, reason=reason, now=now):
        raise LeaseLostError
    parts.delete_all(lease.id)
    log.info("file_refused", file_id=str(lease.id), code=code)
