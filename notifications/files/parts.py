"""The encrypted parts of files: chunks of the upload, the header, and the rows with findings."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import msgspec
from bson import ObjectId

from domain.tables.table import Row, RowFault
from notifications.documents.files import AUDIENCE_FILE_PARTS, AudienceFilePartDocument
from notifyproject.platform import encryption

CHUNK, HEAD, ROWS, DUPLICATES = "chunk", "head", "rows", "duplicates"
ROWS_IN_PART = 1_000  # As many recipients as a page of a broadcast has
CHARACTERS_IN_PART = 2_000_000
"""A part with more ends early: encrypted, it is below the 16 MB of a document."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a file has besides its rows: texts, and where the rows are."""

    name: str
    sheet: str | None = None
    header: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    """The number of the first row of each part."""

    def part_of(self, row: int) -> int:
        """Return the part that would have a row."""
        return max(bisect_right(self.starts, row) - 1, 0)


class Finding(msgspec.Struct, frozen=True, array_like=True):
    """What a check found of a row."""

    code: str
    target: str
    detail: str
    is_skipped: bool = False


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found of the rows of a part, by their numbers."""

    check_number: int
    rows: dict[str, list[Finding]]


class _Rows(msgspec.Struct, frozen=True):
    rows: list[tuple[int, list[str], str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPart:
    """Some rows of a file, and what was found of them; None before the check."""

    rows: Sequence[Row]
    findings: Findings | None
    people: int
    """How many ways of naming somebody are stored of it. An erasure leaves fewer."""


def part_id(file_id: ObjectId, kind: str, number: int = 0) -> str:
    """Return the ID of a part, which its content is bound to."""
    return f"{file_id}:{kind}:{number}"


def write_chunk(file_id: ObjectId, number: int, content: bytes, *, until: datetime) -> None:
    """Store a chunk of an upload. Another one of this number is replaced."""
    _write(file_id, CHUNK, number, content, until=until)


def read_chunk(file_id: ObjectId, number: int) -> bytes | None:
    """Return a chunk of an upload, or None without one."""
    return _read(file_id, CHUNK, number)


def stored_chunks(file_id: ObjectId, *, count: int) -> set[int]:
    """Return the numbers of the chunks that are stored, of this many."""
    ids = {part_id(file_id, CHUNK, number): number for number in range(count)}
    found = AUDIENCE_FILE_PARTS().find({"_id": {"$in": list(ids)}}, {"_id": 1})
    return {ids[document["_id"]] for document in found}


def delete_chunks(file_id: ObjectId, *, count: int) -> None:
    """Delete an upload whose rows are stored."""
    ids = [part_id(file_id, CHUNK, number) for number in range(count)]
    AUDIENCE_FILE_PARTS().delete_many({"_id": {"$in": ids}})


def write_head(file_id: ObjectId, head: Head, *, until: datetime) -> None:
    """Store a file's name, sheet, and header."""
    _write(file_id, HEAD, 0, msgspec.json.encode(head), until=until)


def read_head(file_id: ObjectId) -> Head | None:
    """Return a file's name, sheet, and header, or None once they are removed."""
    raw = _read(file_id, HEAD, 0)
    return None if raw is None else msgspec.json.decode(raw, type=Head)


def write_duplicates(
    file_id: ObjectId, rows: Mapping[int, str], *, check_number: int, until: datetime
) -> None:
    """Store the rows that name a person whom another row names, with the field that both have.

    Each check has its own, since it may keep others of them than a check before it, whose worker
    may be late.
    """
    _write(file_id, DUPLICATES, check_number, msgspec.json.encode(rows), until=until)


def read_duplicates(file_id: ObjectId, *, check_number: int) -> Mapping[int, str]:
    """Return what :func:`write_duplicates` stored for a check."""
    raw = _read(file_id, DUPLICATES, check_number)
    return {} if raw is None else msgspec.json.decode(raw, type=dict[int, str])


def write_rows(
    file_id: ObjectId, number: int, rows: Iterable[Row], *, people: Iterable[str], until: datetime
) -> None:
    """Store a part of a file's rows, without findings.

    One that is stored stays: its rows are the same, and it may be checked by now.
    """
    document = _document(
        file_id, ROWS, number, msgspec.json.encode(_stored(rows)), people=people, until=until
    )
    AUDIENCE_FILE_PARTS().update_one(
        {"_id": document["_id"]}, {"$setOnInsert": document}, upsert=True
    )


def read_rows(file_id: ObjectId, number: int) -> RowsPart | None:
    """Return a part of a file's rows, or None once it is removed."""
    document = AUDIENCE_FILE_PARTS().find_one({"_id": part_id(file_id, ROWS, number)})
    return None if document is None else rows_of(document)


