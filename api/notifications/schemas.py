"""Notifications in the API: structures, and the functions that build them.

The request of a new one is in :mod:`notifications.intake.requests`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from bson import ObjectId
from msgspec import UNSET, Meta, UnsetType

from devices.models import Platform
from domain.channels import Channel
from domain.channels.spec import Shape
from domain.content import InterruptionLevel
from domain.plans import Until
from domain.sms import Encoding
from domain.states import (
    DELIVERED_STATUSES,
    PHASES,
    SUCCEEDED,
    AttemptStatus,
    Category,
    DeliveryStatus,
    NotificationStatus,
    Phase,
    Priority,
)
from domain.wait_reasons import Wait, WaitReason, find_waits
from notifications.actions.retries import retry_choices
from notifications.catalog import types
from notifications.catalog.texts import encode_text
from notifications.catalog.types import MASK
from notifications.content import redaction, rendering
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.documents.records import DeliveryAttemptDocument
from notifications.intake.acceptance import Acceptance
from notifications.intake.preview import ChannelPreview, Preview
from notifications.intake.requests import Id128, Timestamp
from notifications.intake.warnings import WINDOW_CLOSED, AcceptanceWarning
from notifications.models.notification import USER_ID_LENGTH
from notifications.store.reading import content_of, recipient_of
from notifications.validation import ChannelNames
from providers import senders
from providers.contract import Message

from ..callbacks.schemas import CallbackDeliveryView
from ..http.fields import EXAMPLE_DATA, EXAMPLE_TIME, NotificationId, TypeSlug, UserId, view_of
from ..http.paging import PageView

ProviderName = Annotated[str | None, Meta(examples=["sendgrid"])]
ProviderMessageId = Annotated[str | None, Meta(examples=["14c5d75ce93.dfd.64b469"])]
A = AttemptStatus
OptionalTime = Annotated[datetime | None, Meta(examples=[EXAMPLE_TIME])]


class ReportedAttemptStatus(StrEnum):
    """The status of an attempt, with what a receipt says of it."""

    STARTED = "started"
    SENT = "sent"
    DELIVERED = "delivered"
    """Sent, and a receipt says that it was delivered."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    """The lease or the notification expired before the attempt began: nothing was sent."""


class DeliveryView(msgspec.Struct, kw_only=True, frozen=True):
    """The delivery on one channel."""

    channel: Channel
    status: Annotated[DeliveryStatus, Meta(examples=["delivered"])]
    attempt_count: int
    max_attempts: Annotated[int, Meta(examples=[4])]
    next_attempt_at: datetime | None = None
    wait_reason: WaitReason | None = None
    """Why it isn't sent now; null once it's final."""
    step: int | None = None
    """Number of its step; null without a plan."""
    opens_at: datetime | None = None
    """When its step begins, unless the recipient is reached before."""
    last_attempt_at: OptionalTime = None
    provider: ProviderName = None
    provider_message_id: ProviderMessageId = None
    failure_code: str | None = None
    failure_reason: str | None = None
    sent_at: OptionalTime = None
    delivered_at: OptionalTime = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    digest_id: str | None = None
    """The digest that it waits for or is part of."""
    carried_by: str | None = None
    """Merged: the notification that was sent in its place."""
    carrier_status: NotificationStatus | None = None
    """Merged: the status of that notification; only in `GET /notifications/{id}`."""


class NotificationRecipientView(msgspec.Struct, kw_only=True, frozen=True):
    """The recipient, as known when the notification was accepted.

    Without the scope recipients:read, it contains only data of the request.
    """

    device_ids: list[str] = []
    email: Annotated[str | None, Meta(examples=["ada@example.com"])] = None
    phone: str | None = None
    room: str | None = None
    """The ID of a room."""
    name: Annotated[str | None, Meta(examples=["Ada"])] = None
    locale: str | None = None
    timezone: str | None = None


class PushView(msgspec.Struct, kw_only=True, frozen=True):
    """How a device presents a push. None is the default of its priority."""

    sound: Annotated[str | None, Meta(examples=["default"])] = None
    badge: int | None = None
    interruption_level: InterruptionLevel | None = None
    android_channel_id: str | None = None


class ContentView(msgspec.Struct, kw_only=True, frozen=True):
    """The content; sensitive values are redacted."""

    subject: Annotated[str | None, Meta(examples=["Paid"])] = None
    body: Annotated[str | None, Meta(examples=["We have your 49.90 for Sunrise."])] = None
    template_id: Annotated[str | None, Meta(examples=["payment_confirmed"])] = None
    template_version: Annotated[int | None, Meta(examples=[0])] = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: dict[str, Any] | None = None
    reply_to: str | None = None
    attachments: list[dict[str, Any]] = msgspec.field(default_factory=list)
    push: PushView | None = None


class ErrorHistoryView(msgspec.Struct, kw_only=True, frozen=True):
    """One entry of the error history."""

    timestamp: datetime
    channel: Channel
    code: str
    error: str


class NotificationView(msgspec.Struct, kw_only=True, frozen=True):
    """A notification and the state of its deliveries."""

    id: NotificationId
    status: Annotated[NotificationStatus, Meta(examples=["delivered"])]
    phase: Annotated[Phase, Meta(examples=["sent"])]
    """One word for several statuses: whether it was sent. `failed`: it ended without being sent on
    any channel."""
    type: TypeSlug
    category: Annotated[Category, Meta(examples=["transactional"])]
    priority: Annotated[Priority, Meta(examples=["normal"])]
    user_id: Annotated[UserId | None, Meta(examples=["ada"])] = None
    recipient: NotificationRecipientView
    channels: list[Channel]
    entity_id: str | None = None
    external_id: Annotated[str | None, Meta(examples=["o-1001"])] = None
    source: Annotated[str | None, Meta(examples=["shop"])] = None
    content: ContentView
    data: Annotated[dict[str, Any], Meta(examples=[EXAMPLE_DATA])]
    delivery: list[DeliveryView]
    plan_until: Until | None = None
    """The goal after which no later step is sent; null without a plan."""
    acted_at: datetime | None = None
    """When the recipient chose an action, or `POST …/ack` was first called."""
    action: str | None = None
    """The action that the recipient chose in the inbox."""
    scheduled_at: datetime | None = None
    adjusted: bool = False  # The local time doesn't exist: the first instant after it is used
    expires_at: datetime | None = None
    retry_count: Annotated[int, Meta(examples=[0])]
    """Retries of the channel with the most. Those that an outage or a rate limit of the provider
    caused don't count."""
    max_retries: Annotated[int, Meta(examples=[3])]
    """Retries that a channel gets. Each `POST …/retry` grants as many again."""
    last_retry_at: datetime | None = None
    next_retry_at: datetime | None = None
    """When the next channel that failed is tried again."""
    error: str | None = None
    """The latest error of a channel that hasn't succeeded since."""
    error_history: list[ErrorHistoryView] = []
    is_read: bool
    read_at: datetime | None = None
    is_archived: bool = False  # By the recipient; ``is_active`` is false only if deleted or erased
    archived_at: datetime | None = None
    is_active: bool = True
    deleted_at: datetime | None = None
    content_removed_at: datetime | None = None
    broadcast_id: str | None = None
    digest_id: str | None = None
    """The digest that it carries; its deliveries name the digest that they are part of."""
    replaced_at: datetime | None = None
    """When its client last replaced it."""
    resent_from: str | None = None
    resent_as: list[str] = []
    sent_at: OptionalTime = None
    failed_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    request_id: str | None = None
    is_test: bool = False  # Created with a test key: sent to the sandbox
    is_delivered: Annotated[bool, Meta(examples=[True])]
    """Sent on at least one channel, and no channel is open."""
    is_confirmed: Annotated[bool, Meta(examples=[True])]
    """Every channel confirmed delivery: `status` is `delivered`."""
    is_failed: bool
    is_pending: bool
    can_retry: bool
    """`POST …/retry` would send on at least one channel: one that failed, waits for another
    attempt, or was suppressed, before the expiry, and that can reach the recipient now."""
    successful_channels: list[Channel]
    failed_channels: Annotated[list[Channel], Meta(examples=[[]])]


