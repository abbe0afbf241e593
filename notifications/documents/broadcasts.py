"""Documents of :mod:`notifications.models.broadcasts`, which describes their fields."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class SkippedRecipients(TypedDict):
    """Recipients without a notification for one reason, in ``skipped`` and ``rejected``."""

    count: int
    examples: list[str]


class ApprovalDocument(TypedDict):
    """The approval of a broadcast, in :attr:`BroadcastDocument.approval`."""

    revision: int
    fingerprint: NotRequired[str]
    template_version: int
    design: int
    authors: list[str]
    audience_size: NotRequired[int]
    requested_at: NotRequired[datetime]
    expires_at: NotRequired[datetime]
    decided_at: NotRequired[datetime]
    decided_by: NotRequired[str]
    reason: NotRequired[str]
    overridden_at: NotRequired[datetime]
    stopped_at: NotRequired[datetime]


class BroadcastDocument(TypedDict):
    """A stored :class:`~notifications.models.broadcasts.Broadcast`."""

    _id: ObjectId
    client_id: ObjectId
    idempotency_key: NotRequired[str]
    request_id: NotRequired[str]
    is_test: NotRequired[bool]
    name: NotRequired[str]
    type: str
    priority: str
    request: dict[str, Any]
    audience: str
    topic: NotRequired[str]
    user_ids: NotRequired[list[str]]
    file_id: NotRequired[ObjectId]
    file_check: NotRequired[int]
    audience_size: NotRequired[int]
    scheduled_at: NotRequired[datetime]
    spread_seconds: NotRequired[int]
    local_hour: NotRequired[int]
    expires_at: NotRequired[datetime]
    status: str
    approval: NotRequired[ApprovalDocument]
    authors: NotRequired[list[str]]
    due_at: NotRequired[datetime]
    claim: NotRequired[ClaimDocument]
    claim_count: int
    cursor: NotRequired[str]
    is_waiting: bool
    accepted: int
    skipped: dict[str, SkippedRecipients]
    rejected: dict[str, SkippedRecipients]
    withdrawn: int
    failure_code: NotRequired[str]
    failure_reason: NotRequired[str]
    started_at: NotRequired[datetime]
    finished_at: NotRequired[datetime]
    purge_at: NotRequired[datetime]
    created_at: datetime
    updated_at: datetime


BROADCASTS = Documents("broadcasts", BroadcastDocument)
