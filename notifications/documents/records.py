"""Documents of :mod:`notifications.models.records`, which describes their fields."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class DeliveryAttemptDocument(TypedDict):
    """A stored :class:`~notifications.models.records.DeliveryAttempt`."""

    _id: str
    notification_id: ObjectId
    channel: str
    device_id: NotRequired[str]
    platform: NotRequired[str]
    attempt_number: int
    status: str
    provider: NotRequired[str]
    provider_message_id: NotRequired[str]
    platform_response: NotRequired[Any]
    error_code: NotRequired[str]
    error_message: NotRequired[str]
    worker: NotRequired[str]
    attempted_at: datetime
    finished_at: NotRequired[datetime]
    duration_ms: NotRequired[int]
    units: NotRequired[int]
    delivered_at: NotRequired[datetime]
    opened_at: NotRequired[datetime]
    purge_at: NotRequired[datetime]


class StoredRefusal(TypedDict):
    """A refused item of a bulk request, in :attr:`IdempotencyKeyDocument.refusals`."""

    place: int
    why: str
    problems: NotRequired[list[list[str]]]
    notification_id: NotRequired[ObjectId | None]
    first: NotRequired[int]
    scope: NotRequired[str]


class IdempotencyKeyDocument(TypedDict):
    """A stored :class:`~notifications.models.records.IdempotencyKey`."""

    _id: str
    fingerprint: str
    notification_ids: list[ObjectId]
    refusals: NotRequired[list[StoredRefusal]]
    broadcast_id: NotRequired[ObjectId]
    created_at: datetime
    stored_at: NotRequired[datetime]
    expires_at: datetime


class Billing(TypedDict, total=False):
    """What a receipt says about the price of a message."""

    units: int
    cost: str
    currency: str


class ProviderEventDocument(TypedDict):
    """A stored :class:`~notifications.models.records.ProviderEvent`."""

    _id: str
    provider: NotRequired[str]
    notification_id: NotRequired[ObjectId]
    channel: NotRequired[str]
    kind: NotRequired[str]
    at: NotRequired[datetime]
    reason: NotRequired[str]
    units: NotRequired[int]
    cost: NotRequired[str]
    currency: NotRequired[str]
    expires_at: datetime


class HeartbeatDocument(TypedDict):
    """A stored :class:`~notifications.models.records.Heartbeat`."""

    _id: str
    at: datetime
    started_at: NotRequired[datetime]
    queues: NotRequired[list[str]]
    version: NotRequired[str]


class StoredReceipt(TypedDict):
    """A :class:`~providers.contract.Receipt`, in :attr:`EarlyReceiptDocument.receipt`."""

    reference: str | None
    provider_id: str | None
    kind: str
    at: datetime
    reason: str | None
    event_id: str
    address: str | None
    effect: str | None
    other_ids: list[str]
    code: NotRequired[str]
    units: NotRequired[int]
    cost: NotRequired[str]
    currency: NotRequired[str]
    is_pumping: NotRequired[bool]


class EarlyReceiptDocument(TypedDict):
    """A stored :class:`~notifications.models.records.EarlyReceipt`."""

    _id: str
    provider: str
    receipt: StoredReceipt
    expires_at: datetime


class InboxVisitDocument(TypedDict):
    """A stored :class:`~notifications.models.records.InboxVisit`."""

    _id: str
    seen_until: datetime
    read_before: NotRequired[datetime]
    read_at: NotRequired[datetime]


class SentTestMessageDocument(TypedDict):
    """A stored :class:`~notifications.models.records.SentTestMessage`."""

    _id: ObjectId
    client_id: ObjectId
    notification_id: ObjectId
    user_id: NotRequired[str]
    type: str
    channel: str
    address: str
    content: dict[str, Any]
    sent_at: datetime
    purge_at: datetime


class TestClockDocument(TypedDict):
    """A stored :class:`~notifications.models.records.TestClock`."""

    _id: ObjectId
    stands_at: datetime
    target: NotRequired[datetime]
    claim: NotRequired[ClaimDocument]
    claim_count: int
    purge_at: datetime


class LoggedRequestDocument(TypedDict):
    """A stored :class:`~notifications.models.records.LoggedRequest`."""

    _id: ObjectId
    client_id: ObjectId
    request_id: str
    method: str
    path: str
    status: int
    code: NotRequired[str]
    errors: NotRequired[list[str]]
    duration_ms: int
    body: NotRequired[str]
    body_bytes: int
    notification_id: NotRequired[ObjectId]
    at: datetime
    purge_at: datetime


class WebhookLogDocument(TypedDict):
    """A stored :class:`~notifications.models.records.WebhookLog`."""

    _id: ObjectId
    provider: str
    received_at: datetime
    body: str
    search_keys: list[str]
    event_count: int
    applied_count: int
    unmatched_count: int
    unreadable_count: int
    processed_at: NotRequired[datetime]
    purge_at: NotRequired[datetime]


DELIVERY_ATTEMPTS = Documents("delivery_attempts", DeliveryAttemptDocument)
IDEMPOTENCY_KEYS = Documents("idempotency_keys", IdempotencyKeyDocument)
PROVIDER_EVENTS = Documents("provider_events", ProviderEventDocument)
HEARTBEATS = Documents("heartbeats", HeartbeatDocument)
EARLY_RECEIPTS = Documents("early_receipts", EarlyReceiptDocument)
INBOX_VISITS = Documents("inbox_visits", InboxVisitDocument)
TEST_OUTBOX = Documents("test_outbox", SentTestMessageDocument)
TEST_CLOCKS = Documents("test_clocks", TestClockDocument)
REQUEST_LOG = Documents("request_log", LoggedRequestDocument)
WEBHOOK_LOG = Documents("webhook_log", WebhookLogDocument)