class WarningView(msgspec.Struct, kw_only=True, frozen=True):
    """What is likely to go wrong, although the request is valid: on a channel, or by a field."""

    channel: Annotated[Channel | None, Meta(examples=["whatsapp"])] = None
    """Null: the warning is about a field."""
    pointer: Annotated[str | None, Meta(examples=[None])] = None
    """The field that differs from the type's schema; null: the warning is about a channel."""
    code: Annotated[str, Meta(examples=["window_closed"])]
    """The failure code that the delivery would end with, `may_be_clipped`, or what is wrong with
    the field."""
    detail: Annotated[str, Meta(examples=[WINDOW_CLOSED])]


class AcceptedNotificationView(NotificationView, kw_only=True, frozen=True):
    """A notification as it was accepted."""

    warnings: Annotated[list[WarningView], Meta(examples=[[]])] = []
    """Channels that are about to fail or to be suppressed; fields that differ from a schema."""


class AttemptView(msgspec.Struct, kw_only=True, frozen=True):
    """One attempt to send a message by a provider."""

    id: Annotated[str, Meta(examples=["6745e3f19b1d4c2a7f3e8b53"])]
    notification_id: NotificationId
    channel: Channel
    device_id: str | None = None
    attempt_number: int
    status: Annotated[ReportedAttemptStatus, Meta(examples=["delivered"])]
    """`delivered` once a receipt says so: at `delivered_at`, or at the latest at `opened_at`."""
    provider: ProviderName = None
    provider_message_id: ProviderMessageId = None
    platform_response: Annotated[dict[str, Any] | None, Meta(examples=[{"status": 202}])] = None
    error_code: str | None = None
    error_message: str | None = None
    attempted_at: datetime
    finished_at: OptionalTime = None
    duration_ms: Annotated[int | None, Meta(examples=[84])] = None
    units: Annotated[int | None, Meta(examples=[2])] = None
    """How many parts of a text may be billed, as of an SMS."""
    platform: Platform | None = None  # Of the device of a push
    delivered_at: datetime | None = None
    """When the device or the provider reported that it was delivered."""
    opened_at: datetime | None = None


