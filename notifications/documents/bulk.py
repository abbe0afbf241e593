"""Documents of :mod:`notifications.models.bulk`, which describes their fields."""

from datetime import datetime
from typing import NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class BulkOperationDocument(TypedDict):
    """A stored :class:`~notifications.models.bulk.BulkOperation`."""

    _id: ObjectId
    action: str
    stage: str
    match: str
    order: str
    described: list[str]
    channels: list[str]
    only: dict[str, str | None]
    send_at: NotRequired[datetime]
    frozen_at: datetime
    after_at: NotRequired[datetime]
    after_id: NotRequired[ObjectId]
    next_at: NotRequired[datetime]
    claim: NotRequired[ClaimDocument]
    claim_count: int
    found: dict[str, int]
    found_count: int
    is_capped: bool
    includes: list[str]
    per_second: int
    reason: NotRequired[str]
    duplicate_reason: NotRequired[str]
    counts: dict[str, int]
    reasons: dict[str, int]
    problem: NotRequired[str]
    recent: NotRequired[list[str]]
    acted_at: NotRequired[datetime]
    is_proven: NotRequired[bool]
    created_by: ObjectId
    created_by_name: str
    started_by: NotRequired[ObjectId]
    started_by_name: NotRequired[str]
    created_at: datetime
    started_at: NotRequired[datetime]
    finished_at: NotRequired[datetime]
    updated_at: datetime
    purge_at: NotRequired[datetime]


class OperationResultDocument(TypedDict):
    """A stored :class:`~notifications.models.bulk.OperationResult`."""

    _id: str
    operation_id: ObjectId
    notification_id: ObjectId
    channel: str
    risk: str
    why: str
    outcome: str
    reason: NotRequired[str]
    detail: NotRequired[str]
    at: datetime
    purge_at: NotRequired[datetime]


OPERATIONS = Documents("operations", BulkOperationDocument)
OPERATION_RESULTS = Documents("operation_results", OperationResultDocument)
