"""What a preview looks like."""

from datetime import datetime
from typing import Any

import msgspec

from domain.states import Category, Channel, Priority

from ..intake.preview import ChannelPreview, Preview


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
        adjusted=preview.adjusted,
        expires_at=notification.expires_at,
        channels=[_channel_view(one) for one in preview.channels],
    )


def _channel_view(one: ChannelPreview) -> ChannelPreviewView:
    message = one.message
    return ChannelPreviewView(
        channel=one.channel,
        would_send=one.why_not_sent is None,
        reason=one.why_not_sent,
        subject=message.subject if message else None,
        text=message.text if message else None,
        html=message.html if message else None,
        image_url=message.image_url if message else None,
        deep_link=message.deep_link if message else None,
        payload=dict(message.payload) if message and message.payload else None,
        problem=one.problem,
    )
