"""What a client does with a file: it uploads, checks, and removes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from pymongo.errors import DuplicateKeyError

from domain.countries import COUNTRIES
from domain.states import Duplicates, FileStatus, Priority
from domain.tables.table import MAX_BYTES
from notifications.documents.files import AUDIENCE_FILES, AudienceFileDocument

from ..actions.actions import InvalidStateError
from ..catalog import types
from ..intake import idempotency
from ..intake.requests import Caller
from ..validation import FieldProblem, InvalidRequestError, ProblemCollector
from . import columns, parts, repository, runner, type_data
from .parts import Head

F = FileStatus
REMOVED = "The rows of the file are removed. Upload it again."
SEALED = "The file is being sent, or has been. Upload it again."


class NewFileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A file to upload."""

    type: str
    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedFile:
    """A file that can be uploaded."""

    document: AudienceFileDocument
    is_replayed: bool  # The idempotency key was already used for this file


def create(
    request: NewFileRequest, *, caller: Caller, uploaded_by: str | None = None, now: datetime
) -> CreatedFile:
    """Store a file without content, once per idempotency key.

    ``uploaded_by`` is the member of staff whose it is, if it isn't a client's. Raises
    InvalidRequestError, KeyReusedError, InvalidStateError, and PyMongoError.
    """
    fingerprint = idempotency.fingerprint_of(request, kind=b"file")
    existing = idempotency.find(caller=caller, fingerprint=fingerprint)
    if existing is not None:
        (file_id,) = existing["notification_ids"]
        if (stored := repository.get(file_id)) is not None:
            return CreatedFile(document=stored, is_replayed=True)
    type_slug = _validate(request)
    if not repository.has_room(caller.client_id, now=now):
        raise InvalidStateError(
            f"{repository.MAX_STORED} files are stored. Remove some, or wait: each is kept for "
            f"{repository.CONTENT_LIFETIME.days} days."
        )
    document = repository.new_document(
        client_id=caller.client_id,
        type_slug=type_slug,
        size=request.size,
        is_test=caller.is_test,
        uploaded_by=uploaded_by,
        now=now,
    )
    existing = idempotency.reserve(
        caller=caller, notification_ids=[document["_id"]], fingerprint=fingerprint, now=now
    )
    if existing is not None:
        (document["_id"],) = existing["notification_ids"]
    file_id = document["_id"]
    parts.write_head(file_id, Head(name=request.name), until=document["content_until"])
    try:
        AUDIENCE_FILES().insert_one(document)
    except DuplicateKeyError:
        # A concurrent call with the same idempotency key.
        return CreatedFile(document=repository.get(file_id) or document, is_replayed=True)
    return CreatedFile(document=document, is_replayed=False)


def _validate(request: NewFileRequest) -> str:
    """Return the type's slug. Raises InvalidRequestError."""
    problems = ProblemCollector()
    problems.check_one_line(request.name, "/name")
    if not 0 < request.size <= MAX_BYTES:
        expected = f"Must be from 1 to {MAX_BYTES}: a file has at most {MAX_BYTES // 2**20} MB."
        problems.add("/size", "out_of_range", expected)
    slug = request.type
    try:
        config = types.get_type(request.type)
    except types.UnknownTypeError:
        problems.add("/type", "unknown_type", "Unknown type.")
    else:
        slug = config.slug
        if config.priority is Priority.CRITICAL:
            problems.add("/type", "critical_type", "Critical types can't be sent to a file.")
        elif types.sensitive_variables(slug):
            expected = "Types with sensitive variables can't be sent to a file."
            problems.add("/type", "secret_type", expected)
    problems.raise_if_any()
    return slug


def store_chunk(
    document: AudienceFileDocument, number: int, content: bytes, *, now: datetime
) -> None:
    """Store a chunk of an upload, or replace it. Raises InvalidRequestError, InvalidStateError."""
    if document["status"] != F.UPLOADING:
        raise InvalidStateError("The upload is complete, and can't be changed.")
    expected = repository.chunk_size(document["size"], number)
    if len(content) != expected:
        detail = f"This chunk has {expected} bytes, not {len(content)}."
        raise InvalidRequestError([FieldProblem("/content", "wrong_length", detail)])
    parts.write_chunk(document["_id"], number, content, until=now + repository.UPLOAD_LIFETIME)


def missing_chunks(document: AudienceFileDocument) -> list[int]:
    """Return the numbers of the chunks that aren't stored."""
    if document["status"] != F.UPLOADING:
        return []
    count = repository.chunk_count(document["size"])
    stored = parts.stored_chunks(document["_id"], count=count)
    return [number for number in range(count) if number not in stored]


def check(
    document: AudienceFileDocument,
    *,
    targets: Sequence[str] | None,
    duplicates: Duplicates,
    country: str | None,
    now: datetime,
) -> AudienceFileDocument:
    """Have an uploaded file read and checked, or checked again with other columns.

    Raises InvalidRequestError and InvalidStateError.
    """
    if country is not None and country not in COUNTRIES:
        expected = "Expected a country by its code, such as PT."
        raise InvalidRequestError([FieldProblem("/country", "unknown_country", expected)])
    data = type_data.read(document["type"])
    if targets is not None and (unknown := columns.unknown_targets(targets, data=data)):
        raise InvalidRequestError(unknown)
    status = FileStatus(document["status"])
    if document.get("sealed_at") is not None:
        raise InvalidStateError(SEALED)
    if status in repository.MAPPABLE:
        head = parts.read_head(document["_id"])
        if head is None or now >= document["content_until"]:
            raise InvalidStateError(REMOVED)
        if targets is not None:
            found = columns.problems_of(targets, width=len(head.header), data=data)
            if found:
                raise InvalidRequestError(found)
    elif status is F.UPLOADING:
        if missing := missing_chunks(document):
            named = ", ".join(map(str, missing))
            raise InvalidStateError(f"The upload lacks chunks: {named}.")
    else:
        raise InvalidStateError(_WHY_NOT[status])
    changed = repository.begin_check(
        document, columns=targets, duplicates=duplicates, country=country, now=now
    )
    runner.enqueue(document["_id"], now=now)
    return changed


_WHY_NOT = {
    F.READING: "The file is being read.",
    F.REFUSED: "The file can't be read. Upload another one.",
    F.REMOVED: REMOVED,
}


def remove(document: AudienceFileDocument, *, now: datetime) -> AudienceFileDocument:
    """Remove what a file contains. A broadcast of it fails if rows are left.

    ``document`` was read before its broadcast was looked for. Raises InvalidStateError if one was
    begun since.
    """
    removed = repository.remove(document, now=now)
    if removed is None:
        raise InvalidStateError("The file is being sent. Cancel its broadcast first.")
    parts.delete_all(document["_id"])
    return removed


def column_problems(document: AudienceFileDocument, head: Head | None) -> list[FieldProblem]:
    """Return why a file's columns don't fit its type."""
    if document["status"] != F.UNMAPPED or head is None:
        return []
    data = type_data.read(document["type"])
    return columns.problems_of(document.get("columns", []), width=len(head.header), data=data)
