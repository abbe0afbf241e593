"""Documents of :mod:`notifications.models.notification`, which describes their fields."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class RecipientCopyDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.RecipientCopy`."""

    device_ids: list[str]
    email: NotRequired[str]
    phone: NotRequired[str]
    room: NotRequired[str]
    name: NotRequired[str]
    locale: NotRequired[str]
    timezone: NotRequired[str]
    given: NotRequired[list[str]]


class AttachmentDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.Attachment`."""

    url: str
    filename: str
    content_type: str


class StoredPushOptions(TypedDict, total=False):
    """How a device presents a push, in :attr:`ContentDocument.push`."""

    sound: str
    badge: int
    interruption_level: str
    android_channel_id: str


class StoredLook(TypedDict):
    """What gives a message its look, in :attr:`ContentDocument.look`."""

    design: int
    brand: NotRequired[str]
    layout: NotRequired[str]


class ContentDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.Content`."""

    subject: NotRequired[str]
    body: NotRequired[str]
    template_id: NotRequired[str]
    template_version: NotRequired[int]
    is_masked: NotRequired[bool]
    image_url: NotRequired[str]
    deep_link: NotRequired[str]
    payload: NotRequired[dict[str, Any]]
    reply_to: NotRequired[str]
    attachments: NotRequired[list[AttachmentDocument]]
    has_own_subject: NotRequired[bool]
    event_at: NotRequired[datetime]
    push: NotRequired[StoredPushOptions]
    look: NotRequired[StoredLook]


class HoldDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.Hold`."""

    reason: str
    provider: str
    since: datetime
    detail: NotRequired[str]


class DeliveryDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.Delivery`."""

    channel: str
    status: str
    attempt_count: int
    uncounted_attempts: int
    earlier_attempts: NotRequired[int | None]
    max_attempts: int
    claim_count: int
    step: NotRequired[int | None]
    skip_if_late: NotRequired[int | None]
    digest_id: NotRequired[ObjectId | None]
    digest_epoch: NotRequired[int | None]
    skips_digest: NotRequired[bool | None]
    carried_by: NotRequired[ObjectId | None]
    merged_at: NotRequired[datetime | None]
    first_due_at: datetime
    next_attempt_at: NotRequired[datetime | None]
    last_attempt_at: NotRequired[datetime | None]
    claim: NotRequired[ClaimDocument | None]
    provider: NotRequired[str | None]
    provider_message_id: NotRequired[str | None]
    failure_code: NotRequired[str | None]
    failure_reason: NotRequired[str | None]
    held_reason: NotRequired[str | None]
    holds: NotRequired[list[HoldDocument] | None]
    held_ms: NotRequired[int | None]
    ready_at: NotRequired[datetime | None]
    ended_at: NotRequired[datetime | None]
    accepted_targets: list[str]
    ambiguous_targets: NotRequired[list[str]]
    ambiguous_provider: NotRequired[str | None]
    series_first: NotRequired[int | None]
    series_last: NotRequired[int | None]
    failed_over_from: NotRequired[str | None]
    sent_at: NotRequired[datetime | None]
    delivered_at: NotRequired[datetime | None]
    read_at: NotRequired[datetime | None]
    failed_at: NotRequired[datetime | None]


class ReplacementDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.Replacement`."""

    count: int
    at: datetime
    request: str


class ErrorRecordDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.ErrorRecord`."""

    timestamp: datetime
    channel: str
    code: str
    error: str


class NotificationDocument(TypedDict):
    """A stored :class:`~notifications.models.notification.Notification`."""

    _id: ObjectId
    client_id: ObjectId
    external_id: NotRequired[str]
    source: NotRequired[str]
    idempotency_key: NotRequired[str]
    request_id: NotRequired[str]
    traceparent: NotRequired[str]
    is_test: NotRequired[bool]
    broadcast_id: NotRequired[ObjectId]
    user_id: NotRequired[str]
    recipient: RecipientCopyDocument
    type: str
    category: str
    priority: str
    entity_id: NotRequired[str]
    channels: list[str]
    content: ContentDocument
    data: Mapping[str, Any]
    encrypted_content: NotRequired[str]
    encrypted_until: NotRequired[datetime]
    delivery: list[DeliveryDocument]
    digest_id: NotRequired[ObjectId]
    ignores_limits: NotRequired[bool]
    plan_until: NotRequired[str]
    acted_at: NotRequired[datetime]
    action: NotRequired[str]
    status: str
    due_at: NotRequired[datetime]
    scheduled_at: NotRequired[datetime]
    scheduled_local: NotRequired[str]
    expires_at: NotRequired[datetime]
    ttl_seconds: NotRequired[int]
    purge_at: NotRequired[datetime]
    error: NotRequired[str]
    error_history: list[ErrorRecordDocument]
    inbox_at: NotRequired[datetime]
    is_read: bool
    read_at: NotRequired[datetime]
    marked_read_at: NotRequired[datetime]
    unread_at: NotRequired[datetime]
    is_archived: bool
    archived_at: NotRequired[datetime]
    snoozed_until: NotRequired[datetime]
    resurfaced_at: NotRequired[datetime]
    is_active: bool
    deleted_at: NotRequired[datetime]
    erased_at: NotRequired[datetime]
    content_removed_at: NotRequired[datetime]
    callback_revision: NotRequired[int]
    callback_due_at: NotRequired[datetime]
    search_keys: list[str]
    replaced: NotRequired[ReplacementDocument]
    resent_from: NotRequired[ObjectId]
    resent_as: list[ObjectId]
    sent_at: NotRequired[datetime]
    failed_at: NotRequired[datetime]
    created_at: datetime
    updated_at: datetime


NOTIFICATIONS = Documents("notifications", NotificationDocument)
