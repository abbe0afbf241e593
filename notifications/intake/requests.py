"""Structures of requests, the caller, and the reasons to refuse a request."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import msgspec
from bson import ObjectId
from msgspec import Meta

from access.models import Scope
from domain.content import MAX_ATTACHMENTS, MAX_BADGE, InterruptionLevel
from domain.retry import MAX_RETRIES
from domain.time import MAX_TTL

from ..catalog.plans import PlanRequest
from ..models.notification import (
    CONTENT_TYPE_LENGTH,
    FILENAME_LENGTH,
    SOURCE_LENGTH,
    SUBJECT_LENGTH,
    USER_ID_LENGTH,
)
from ..validation import ChannelNames, PriorityName

Id128 = Annotated[str, Meta(min_length=1, max_length=128)]
Source = Annotated[str, Meta(min_length=1, max_length=SOURCE_LENGTH)]
Timestamp = Annotated[
    str,
    Meta(
        max_length=40,
        description="RFC 3339 with an offset; truncated to milliseconds.",
        examples=["2026-12-01T09:00:00Z"],
        extra_json_schema={"format": "date-time"},
    ),
]
Link = Annotated[str, Meta(min_length=1, max_length=2048)]


class NotificationRecipientRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The recipient. Omitted fields come from the registered recipient ``user_id``."""

    email: Annotated[str, Meta(max_length=320, examples=["ada@example.com"])] | None = None
    phone: (
        Annotated[str, Meta(max_length=32, description="E.164", examples=["+351912345678"])] | None
    ) = None
    device_ids: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(max_length=100)
    ] = []
    room: (
        Annotated[
            str,
            Meta(
                max_length=64,
                description="A room's ID, for the channel `room`. Default: the type's.",
                examples=["ops"],
            ),
        ]
        | None
    ) = None
    name: Annotated[str, Meta(max_length=200)] | None = None
    locale: Annotated[str, Meta(max_length=35, examples=["pt-BR"])] | None = None
    timezone: Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])] | None = None


class AttachmentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An email attachment, fetched without credentials when the email is sent."""

    url: Annotated[Link, Meta(description="An https URL on an allowed host.")]
    filename: Annotated[
        str, Meta(min_length=1, max_length=FILENAME_LENGTH, examples=["invoice.pdf"])
    ]
    content_type: Annotated[str, Meta(max_length=CONTENT_TYPE_LENGTH)] | None = None
    """Omitted: guessed from the file name."""


class PushRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a device presents a push. Each omitted field has the default of the priority."""

    sound: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=64,
                pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.-]*\Z",
                description="`default`, a sound file of the app, or `none`.",
                examples=["default"],
            ),
        ]
        | None
    ) = None
    badge: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=MAX_BADGE,
                description="Number on the app's icon; 0 removes it. Apple devices only.",
            ),
        ]
        | None
    ) = None
    interruption_level: InterruptionLevel | None = None
    """Apple devices only. `time-sensitive` needs Apple's entitlement."""
    android_channel_id: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=64,
                pattern=r"\A[!-~]+\Z",
                description="A channel of the app on Android 8 and later.",
            ),
        ]
        | None
    ) = None


class ContentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content. A body is used unchanged; without one, the template is rendered."""

    subject: Annotated[str, Meta(max_length=SUBJECT_LENGTH)] | None = None
    body: str | None = None
    template_id: Annotated[str, Meta(max_length=64)] | None = None
    image_url: Link | None = None
    deep_link: Link | None = None
    payload: (
        Annotated[
            dict[str, Any],
            Meta(
                description="Data of a push for the app. The service's own `reference`, "
                "`notification_id`, and `deep_link` replace values of these names. Firebase "
                "reserves `from`, `message_type`, and names that begin with `google.` or `gcm.`; "
                "its Android library hides `collapse_key`."
            ),
        ]
        | None
    ) = None
    reply_to: (
        Annotated[str, Meta(max_length=320, description="Reply-To address of the email.")] | None
    ) = None
    attachments: Annotated[
        list[AttachmentRequest],
        Meta(max_length=MAX_ATTACHMENTS, description="Email attachments; 10 MB in total."),
    ] = []
    push: PushRequest | None = None


class LocalTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time on the recipient's clock.

    A time that a clock change skips becomes the first instant after it; an ambiguous time is the
    first.
    """

    at: Annotated[str, Meta(max_length=19, examples=["2026-12-01T09:00"])]
    timezone: Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])] | None = None
    """IANA name; omitted: the recipient's own zone at send time."""


class NotificationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A notification to accept. Requires ``type`` and a way to reach the recipient."""

    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="A registered type's slug.",
            examples=["payment_confirmed"],
        ),
    ]
    user_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=USER_ID_LENGTH)] | None, Meta(examples=["ada"])
    ] = None
    recipient: Annotated[
        NotificationRecipientRequest, Meta(examples=[{"email": "ada@example.com"}])
    ] = NotificationRecipientRequest()
    channels: (
        Annotated[
            ChannelNames,
            Meta(
                description="all: each channel that can reach the recipient. "
                "Default: the recipient's or type's."
            ),
        ]
        | None
    ) = None
    plan: Annotated[
        PlanRequest | None,
        Meta(description="Channels in steps, in place of `channels`. Default: the type's plan."),
    ] = None
    priority: (
        Annotated[
            PriorityName,
            Meta(
                description="At most the type's max_priority. Default: the type's. "
                "Critical needs the scope notifications:critical."
            ),
        ]
        | None
    ) = None
    entity_id: (
        Annotated[
            Id128,
            Meta(
                description="Subject of the notification; one per recipient with a user_id, type, "
                "and entity of each client."
            ),
        ]
        | None
    ) = None
    external_id: Annotated[
        Id128 | None, Meta(description="Your own id, for lookups.", examples=["o-1001"])
    ] = None
    source: Annotated[
        Source | None,
        Meta(description="The part of your system that sends it, for lists.", examples=["shop"]),
    ] = None
    content: ContentRequest = ContentRequest()
    brand: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="Whom it is from. Default: the type's brand."),
    ] = None
    data: Annotated[
        dict[str, Any],
        Meta(
            description="Template variables.",
            examples=[{"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}],
        ),
    ] = {}
    scheduled_at: Timestamp | None = None
    scheduled_local: LocalTime | None = None
    event_at: (
        Annotated[
            Timestamp,
            Meta(
                description="Start of the event, for reminders. The lead time is the recipient's "
                "or the type's; if that time has passed, the reminder is sent now."
            ),
        ]
        | None
    ) = None
    ttl: (
        Annotated[
            int,
            Meta(description=f"Seconds from the send time, 1 to {int(MAX_TTL.total_seconds())}."),
        ]
        | None
    ) = None
    expires_at: Timestamp | None = None
    max_retries: (
        Annotated[int, Meta(ge=0, le=MAX_RETRIES, description="Attempts after the first.")] | None
    ) = None
    ignore_limits: Annotated[
        bool,
        Meta(
            description="True: sent beyond the limits for its recipient, and counted. Needs the "
            "scope limits:ignore."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The client that makes a request, and the request's metadata."""

    client_id: ObjectId
    request_id: str | None = None
    traceparent: str | None = None
    idempotency_key: str | None = None
    is_test: bool = False  # Test mode: the notification goes to the sandbox
    may_ignore_limits: bool = False  # A client needs the scope limits:ignore
    may_send_critical: bool = False  # A client needs the scope notifications:critical
    may_read_recipients: bool = False  # A client needs the scope recipients:read
    requires_approval: bool = False  # Another person approves its broadcasts
    template_version: int | None = None
    """That of test sends by staff, which may be unpublished, and of approved broadcasts."""
    design: int | None = None
    """The number of the design of approved broadcasts; None: the newest."""


class AlreadyNotifiedError(Exception):
    """The client already has a notification for this recipient, type, and entity.

    ``notification_id`` is None if that notification has just been deleted.
    """

    def __init__(self, notification_id: ObjectId | None) -> None:
        super().__init__("already notified")
        self.notification_id = notification_id


class ScopeRequiredError(Exception):
    """The client lacks a scope: for critical notifications, or for those that ignore limits."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope.value)
        self.scope = scope


class KeyReusedError(Exception):
    """The idempotency key was used with a different request."""


class RepeatedItemError(Exception):
    """The item is identical to the item at ``first_index`` of the same call."""

    def __init__(self, first_index: int) -> None:
        super().__init__("repeated item")
        self.first_index = first_index


class OverloadedError(Exception):
    """The backlog is over its limit. The client may retry after ``retry_after``."""

    def __init__(self, retry_after: timedelta) -> None:
        super().__init__("overloaded")
        self.retry_after = retry_after
