"""Notifications in the API: the structures, and the functions that make them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from bson import ObjectId

from domain.states import (
    SUCCEEDED,
    AttemptStatus,
    Category,
    Channel,
    DeliveryStatus,
    NotificationStatus,
    Priority,
)
from notifications.catalog import types
from notifications.catalog.types import MASK
from notifications.content import redaction
from notifications.intake.preview import ChannelPreview, Preview
from notifications.intake.requests import Timestamp
from notifications.store import Document, is_content_removed


class DeliveryView(msgspec.Struct, kw_only=True, frozen=True):
    """One channel and where it stands."""

    channel: Channel
    status: DeliveryStatus
    attempt_count: int
    max_attempts: int
    next_attempt_at: datetime | None = None
    last_attempt_at: datetime | None = None
    provider: str | None = None
    provider_message_id: str | None = None
    failure_code: str | None = None
    failure_reason: str | None = None
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None


class NotificationRecipientView(msgspec.Struct, kw_only=True, frozen=True):
    """Whom it was for, as known when it was accepted."""

    device_ids: list[str] = []
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None


class ContentView(msgspec.Struct, kw_only=True, frozen=True):
    """What it says; secrets are masked."""

    subject: str | None = None
    body: str | None = None
    template_id: str | None = None
    template_version: int | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: dict[str, Any] | None = None
    reply_to: str | None = None
    attachments: list[dict[str, Any]] = msgspec.field(default_factory=list)


class ErrorHistoryView(msgspec.Struct, kw_only=True, frozen=True):
    """One line of the error history."""

    timestamp: datetime
    channel: Channel
    code: str
    error: str


class NotificationView(msgspec.Struct, kw_only=True, frozen=True):
    """A notification and what became of it."""

    id: str
    status: NotificationStatus
    type: str
    category: Category
    priority: Priority
    user_id: str | None = None
    recipient: NotificationRecipientView
    channels: list[Channel]
    entity_id: str | None = None
    external_id: str | None = None
    content: ContentView
    data: dict[str, Any]
    delivery: list[DeliveryView]
    scheduled_at: datetime | None = None
    adjusted: bool = False
    """The local time asked for did not exist: scheduled_at is the first instant after it."""
    expires_at: datetime | None = None
    error: str | None = None
    error_history: list[ErrorHistoryView] = []
    is_read: bool
    read_at: datetime | None = None
    is_archived: bool = False
    """Put away by its owner; ``is_active`` is false only when it was deleted."""
    archived_at: datetime | None = None
    is_active: bool = True
    content_removed_at: datetime | None = None
    """What it said, and to which address, was removed then, as its category's retention says."""
    broadcast_id: str | None = None
    """The broadcast that it is one of."""
    resent_from: str | None = None
    resent_as: list[str] = []
    sent_at: datetime | None = None
    failed_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    request_id: str | None = None
    is_test: bool = False
    """A key in test mode asked for it: it went to the sandbox, and reached nobody."""
    is_delivered: bool
    is_failed: bool
    is_pending: bool
    can_retry: bool
    successful_channels: list[Channel]
    failed_channels: list[Channel]


class AttemptView(msgspec.Struct, kw_only=True, frozen=True):
    """One try to hand a message to a provider."""

    id: str
    notification_id: str
    channel: Channel
    device_id: str | None = None
    attempt_number: int
    status: AttemptStatus
    provider: str | None = None
    provider_message_id: str | None = None
    platform_response: dict[str, Any] | None = None
    error_code: str | None = None
    error_message: str | None = None
    attempted_at: datetime
    finished_at: datetime | None = None
    duration_ms: int | None = None


class NotificationList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[NotificationView]
    next: str | None
    previous: str | None


class AttemptList(msgspec.Struct, kw_only=True, frozen=True):
    """Every attempt of a notification, the oldest first."""

    results: list[AttemptView]
    next: str | None = None
    previous: str | None = None


