"""Stores files of recipients, by compare-and-set on the status and, for a worker, on its lease."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.states import Duplicates, FileStatus
from notifications.documents.broadcasts import BROADCASTS
from notifications.documents.files import AUDIENCE_FILES, AudienceFileDocument
from notifyproject.db import paging
from notifyproject.db.leases import Claim, Leases, unclaimed
from notifyproject.db.paging import Cursor, Page
from notifyproject.platform import encryption

from ..actions.actions import InvalidStateError

F = FileStatus
CHUNK_BYTES = 2 * 1024 * 1024
CONTENT_LIFETIME = timedelta(days=7)
UPLOAD_LIFETIME = timedelta(days=1)
"""Of an upload that nobody has checked: an erasure doesn't find people in it."""
RETENTION = timedelta(days=90)  # Of counts and digests
LEASES = Leases(collection=AUDIENCE_FILES, length=timedelta(seconds=60), max_claims=3)
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
MAX_DUE_FILES = 100
MAX_STORED = 100
"""Files of a client whose content is stored at the same time."""
MAX_NAMED = 10  # Broadcasts of the same content that are named
ACTIVE = (F.READING.value, F.CHECKING.value)
"""Statuses in which a worker has something to do."""
MAPPABLE = (F.UNMAPPED, F.CHECKING, F.CHECKED)
"""Statuses of a file that is read."""
_DIGEST = "audience file of {}: {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLease:
    """A worker's lease on a file."""

    id: ObjectId
    claim: Claim[AudienceFileDocument]
    document: AudienceFileDocument

    @property
    def same_check(self) -> dict[str, Any]:
        """The condition of its writes: no other check was asked for, and nothing was removed."""
        return {
            "status": self.document["status"],
            "check_number": self.document["check_number"],
        }


