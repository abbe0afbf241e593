"""Request structures of broadcasts."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.pacing import MAX_SPREAD, MIN_SPREAD
from domain.states import Priority
from domain.stored import struct_from_stored
from domain.time import MAX_TTL
from notifications.documents.broadcasts import BroadcastDocument

from ..catalog.plans import PlanRequest
from ..intake.requests import ContentRequest, Id128, NotificationRequest, Source, Timestamp
from ..models.broadcasts import NAME_LENGTH
from ..models.notification import USER_ID_LENGTH
from ..validation import ChannelNames, enum_of

MAX_USER_IDS = 10_000  # Larger audiences use a topic, or several broadcasts


class AudienceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The audience: exactly one of `topic`, `user_ids`, `all`, and `file`."""

    topic: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="The members of a topic when each page is read.", examples=["news"]),
    ] = None
    user_ids: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=USER_ID_LENGTH)]],
            Meta(
                min_length=1,
                max_length=MAX_USER_IDS,
                description="User ids; duplicates are removed.",
            ),
        ]
        | None
    ) = None
    all: Annotated[bool, Meta(description="true: all registered recipients.")] | None = None
    file: (
        Annotated[
            str,
            Meta(
                min_length=24,
                max_length=24,
                description="ID of a checked file: a message for each good row, with the row's "
                "data. A file is sent once.",
                examples=["6745e3f09b1d4c2a7f3e8b72"],
            ),
        ]
        | None
    ) = None
    skip_wrong_rows: Annotated[
        bool,
        Meta(
            description="True: a file with wrong rows is sent to the others. False: it is refused."
        ),
    ] = False


class BroadcastRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A notification to an audience. Omitted fields come from the type."""

    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="Slug of a type that is neither critical nor has sensitive variables.",
            examples=["marketing"],
        ),
    ]
    audience: AudienceRequest
    name: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=NAME_LENGTH,
                description="What people call it, without personal data.",
                examples=["Outage of June 3"],
            ),
        ]
        | None
    ) = None
    data: Annotated[
        dict[str, Any], Meta(description="Template variables, the same for all recipients.")
    ] = {}
    channels: (
        Annotated[
            ChannelNames,
            Meta(
                description="Recipients get those that reach them; all: every channel. "
                "Default: the recipient's or the type's."
            ),
        ]
        | None
    ) = None
    plan: Annotated[
        PlanRequest | None,
        Meta(
            description="Channels in steps, in place of `channels`. Default: the type's plan when "
            "each recipient is notified."
        ),
    ] = None
    content: Annotated[
        ContentRequest, Meta(examples=[{"subject": "Spring", "body": "It is spring."}])
    ] = ContentRequest()
    brand: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="Whom it is from. Default: the type's brand."),
    ] = None
    source: Annotated[
        Source | None,
        Meta(description="The part of your system that sends it.", examples=["newsletter"]),
    ] = None
    priority: (
        Annotated[
            str,
            enum_of(priority for priority in Priority if priority is not Priority.CRITICAL),
            Meta(description="Default: low."),
        ]
        | None
    ) = None
    entity_id: (
        Annotated[
            Id128,
            Meta(
                description="Subject of the notifications. A recipient with one of the same type "
                "and entity is skipped."
            ),
        ]
        | None
    ) = None
    scheduled_at: Annotated[Timestamp, Meta(description="Start time. Default: now.")] | None = None
    spread: (
        Annotated[
            int,
            Meta(
                ge=int(MIN_SPREAD.total_seconds()),
                le=int(MAX_SPREAD.total_seconds()),
                description="Seconds over which the messages are spread evenly.",
                examples=[7_200],
            ),
        ]
        | None
    ) = None
    local_hour: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=23,
                description="The hour of each recipient's day at which the message is sent, the "
                "next after the start. In UTC for a recipient without a time zone.",
            ),
        ]
        | None
    ) = None
    event_at: (
        Annotated[
            Timestamp,
            Meta(
                description="Start of the event, for reminders; instead of scheduled_at. The "
                "audience is read now, and each recipient is reminded with their own lead time."
            ),
        ]
        | None
    ) = None
    ttl: (
        Annotated[
            int,
            Meta(
                description="Time to live of each notification after it is accepted, in seconds, "
                f"1 to {int(MAX_TTL.total_seconds())}."
            ),
        ]
        | None
    ) = None
    expires_at: (
        Annotated[
            Timestamp, Meta(description="No notification is accepted or sent after this time.")
        ]
        | None
    ) = None


def request_of(document: BroadcastDocument) -> NotificationRequest:
    """Return the request that a broadcast makes for each recipient."""
    return struct_from_stored(NotificationRequest, document["request"])