class ExpandedNotificationView(NotificationView, kw_only=True, frozen=True):
    """A notification, with what the request expands."""

    attempts: list[AttemptView] | UnsetType = UNSET
    """Oldest first. Missing unless expanded."""
    events: list[CallbackDeliveryView] | UnsetType = UNSET
    """Callback deliveries, oldest first. Missing unless expanded."""


class NotificationList(PageView[NotificationView], kw_only=True, frozen=True):
    """A page of notifications. ``next`` and ``previous`` are values for ``cursor``."""


class AttemptList(msgspec.Struct, kw_only=True, frozen=True):
    """All attempts of a notification, oldest first."""

    results: list[AttemptView]
    next: str | None = None
    previous: str | None = None


def notification_views(
    documents: Sequence[NotificationDocument],
    *,
    adjusted: bool = False,
    shows_registry: bool = False,
    has_can_retry: bool = True,
    carrier_statuses: Mapping[ObjectId, NotificationStatus] | None = None,
    now: datetime,
) -> list[NotificationView]:
    """Return stored notifications as the API shows them. Raises PyMongoError.

    ``can_retry`` takes two reads in all if a channel has failed or waits for a retry. Without
    ``has_can_retry``, it's false. For ``shows_registry``, see :func:`notification_view`.
    """
    choices = retry_choices(documents, now=now) if has_can_retry else {}
    return [
        notification_view(
            document,
            can_retry=has_can_retry and bool(choices[document["_id"]].channels),
            adjusted=adjusted,
            shows_registry=shows_registry,
            carrier_statuses=carrier_statuses,
            now=now,
        )
        for document in documents
    ]


