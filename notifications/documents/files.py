"""Documents of :mod:`notifications.models.files`, which describes their fields."""

from datetime import datetime
from typing import NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class RowProblem(TypedDict):
    """A sentence about rows of a file, in ``problems``."""

    code: str
    target: str
    detail: str
    is_skipped: bool
    count: int
    rows: list[int]


class MessagesTotal(TypedDict):
    """The messages of a channel, in ``messages``."""

    messages: int
    units: dict[str, int]


class AudienceFileDocument(TypedDict):
    """A stored :class:`~notifications.models.files.AudienceFile`."""

    _id: ObjectId
    client_id: ObjectId
    uploaded_by: NotRequired[str]
    is_test: NotRequired[bool]
    type: str
    size: int
    status: str
    digest: NotRequired[str]
    header_digest: NotRequired[str]
    format: NotRequired[str]
    charset: NotRequired[str]
    separator: NotRequired[str]
    rows: NotRequired[int]
    parts: NotRequired[int]
    columns: NotRequired[list[str]]
    duplicates: str
    country: NotRequired[str]
    check_number: int
    cursor: NotRequired[int]
    good: int
    wrong: int
    skipped: int
    problems: list[RowProblem]
    doubts: list[RowProblem]
    messages: dict[str, MessagesTotal]
    failure_code: NotRequired[str]
    failure_reason: NotRequired[str]
    due_at: NotRequired[datetime]
    claim: NotRequired[ClaimDocument]
    claim_count: int
    content_until: datetime
    sealed_at: NotRequired[datetime]
    checked_at: NotRequired[datetime]
    purge_at: NotRequired[datetime]
    created_at: datetime
    updated_at: datetime


class AudienceFilePartDocument(TypedDict):
    """A stored :class:`~notifications.models.files.AudienceFilePart`."""

    _id: str
    file_id: ObjectId
    content: str
    findings: NotRequired[str]
    check_number: NotRequired[int]
    people: NotRequired[list[str]]
    purge_at: datetime


AUDIENCE_FILES = Documents("audience_files", AudienceFileDocument)
AUDIENCE_FILE_PARTS = Documents("audience_file_parts", AudienceFilePartDocument)
