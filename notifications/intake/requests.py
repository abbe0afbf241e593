"""Structures of a request, its caller, and the refusals of intake."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import msgspec
from bson import ObjectId
from msgspec import Meta

from domain.content import MAX_ATTACHMENTS
from domain.retry import MAX_RETRIES
from domain.time import MAX_TTL

from ..models.notification import (
    CONTENT_TYPE_LENGTH,
    FILENAME_LENGTH,
    SUBJECT_LENGTH,
    USER_ID_LENGTH,
)

Id128 = Annotated[str, Meta(min_length=1, max_length=128)]
Timestamp = Annotated[
    str,
    Meta(
        max_length=40,
        description="RFC 3339 with an offset; finer than a millisecond is cut off.",
        examples=["2026-12-01T09:00:00Z"],
        extra_json_schema={"format": "date-time"},
    ),
]
Link = Annotated[str, Meta(min_length=1, max_length=2048)]


class NotificationRecipientRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Whom to reach. What is left out comes from the registered recipient ``user_id``."""

    email: Annotated[str, Meta(max_length=320, examples=["ada@example.com"])] | None = None
    phone: (
        Annotated[str, Meta(max_length=32, description="E.164", examples=["+351912345678"])] | None
    ) = None
    device_ids: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(max_length=100)
    ] = []
    name: Annotated[str, Meta(max_length=200)] | None = None
    locale: Annotated[str, Meta(max_length=35, examples=["pt-BR"])] | None = None
    timezone: Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])] | None = None


class AttachmentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that goes with the mail. It is fetched, without credentials, when the mail is sent."""

    url: Annotated[
        Link, Meta(description="https, on a host that the service is set up to fetch from.")
    ]
    filename: Annotated[
        str, Meta(min_length=1, max_length=FILENAME_LENGTH, examples=["invoice.pdf"])
    ]
    content_type: Annotated[str, Meta(max_length=CONTENT_TYPE_LENGTH)] | None = None
    """Left out: what the file's name tells."""


class ContentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to say. A body given here is used as it is; without one, the template is rendered."""

    subject: Annotated[str, Meta(max_length=SUBJECT_LENGTH)] | None = None
    body: str | None = None
    template_id: Annotated[str, Meta(max_length=64)] | None = None
    image_url: Link | None = None
    deep_link: Link | None = None
    payload: dict[str, Any] | None = None
    reply_to: (
        Annotated[str, Meta(max_length=320, description="Where an answer to the mail goes.")] | None
    ) = None
    attachments: Annotated[
        list[AttachmentRequest],
        Meta(max_length=MAX_ATTACHMENTS, description="Of the mail; 10 MB in all."),
    ] = []


class LocalTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A time on the recipient's wall clock.

    One that a clock change skips becomes the first instant after it, one that happens twice the
    first.
    """

    at: Annotated[str, Meta(max_length=19, examples=["2026-12-01T09:00"])]
    timezone: Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])] | None = None
    """IANA name; left out: the recipient's own zone, whichever it is when the time has come."""


class NotificationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A notification to accept. Only ``type`` and a way to reach someone are required."""

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
        Annotated[str, Meta(min_length=1, max_length=USER_ID_LENGTH)] | None,
        Meta(examples=["ada"]),
    ] = None
    recipient: Annotated[
        NotificationRecipientRequest, Meta(examples=[{"email": "ada@example.com"}])
    ] = NotificationRecipientRequest()
    channels: (
        Annotated[
            list[str],
            Meta(description="email, push, whatsapp, in_app. Omitted: the recipient's or type's."),
        ]
        | None
    ) = None
    priority: (
        Annotated[str, Meta(description="critical, high, normal or low; left out: the type's.")]
        | None
    ) = None
    entity_id: (
        Annotated[
            Id128,
            Meta(description="What it is about. A person is told once of each type and entity."),
        ]
        | None
    ) = None
    external_id: Annotated[
        Id128 | None, Meta(description="Your own id, for finding it again.", examples=["o-1001"])
    ] = None
    content: ContentRequest = ContentRequest()
    data: Annotated[
        dict[str, Any],
        Meta(
            description="The template's variables.",
            examples=[{"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}],
        ),
    ] = {}
    scheduled_at: Timestamp | None = None
    scheduled_local: LocalTime | None = None
    event_at: (
        Annotated[
            Timestamp,
            Meta(
                description="Of a reminder: when what it is about begins. It is sent as long "
                "before as the person wishes, or else the type says, or now if that is past."
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
        Annotated[int, Meta(ge=0, le=MAX_RETRIES, description="Tries after the first one.")] | None
    ) = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and for which request of theirs."""

    client_id: ObjectId
    request_id: str | None = None
    traceparent: str | None = None
    """The request's span, if it is traced."""
    idempotency_key: str | None = None
    is_test: bool = False
    """It is in test mode: what it sends goes to the sandbox."""
    template_version: int | None = None
    """The version of the type's template that is tried, published or not: ours alone to ask."""


class AlreadyNotifiedError(Exception):
    """The person has been told about the entity. ``notification_id`` if that was the caller's."""

    def __init__(self, notification_id: ObjectId | None) -> None:
        super().__init__("already notified")
        self.notification_id = notification_id


class KeyReusedError(Exception):
    """An idempotency key came with another request than the first time."""


class RepeatedItemError(Exception):
    """The same item stands earlier in the same call, at ``first``."""

    def __init__(self, first_index: int) -> None:
        super().__init__("repeated item")
        self.first_index = first_index


class OverloadedError(Exception):
    """More is waiting than is taken on in bulk: come again after ``retry_after``."""

    def __init__(self, retry_after: timedelta) -> None:
        super().__init__("overloaded")
        self.retry_after = retry_after