def notification_view(
    document: NotificationDocument,
    *,
    can_retry: bool = False,
    adjusted: bool = False,
    shows_registry: bool = False,
    carrier_statuses: Mapping[ObjectId, NotificationStatus] | None = None,
    now: datetime,
) -> NotificationView:
    """Return a stored notification as the API shows it.

    With ``shows_registry``, the recipient includes registered data, such as the address. Without
    it, only data of the request is shown: the texts mask the registered name and are in the
    request's language, and a time on the registered clock is left out. Without
    ``carrier_statuses``, merged deliveries don't have the status of their carrier.
    """
    recipient, content = recipient_of(document), content_of(document)
    if not shows_registry:
        content = rendering.hide_registry(content, data=document["data"], recipient=recipient)
        recipient = recipient.as_given()
    is_time_hidden = not shows_registry and document.get("scheduled_local") is not None
    waits: dict[str, Wait] = {
        wait.channel: wait for wait in find_waits(document["delivery"], now=now)
    }
    deliveries = [
        view_of(
            DeliveryView,
            delivery,
            next_attempt_at=wait.until
            if (wait := waits.get(delivery["channel"])) and not is_time_hidden
            else None,
            wait_reason=wait.reason if wait else None,
            opens_at=delivery["first_due_at"]
            if "step" in delivery and not is_time_hidden
            else None,
            digest_id=_hex(delivery.get("digest_id")),
            carried_by=_hex(delivery.get("carried_by")),
            carrier_status=carrier_statuses.get(carrier_id)
            if carrier_statuses and (carrier_id := delivery.get("carried_by")) is not None
            else None,
        )
        for delivery in document["delivery"]
    ]
    succeeded = [d.channel for d in deliveries if d.status in SUCCEEDED]
    failed = [d.channel for d in deliveries if d.status is DeliveryStatus.FAILED]
    return view_of(
        NotificationView,
        document,
        id=str(document["_id"]),
        recipient=msgspec.convert(recipient, NotificationRecipientView, from_attributes=True),
        content=view_of(
            ContentView, document["content"], subject=content.subject, body=content.body
        ),
        data=redacted(document["data"], document["type"], document["content"].get("template_id")),
        delivery=deliveries,
        error_history=[view_of(ErrorHistoryView, line) for line in document["error_history"]],
        broadcast_id=_hex(document.get("broadcast_id")),
        digest_id=_hex(document.get("digest_id")),
        resent_from=_hex(document.get("resent_from")),
        replaced_at=document["replaced"]["at"] if "replaced" in document else None,
        resent_as=[str(resend_id) for resend_id in document["resent_as"]],
        adjusted=adjusted and not is_time_hidden,
        **(dict.fromkeys(("scheduled_at", "expires_at")) if is_time_hidden else {}),
        phase=PHASES[NotificationStatus(document["status"])],
        **_retry_fields(document["delivery"]),
        is_delivered=document["status"] in DELIVERED_STATUSES,
        is_confirmed=document["status"] == NotificationStatus.DELIVERED,
        is_failed=document["status"] == NotificationStatus.FAILED,
        is_pending=any(d.status is DeliveryStatus.PENDING for d in deliveries),
        can_retry=can_retry,
        successful_channels=succeeded,
        failed_channels=failed,
    )


