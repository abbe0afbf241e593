"""Documents of :mod:`callbacks.models`, which describes their fields."""

from datetime import datetime
from typing import NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class CallbackSecretDocument(TypedDict):
    """A stored :class:`~callbacks.models.CallbackSecret`."""

    encrypted: str
    created_at: datetime
    until: NotRequired[datetime]


class CallbackDocument(TypedDict):
    """A stored :class:`~callbacks.models.Callback`."""

    _id: ObjectId
    url: str
    host: str
    events: list[str]
    state: str
    disabled_at: NotRequired[datetime]
    disabled_reason: NotRequired[str]
    secrets: list[CallbackSecretDocument]
    backfill_from: NotRequired[datetime]
    claim: NotRequired[ClaimDocument]
    claim_count: NotRequired[int]
    failures: int
    failing_since: NotRequired[datetime]
    open_until: NotRequired[datetime]
    last_success_at: NotRequired[datetime]
    last_failure_at: NotRequired[datetime]
    last_error: NotRequired[str]
    created_at: datetime
    updated_at: datetime


class CallbackTryDocument(TypedDict):
    """A stored :class:`~callbacks.models.CallbackTry`."""

    at: datetime
    duration_ms: int
    status_code: NotRequired[int]
    error: NotRequired[str]
    excerpt: NotRequired[str]


class CallbackMessageDocument(TypedDict):
    """A stored :class:`~callbacks.models.CallbackMessage`."""

    _id: str
    client_id: ObjectId
    type: str
    notification_id: NotRequired[ObjectId]
    body: str
    status: str
    tries: int
    next_try_at: NotRequired[datetime]
    claim: NotRequired[ClaimDocument]
    claim_count: NotRequired[int]
    history: NotRequired[list[CallbackTryDocument]]
    error: NotRequired[str]
    replayed_at: NotRequired[datetime]
    delivered_at: NotRequired[datetime]
    created_at: datetime
    purge_at: datetime


CALLBACKS = Documents("callbacks", CallbackDocument)
CALLBACK_MESSAGES = Documents("callback_messages", CallbackMessageDocument)