def rows_of(document: AudienceFilePartDocument) -> RowsPart:
    """Return the rows in a stored part. Raises DecryptionError."""
    raw = encryption.decrypt(document["content"], associated_data=document["_id"])
    findings = document.get("findings")
    return RowsPart(
        rows=[
            Row(number, tuple(cells), RowFault(fault) if fault else None)
            for number, cells, fault in msgspec.json.decode(raw, type=_Rows).rows
        ],
        findings=None if findings is None else msgspec.json.decode(findings, type=Findings),
        people=len(document.get("people", ())),
    )


def write_findings(
    file_id: ObjectId, number: int, findings: Findings, *, people: Iterable[str]
) -> None:
    """Store what a check found of a part, unless a later check has."""
    not_later = {"check_number": {"$not": {"$gt": findings.check_number}}}
    AUDIENCE_FILE_PARTS().update_one(
        {"_id": part_id(file_id, ROWS, number), **not_later},
        {
            "$set": {
                "findings": msgspec.json.encode(findings).decode(),
                "check_number": findings.check_number,
                "people": sorted(set(people)),
            }
        },
    )


def write_people(file_id: ObjectId, number: int, people: Iterable[str]) -> None:
    """Store who is in the rows of a part that isn't checked."""
    AUDIENCE_FILE_PARTS().update_one(
        {"_id": part_id(file_id, ROWS, number)}, {"$set": {"people": sorted(set(people))}}
    )


def parts_with(people: Sequence[str], *, limit: int) -> list[AudienceFilePartDocument]:
    """Return parts with rows of a person."""
    found = AUDIENCE_FILE_PARTS().find({"people": {"$in": list(people)}}, hint="flp_people")
    return list(found.limit(limit))


def has_people(file_id: ObjectId, number: int, *, count: int) -> bool:
    """Return whether nobody was erased from a part since it was read, or the part removed."""
    unchanged = {"_id": part_id(file_id, ROWS, number), "people": {"$size": count}}
    return AUDIENCE_FILE_PARTS().find_one(unchanged, {"_id": 1}) is not None


def replace_rows(
    document: AudienceFilePartDocument, rows: Iterable[Row], *, without: Sequence[str]
) -> bool:
    """Store other rows in a part, without some people. Return False if it changed meanwhile."""
    content = encryption.encrypt(
        msgspec.json.encode(_stored(rows)), associated_data=document["_id"]
    )
    changed = AUDIENCE_FILE_PARTS().update_one(
        {"_id": document["_id"], "content": document["content"]},
        {"$set": {"content": content}, "$pullAll": {"people": list(without)}},
    )
    return changed.modified_count > 0


def delete_all(file_id: ObjectId) -> None:
    """Delete all parts of a file."""
    AUDIENCE_FILE_PARTS().delete_many({"file_id": file_id}, hint="flp_file")


def _stored(rows: Iterable[Row]) -> _Rows:
    return _Rows([(row.number, list(row.cells), row.fault) for row in rows])


def _write(file_id: ObjectId, kind: str, number: int, content: bytes, *, until: datetime) -> None:
    document = _document(file_id, kind, number, content, until=until)
    AUDIENCE_FILE_PARTS().replace_one({"_id": document["_id"]}, document, upsert=True)


def _document(
    file_id: ObjectId,
    kind: str,
    number: int,
    content: bytes,
    *,
    people: Iterable[str] = (),
    until: datetime,
) -> AudienceFilePartDocument:
    own_id = part_id(file_id, kind, number)
    document: AudienceFilePartDocument = {
        "_id": own_id,
        "file_id": file_id,
        "content": encryption.encrypt(content, associated_data=own_id),
        "purge_at": until,
    }
    if named := sorted(set(people)):
        document["people"] = named
    return document


def encrypted_parts() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each encrypted part, and a function that encrypts it under the newest key.

    The function returns whether it changed the part. Raises DecryptionError.
    """
    for document in AUDIENCE_FILE_PARTS().find({}, {"content": 1}):
        yield document["content"], partial(_reencrypt, document["_id"], document["content"])


def _reencrypt(own_id: str, content: str) -> bool:
    plain = encryption.decrypt(content, associated_data=own_id)
    changed = AUDIENCE_FILE_PARTS().update_one(
        {"_id": own_id, "content": content},
        {"$set": {"content": encryption.encrypt(plain, associated_data=own_id)}},
    )
    return changed.modified_count > 0


def _read(file_id: ObjectId, kind: str, number: int) -> bytes | None:
    document = AUDIENCE_FILE_PARTS().find_one(
        {"_id": part_id(file_id, kind, number)}, {"content": 1}
    )
    if document is None:
        return None
    return encryption.decrypt(document["content"], associated_data=document["_id"])


def findings_for(part: RowsPart, check_number: int) -> Mapping[str, Sequence[Finding]] | None:
    """Return what a check found of a part; None if it hasn't been there."""
    if part.findings is None or part.findings.check_number != check_number:
        return None
    return part.findings.rows