def _retry_fields(deliveries: Sequence[DeliveryDocument]) -> dict[str, Any]:
    retried_at, retry_at, counted, limit = [], [], 1, 1
    for delivery in deliveries:
        limit = max(limit, delivery["max_attempts"])
        if not (count := delivery["attempt_count"]):
            continue
        counted = max(counted, count - delivery["uncounted_attempts"])
        if count > 1 and (at := delivery.get("last_attempt_at")) is not None:
            retried_at.append(at)
        if delivery["status"] == DeliveryStatus.PENDING and (
            due_at := delivery.get("next_attempt_at")
        ):
            retry_at.append(due_at)
    return {
        "retry_count": counted - 1,
        "max_retries": limit - 1,
        "last_retry_at": max(retried_at, default=None),
        "next_retry_at": min(retry_at, default=None),
    }


def accepted_view(
    acceptance: Acceptance, *, shows_registry: bool, now: datetime
) -> AcceptedNotificationView:
    """Return an accepted notification as the API shows it. Raises PyMongoError."""
    (view,) = notification_views(
        [acceptance.document],
        adjusted=acceptance.is_time_adjusted,
        shows_registry=shows_registry,
        # A new notification has no failed channel.
        has_can_retry=acceptance.is_replayed,
        now=now,
    )
    return AcceptedNotificationView(
        **msgspec.structs.asdict(view),
        warnings=_warning_views(acceptance.warnings),
    )


def _warning_views(found: Sequence[AcceptanceWarning]) -> list[WarningView]:
    return [
        WarningView(
            channel=warning.channel,
            pointer=warning.pointer,
            code=str(warning.code),
            detail=warning.detail,
        )
        for warning in found
    ]


def attempt_view(document: DeliveryAttemptDocument) -> AttemptView:
    """Return a stored attempt as the API shows it."""
    status = ReportedAttemptStatus(document["status"])
    may_be_sent = document["status"] in (A.STARTED, A.SENT, A.UNKNOWN)
    is_reported = document.get("delivered_at") or document.get("opened_at")
    return view_of(
        AttemptView,
        document,
        id=document["_id"],
        notification_id=str(document["notification_id"]),
        status=ReportedAttemptStatus.DELIVERED if may_be_sent and is_reported else status,
    )


def redacted(
    data: Mapping[str, Any], type_name: str, template_id: str | None = None
) -> dict[str, Any]:
    """Return the template's variables with sensitive ones redacted."""
    # Sensitive variables are stored redacted. Redact those that became sensitive later, and all
    # variables of a type that no longer exists.
    if types.find_type(type_name) is None:
        return dict.fromkeys(data, MASK)
    return redaction.mask(data, types.sensitive_variables(type_name, template_id))


def _hex(value: ObjectId | None) -> str | None:
    return str(value) if value is not None else None


class TextPreviewView(msgspec.Struct, kw_only=True, frozen=True):
    """How a text is encoded, and how many parts are paid for."""

    encoding: Annotated[Encoding, Meta(examples=["gsm_7"])]
    units: Annotated[int, Meta(examples=[1])]
    forcing: Annotated[list[str], Meta(examples=[[]])]
    """The characters for which it is Unicode."""


class ChannelPreviewView(msgspec.Struct, kw_only=True, frozen=True):
    """The preview of one channel. Push: ``subject`` is the title and ``text`` the body."""

    channel: Channel
    would_send: Annotated[bool, Meta(examples=[True])]
    """Also true for a later step of a plan."""
    reason: str | None = None
    step: int | None = None
    """Number of its step; null without a plan."""
    opens_at: datetime | None = None
    """When its step begins, unless the recipient is reached before."""
    sender: Annotated[str | None, Meta(examples=["Acme <hello@acme.example>"])] = None
    """Of an email: its brand's, or the installation's."""
    reply_to: Annotated[str | None, Meta(examples=["help@acme.example"])] = None
    """Of an email: the request's or its brand's; null: the installation's, or `sender`."""
    subject: Annotated[str | None, Meta(examples=["Paid"])] = None
    text: Annotated[str | None, Meta(examples=["We have your 49.90 for Sunrise."])] = None
    html: str | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: dict[str, Any] | None = None
    sms: TextPreviewView | None = None
    """Of an SMS: its parts."""
    problem: str | None = None