def chunk_count(size: int) -> int:
    """Return how many chunks a file of this size has."""
    return -(-size // CHUNK_BYTES)


def chunk_size(size: int, number: int) -> int:
    """Return how many bytes a chunk of a file has."""
    return min(CHUNK_BYTES, size - number * CHUNK_BYTES)


def new_document(
    *,
    client_id: ObjectId,
    type_slug: str,
    size: int,
    is_test: bool,
    uploaded_by: str | None = None,
    now: datetime,
) -> AudienceFileDocument:
    """Return the document of a file that isn't uploaded yet."""
    document: AudienceFileDocument = {
        "_id": ObjectId(),
        "client_id": client_id,
        "type": type_slug,
        "size": size,
        "status": F.UPLOADING.value,
        "duplicates": Duplicates.REFUSE.value,
        "check_number": 0,
        "good": 0,
        "wrong": 0,
        "skipped": 0,
        "problems": [],
        "doubts": [],
        "messages": {},
        "claim_count": 0,
        "content_until": now + CONTENT_LIFETIME,
        "purge_at": now + RETENTION,
        "created_at": now,
        "updated_at": now,
    }
    if is_test:
        document["is_test"] = True
    if uploaded_by is not None:
        document["uploaded_by"] = uploaded_by
    return document


def get(file_id: ObjectId, *, client_id: ObjectId | None = None) -> AudienceFileDocument | None:
    """Return a file, with ``client_id`` only if it is that client's. Raises PyMongoError."""
    query: dict[str, Any] = {"_id": file_id}
    if client_id is not None:
        query["client_id"] = client_id
    return AUDIENCE_FILES().find_one(query)


def page(
    *, client_id: ObjectId, limit: int, cursor: Cursor | None = None
) -> Page[AudienceFileDocument]:
    """Return up to ``limit`` of a client's files, newest first. Raises PyMongoError."""
    return paging.page(
        AUDIENCE_FILES, {"client_id": client_id}, order=NEWEST_FIRST, limit=limit, cursor=cursor
    )


def has_room(client_id: ObjectId, *, now: datetime) -> bool:
    """Return whether a client may store the content of another file."""
    recent = {"client_id": client_id, "created_at": {"$gt": now - CONTENT_LIFETIME}}
    stored = {**recent, "status": {"$ne": F.REMOVED.value}}
    count = AUDIENCE_FILES().count_documents(stored, limit=MAX_STORED, hint="fil_client_created")
    return count < MAX_STORED


def begin_check(
    document: AudienceFileDocument,
    *,
    columns: Sequence[str] | None,
    duplicates: Duplicates,
    country: str | None,
    now: datetime,
) -> AudienceFileDocument:
    """Have a file read, or checked again. Raises InvalidStateError if it has changed."""
    is_read = document["status"] in MAPPABLE
    changes: dict[str, Any] = {
        "status": (F.CHECKING if is_read else F.READING).value,
        "duplicates": duplicates.value,
        "due_at": now,
        "updated_at": now,
        "claim_count": 0,
        **cleared(),
    }
    if columns is not None:
        changes["columns"] = list(columns)
    if country is not None:
        changes["country"] = country
    unset = {"cursor": "", "checked_at": ""} | ({} if country else {"country": ""})
    changed = AUDIENCE_FILES().find_one_and_update(
        {
            "_id": document["_id"],
            "status": document["status"],
            "check_number": document["check_number"],
            "sealed_at": None,
        },
        {"$set": changes, "$unset": {**unset, "claim": ""}, "$inc": {"check_number": 1}},
        return_document=ReturnDocument.AFTER,
    )
    if changed is None:
        raise InvalidStateError("The file changed meanwhile, or is being sent.")
    return changed


def cleared() -> dict[str, Any]:
    """Return the fields of a file of which a check has found nothing yet."""
    return {"good": 0, "wrong": 0, "skipped": 0, "problems": [], "doubts": [], "messages": {}}


def seal(file_id: ObjectId, *, check_number: int, now: datetime) -> bool:
    """Fix a checked file for its broadcast. Return False if it isn't as it was checked."""
    wanted = {"_id": file_id, "status": F.CHECKED.value, "check_number": check_number}
    sealed = {"sealed_at": {"$ifNull": ["$sealed_at", now]}}
    return AUDIENCE_FILES().update_one(wanted, [{"$set": sealed}]).matched_count > 0


def remove(document: AudienceFileDocument, *, now: datetime) -> AudienceFileDocument | None:
    """Mark a file as removed. Return it, or None if a broadcast has sealed it meanwhile."""
    removed = {"status": F.REMOVED.value, "content_until": now, "updated_at": now}
    return AUDIENCE_FILES().find_one_and_update(
        {"_id": document["_id"], "sealed_at": document.get("sealed_at")},
        {"$set": removed, "$unset": {"due_at": "", "cursor": "", "claim": ""}},
        return_document=ReturnDocument.AFTER,
    )


def acquire_lease(file_id: ObjectId, *, worker: str, now: datetime) -> FileLease | None:
    """Lease a file. Return None if there is nothing to do, or another worker has it."""
    wanted = {"_id": file_id, "status": {"$in": ACTIVE}, "due_at": {"$lte": now}}
    changes = {"due_at": "$claim.lease_until", "updated_at": now}
    claim = LEASES.claim_one(wanted, changes=changes, worker=worker, now=now)
    return FileLease(id=claim.id, claim=claim, document=claim.document) if claim else None


def renew(lease: FileLease, *, now: datetime) -> bool:
    """Lease a file for longer. Return False if the lease is lost.

    It isn't progress: a step that a lost worker didn't end begins again.
    """
    until = now + LEASES.length
    changes = {"claim.lease_until": until, "due_at": until, "updated_at": now}
    return lease.claim.write({"$set": changes}, where=lease.same_check) is not None


def release(
    lease: FileLease,
    changes: Mapping[str, Any],
    *,
    increments: Mapping[str, int] | None = None,
    unset: Sequence[str] = (),
    now: datetime,
) -> bool:
    """Store a step's result, and release the file. Return False if the lease was lost."""
    update: dict[str, Any] = {"$set": {**changes, "updated_at": now}}
    if increments:
        update["$inc"] = dict(increments)
    if unset:
        update["$unset"] = dict.fromkeys(unset, "")
    return lease.claim.release(update, where=lease.same_check)


def give_back(lease: FileLease, *, until: datetime | None = None, now: datetime) -> bool:
    """Release a file without a step, due at once or at another time."""
    changes = {"$set": {"due_at": until or now, "updated_at": now}}
    return lease.claim.give_back(changes, where=lease.same_check)


def refuse(lease: FileLease, *, code: str, reason: str, now: datetime) -> bool:
    """End a file that can't be read. Return False if the lease was lost."""
    changes = {"status": F.REFUSED.value, "failure_code": code, "failure_reason": reason}
    return release(lease, changes, unset=("due_at",), now=now)


def due_files(*, until: datetime, now: datetime) -> list[tuple[ObjectId, datetime]]:
    """Return the files without a lease that are due by ``until``, oldest first."""
    query = {"due_at": {"$lte": until}, "status": {"$in": ACTIVE}, **unclaimed(now=now)}
    found = AUDIENCE_FILES().find(query, {"due_at": 1}).sort("due_at", 1).hint("fil_due")
    return [(document["_id"], document["due_at"]) for document in found.limit(MAX_DUE_FILES)]


def has_unread(*, until: datetime) -> bool:
    """Return whether a file of before a time is being read or checked: nobody is found in it."""
    query = {"due_at": {"$exists": True}, "created_at": {"$lte": until}}
    return AUDIENCE_FILES().find_one(query, {"_id": 1}, hint="fil_due") is not None


def are_sent(file_ids: Collection[ObjectId], *, at: datetime) -> bool:
    """Return whether a worker sends a page of one of these files."""
    query = {"_id": {"$in": list(file_ids)}, "claim.lease_until": {"$gt": at}}
    return bool(file_ids) and BROADCASTS().find_one(query, {"_id": 1}) is not None


def digest_of(client_id: ObjectId, what: str, value: bytes) -> str:
    """Return a keyed digest by which a client's same content or header is known."""
    return encryption.keyed_digest(value, associated_data=_DIGEST.format(client_id, what))


def sent_before(document: AudienceFileDocument) -> list[tuple[ObjectId, datetime]]:
    """Return the broadcasts of a client's files with the same content, and when they began."""
    digest = document.get("digest")
    if digest is None:
        return []
    query = {"client_id": document["client_id"], "digest": digest, "sealed_at": {"$ne": None}}
    found = (
        AUDIENCE_FILES()
        .find(query, {"sealed_at": 1}, hint="fil_client_digest")
        .limit(MAX_NAMED + 1)
    )
    others = [(each["_id"], each["sealed_at"]) for each in found if each["_id"] != document["_id"]]
    return sorted(others, key=lambda other: other[1], reverse=True)[:MAX_NAMED]


def known_columns(client_id: ObjectId, *, type_slug: str, header_digest: str) -> list[str] | None:
    """Return the columns of a client's last checked file of a type with the same header."""
    query = {
        "client_id": client_id,
        "type": type_slug,
        "header_digest": header_digest,
        "status": F.CHECKED.value,
    }
    found = AUDIENCE_FILES().find(query, {"columns": 1}, hint="fil_client_created")
    for document in found.sort(NEWEST_FIRST).limit(1):
        return document.get("columns")
    return None
