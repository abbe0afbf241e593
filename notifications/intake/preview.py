"""Renders a request without storing anything, and sends test messages for staff."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bson import ObjectId

from access.clients import registry
from devices import queries as devices
from domain.channels import Channel
from domain.channels.spec import Shape
from domain.states import DeliveryStatus
from notifications.store.new_notifications import NewDelivery, NewNotification
from providers.contract import Message

from ..catalog import types
from ..content import rendering, templates
from ..content.engine import TemplateError
from . import acceptance as intake_acceptance
from .preparation import load_recipients, names_channels, prepare
from .requests import Caller, ContentRequest, NotificationRecipientRequest, NotificationRequest
from .warnings import (
    AcceptanceWarning,
    find_clipped,
    find_limits_reached,
    find_warnings,
    mismatch_warnings,
)

CHANNEL_NOT_CHOSEN = "Not one of this notification's channels."
TEST_TYPE = "transactional"
TEST_SUBJECT = "Test message"
TEST_BODY = "This is a test of our notification service. You don't need to do anything."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPreview:
    """The rendered message of one channel, or why there is none."""

    channel: Channel
    message: Message | None  # None if it can't be rendered; ``problem`` holds the reason
    problem: str | None = None
    not_sent_reason: str | None = None  # None if the notification would be sent on this channel
    step: int | None = None
    opens_at: datetime | None = None  # When its step begins; None without a plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A notification as it would be accepted, with its message for each channel."""

    notification: NewNotification
    channels: tuple[ChannelPreview, ...]
    is_time_adjusted: bool
    warnings: tuple[AcceptanceWarning, ...]


def preview(
    request: NotificationRequest,
    *,
    caller: Caller,
    shows_registry: bool,
    shows_secrets: bool = True,
    now: datetime,
) -> Preview:
    """Validate and render a request without storing anything.

    Sensitive values are shown unless ``shows_secrets`` is false: a client has just sent them.
    ``shows_registry`` shows the registered recipient's name instead of a mask. Raises
    InvalidRequestError and ScopeRequiredError.
    """
    snapshot = load_recipients([request], now=now)
    prepared = prepare(
        request,
        notification_id=ObjectId(),
        caller=caller,
        snapshot=snapshot,
        now=now,
        has_device=_has_device(request),
    )
    notification = prepared.notification
    if not shows_registry:
        recipient = notification.recipient
        content = rendering.hide_registry(
            notification.content, data=notification.data, recipient=recipient
        )
        known = rendering.without_registry(recipient)
        notification = replace(notification, recipient=known, content=content)
    if not shows_secrets:
        # What remains is masked, as it is stored.
        notification = replace(notification, secret=None)
    chosen = {delivery.channel: delivery for delivery in notification.deliveries}
    channels = tuple(
        _preview_channel(channel, notification, chosen.get(channel)) for channel in Channel
    )
    return Preview(
        notification=notification,
        channels=channels,
        is_time_adjusted=prepared.is_time_adjusted,
        warnings=(
            *mismatch_warnings(prepared.mismatches),
            *find_warnings(
                prepared.notification, are_channels_named=names_channels(request), now=now
            ),
            *find_limits_reached(prepared.notification, now=now),
            *(
                warning
                for channel in channels
                if channel.channel.spec.shape is Shape.MAIL
                and channel.message
                and not channel.not_sent_reason
                for warning in find_clipped(channel.channel, channel.message.html)
            ),
        ),
    )


def _has_device(request: NotificationRequest) -> bool:
    named = request.recipient.device_ids
    found = devices.find_push_targets(
        user_ids=[request.user_id] if request.user_id and not named else (), device_ids=named
    )
    return bool(found.for_notification(user_id=request.user_id, device_ids=named))


def _preview_channel(
    channel: Channel, notification: NewNotification, delivery: NewDelivery | None
) -> ChannelPreview:
    message, problem, reason = None, None, None
    try:
        message = _render(channel, notification)
    except TemplateError as error:
        problem = str(error)
    if delivery is None:
        reason = CHANNEL_NOT_CHOSEN
    elif delivery.status is not DeliveryStatus.PENDING:
        reason = delivery.failure_reason
    step = delivery.step if delivery is not None else None
    return ChannelPreview(
        channel=channel,
        message=message,
        problem=problem,
        not_sent_reason=reason,
        step=step,
        opens_at=notification.send_at + delivery.delay if delivery and step else None,
    )


def _render(channel: Channel, notification: NewNotification) -> Message:
    """Return a channel's message. Raises TemplateError if the request would not be accepted."""
    content, data = notification.content, notification.data
    if (secret := notification.secret) is not None:
        content, data = secret.unmask(content), secret.data
    if content.template_id is not None:
        rendering.render_text(
            name=content.template_id,
            version=content.template_version or templates.SHIPPED_VERSION,
            data=data,
            recipient=notification.recipient,
            channels=[channel],
            look=content.look,
        )
    return rendering.render_message(
        channel=channel,
        content=content,
        data=data,
        recipient=notification.recipient,
        actions=types.actions_of(notification.type),
    )


def send_test(*, channel: Channel, address: str, now: datetime) -> ObjectId:
    """Send a test message as any other notification. Return its ID. Raises InvalidRequestError."""
    request = NotificationRequest(
        type=TEST_TYPE,
        recipient=_recipient(channel, address),
        channels=[channel.value],
        content=ContentRequest(subject=TEST_SUBJECT, body=TEST_BODY),
    )
    return _send(request, now=now)


def send_template_test(
    *,
    slug: str,
    version: int,
    example: Mapping[str, Any],
    channel: Channel,
    address: str,
    locale: str | None,
    now: datetime,
) -> ObjectId:
    """Send any template version with its example data. Returns and raises as :func:`send_test`."""
    request = NotificationRequest(
        type=slug,
        recipient=_recipient(channel, address, locale=locale),
        channels=[channel.value],
        data=dict(example),
    )
    return _send(request, now=now, template_version=version)


def _send(
    request: NotificationRequest, *, now: datetime, template_version: int | None = None
) -> ObjectId:
    client_id = registry.system_client_id(now=now)
    caller = Caller(client_id=client_id, may_send_critical=True, template_version=template_version)
    return ObjectId(intake_acceptance.accept(request, caller=caller, now=now).document["_id"])


def _recipient(
    channel: Channel, address: str, *, locale: str | None = None
) -> NotificationRecipientRequest:
    kind = channel.spec.address
    if kind is None:
        return NotificationRecipientRequest(device_ids=[address], locale=locale)
    own: dict[str, Any] = {kind.field: address}
    return NotificationRecipientRequest(**own, locale=locale)