class PreviewView(msgspec.Struct, kw_only=True, frozen=True):
    """A rendered notification. Nothing is stored or sent."""

    type: TypeSlug
    category: Annotated[Category, Meta(examples=["transactional"])]
    priority: Annotated[Priority, Meta(examples=["normal"])]
    template_id: Annotated[str | None, Meta(examples=["payment_confirmed"])] = None
    template_version: Annotated[int | None, Meta(examples=[0])] = None
    locale: str | None = None
    scheduled_at: datetime | None = None
    adjusted: bool = False  # The local time doesn't exist: the first instant after it is used
    expires_at: datetime | None = None
    plan_until: Until | None = None
    """The goal after which no later step is sent; null without a plan."""
    channels: list[ChannelPreviewView]  # All channels, in a fixed order
    warnings: Annotated[list[WarningView], Meta(examples=[[]])] = []
    """Channels that are about to fail or to be suppressed; fields that differ from a schema."""


def preview_view(preview: Preview, *, shows_registry: bool) -> PreviewView:
    """Return a preview as the API shows it."""
    notification = preview.notification
    recipient = notification.recipient
    is_time_hidden = not shows_registry and notification.scheduled_local is not None
    if not shows_registry:
        recipient = recipient.as_given()
    return PreviewView(
        type=notification.type,
        category=notification.category,
        priority=notification.priority,
        template_id=notification.content.template_id,
        template_version=notification.content.template_version,
        locale=recipient.locale,
        scheduled_at=None if is_time_hidden else notification.scheduled_at,
        adjusted=preview.is_time_adjusted and not is_time_hidden,
        expires_at=None if is_time_hidden else notification.expires_at,
        plan_until=notification.plan_until,
        channels=[
            channel_preview_view(channel, is_time_hidden=is_time_hidden)
            for channel in preview.channels
        ],
        warnings=_warning_views(preview.warnings),
    )


def channel_preview_view(shown: ChannelPreview, *, is_time_hidden: bool) -> ChannelPreviewView:
    """Return a channel's message as the API shows it."""
    fields = ("reply_to", "subject", "text", "html", "image_url", "deep_link")
    message = shown.message
    is_mail = shown.channel.spec.shape is Shape.MAIL
    return ChannelPreviewView(
        channel=shown.channel,
        would_send=shown.not_sent_reason is None,
        reason=shown.not_sent_reason,
        step=shown.step,
        opens_at=None if is_time_hidden else shown.opens_at,
        sender=str(message.sender or senders.own_sender()) if message and is_mail else None,
        **{name: getattr(message, name) for name in fields if message},
        payload=dict(message.payload) if message and message.payload else None,
        sms=_text_view(message) if message and message.units is not None else None,
        problem=shown.problem,
    )


def _text_view(message: Message) -> TextPreviewView:
    """Return how a message is encoded."""
    encoded = encode_text(message.text)
    return TextPreviewView(
        encoding=encoded.encoding, units=encoded.units, forcing=list(encoded.forcing)
    )


class ChannelsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The channels that an action applies to; omitted: all of them."""

    channels: Annotated[ChannelNames | None, Meta(examples=[["email"]])] = None


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The notifications to cancel."""

    entity_id: Annotated[Id128, Meta(examples=["order-1001"])]
    type: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    user_id: Annotated[str, Meta(min_length=1, max_length=USER_ID_LENGTH)] | None = None


class CancelledView(msgspec.Struct, kw_only=True, frozen=True):
    """The result of a cancellation."""

    cancelled: Annotated[int, Meta(examples=[1])]
    """Notifications with a delivery that was cancelled."""


class RescheduleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new send time."""

    scheduled_at: Timestamp