def notification_view(document: Document, *, adjusted: bool = False) -> NotificationView:
    """Return a stored notification as it is shown to its client."""
    deliveries = [_pick(DeliveryView, delivery) for delivery in document["delivery"]]
    succeeded = [d.channel for d in deliveries if d.status in SUCCEEDED]
    failed = [d.channel for d in deliveries if d.status is DeliveryStatus.FAILED]
    fields = {name: document[name] for name in _COPIED_FIELDS & document.keys()}
    return msgspec.convert(
        {
            **fields,
            "id": str(document["_id"]),
            "recipient": _pick(NotificationRecipientView, document["recipient"]),
            "content": _pick(ContentView, document["content"]),
            "data": redacted(
                document["data"], document["type"], document["content"].get("template_id")
            ),
            "delivery": deliveries,
            "error_history": [_pick(ErrorHistoryView, line) for line in document["error_history"]],
            "broadcast_id": _hex(document.get("broadcast_id")),
            "resent_from": _hex(document.get("resent_from")),
            "resent_as": [str(one) for one in document["resent_as"]],
            "adjusted": adjusted,
            "is_delivered": document["status"] == NotificationStatus.DELIVERED,
            "is_failed": document["status"] == NotificationStatus.FAILED,
            "is_pending": any(d.status is DeliveryStatus.PENDING for d in deliveries),
            "can_retry": bool(failed) and not is_content_removed(document),
            "successful_channels": succeeded,
            "failed_channels": failed,
        },
        NotificationView,
    )


def attempt_view(document: Document) -> AttemptView:
    """Return an attempt's record as it is shown."""
    return _pick(
        AttemptView,
        {
            **document,
            "id": document["_id"],
            "notification_id": str(document["notification_id"]),
        },
    )


def redacted(
    data: Mapping[str, Any], type_name: str, template_id: str | None = None
) -> dict[str, Any]:
    """Return the template's variables without the secrets among them.

    They are stored so. What has become a secret since is not shown either; nor is anything of a
    type that is gone.
    """
    if types.find_type(type_name) is None:
        return dict.fromkeys(data, MASK)
    return redaction.mask(data, types.sensitive_variables(type_name, template_id))


_COMPUTED_FIELDS = {
    *("id", "recipient", "content", "data", "delivery", "error_history", "adjusted"),
    *("resent_from", "resent_as", "is_delivered", "is_failed", "is_pending", "can_retry"),
    *("successful_channels", "failed_channels", "broadcast_id"),
}
_COPIED_FIELDS = set(NotificationView.__struct_fields__) - _COMPUTED_FIELDS


def _pick(view: Any, document: Mapping[str, Any]) -> Any:
    """Return the fields of ``document`` that a view shows."""
    fields = {name: document[name] for name in view.__struct_fields__ if name in document}
    return msgspec.convert(fields, view)


def _hex(value: ObjectId | None) -> str | None:
    return str(value) if value is not None else None


class ChannelPreviewView(msgspec.Struct, kw_only=True, frozen=True):
    """What one channel would say. Push: ``subject`` is the title and ``text`` the body."""

    channel: Channel
    would_send: bool
    """Whether the notification would be sent on this channel."""
    reason: str | None = None
    """Why it would not."""
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: dict[str, Any] | None = None
    problem: str | None = None
    """Why nothing can be shown of it."""


class PreviewView(msgspec.Struct, kw_only=True, frozen=True):
    """What would be sent. Nothing is stored, and nothing goes out."""

    type: str
    category: Category
    priority: Priority
    template_id: str | None = None
    template_version: int | None = None
    locale: str | None = None
    scheduled_at: datetime | None = None
    adjusted: bool = False
    """The local time asked for does not exist: scheduled_at is the first instant after it."""
    expires_at: datetime | None = None
    channels: list[ChannelPreviewView]
    """Every channel there is, in a fixed order."""


def preview_view(preview: Preview) -> PreviewView:
    """Return a preview as it is shown."""
    notification = preview.notification
    return PreviewView(
        type=notification.type,
        category=notification.category,
        priority=notification.priority,
        template_id=notification.content.template_id,
        template_version=notification.content.template_version,
        locale=notification.recipient.locale,
        scheduled_at=notification.scheduled_at,
        adjusted=preview.is_time_adjusted,
        expires_at=notification.expires_at,
        channels=[_channel_view(one) for one in preview.channels],
    )


def _channel_view(one: ChannelPreview) -> ChannelPreviewView:
    message = one.message
    return ChannelPreviewView(
        channel=one.channel,
        would_send=one.not_sent_reason is None,
        reason=one.not_sent_reason,
        subject=message.subject if message else None,
        text=message.text if message else None,
        html=message.html if message else None,
        image_url=message.image_url if message else None,
        deep_link=message.deep_link if message else None,
        payload=dict(message.payload) if message and message.payload else None,
        problem=one.problem,
    )


class ChannelsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which channels an action is for; left out: all of them."""

    channels: list[str] | None = None


class RescheduleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When to send instead."""

    scheduled_at: Timestamp
