"""What would be sent: every check and every channel, and nothing stored."""

from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId

from domain.states import Channel, DeliveryStatus
from providers.contract import Message

from .. import rendering
from ..store import NewDelivery, NewNotification
from ..templates import TemplateProblem
from .accepting import look_up
from .preparing import Caller, prepare
from .requests import NotificationRequest

NOT_CHOSEN = "Not one of this notification's channels."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPreview:
    """What a channel would say."""

    channel: Channel
    message: Message | None
    """None if it cannot be rendered; ``problem`` says why."""
    problem: str | None = None
    why_not_sent: str | None = None
    """None if the notification would be sent on this channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A notification as it would be accepted, and what it would say on every channel."""

    notification: NewNotification
    channels: tuple[ChannelPreview, ...]
    adjusted: bool


def preview(request: NotificationRequest, *, caller: Caller, now: datetime) -> Preview:
    """Check a request as if it were to be accepted, and render it; raises InvalidRequest.

    Secrets are shown: the caller has just given them.
    """
    known = look_up([request], now=now)
    prepared = prepare(request, notification_id=ObjectId(), caller=caller, known=known, now=now)
    notification = prepared.notification
    chosen = {delivery.channel: delivery for delivery in notification.deliveries}
    return Preview(
        notification=notification,
        channels=tuple(_on(channel, notification, chosen.get(channel)) for channel in Channel),
        adjusted=prepared.adjusted,
    )


def _on(
    channel: Channel, notification: NewNotification, delivery: NewDelivery | None
) -> ChannelPreview:
    message, problem = None, None
    try:
        message = _rendered(channel, notification)
    except TemplateProblem as found:
        problem = str(found)
    if delivery is None:
        reason: str | None = NOT_CHOSEN
    else:
        reason = None if delivery.status is DeliveryStatus.PENDING else delivery.failure_reason
    return ChannelPreview(channel=channel, message=message, problem=problem, why_not_sent=reason)


def _rendered(channel: Channel, notification: NewNotification) -> Message:
    """Return what a channel says; raises TemplateProblem for what could not be accepted."""
    content, data = notification.content, notification.data
    if (secret := notification.secret) is not None:
        content, data = secret.reveal(content), secret.data
    if content.template_id is not None:
        rendering.check_channels(
            [channel],
            name=content.template_id,
            version=content.template_version or 0,
            data=data,
            recipient=notification.recipient,
        )
    return rendering.render_message(
        channel=channel,
        content=content,
        data=data,
        recipient=notification.recipient,
    )
