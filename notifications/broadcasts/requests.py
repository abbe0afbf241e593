"""What a caller sends to tell many people one thing."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.time import MAX_TTL

from ..intake.requests import ContentRequest, Timestamp
from ..models.notification import USER_ID_LENGTH

MAX_USER_IDS = 10_000
"""More people are told by a topic, or in several broadcasts."""


class AudienceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to tell: exactly one of these."""

    topic: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(
            description="The members of a topic, as they are when each page is read.",
            examples=["news"],
        ),
    ] = None
    user_ids: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=USER_ID_LENGTH)]],
            Meta(
                min_length=1,
                max_length=MAX_USER_IDS,
                description="People named one by one; whoever is named twice is told once.",
            ),
        ]
        | None
    ) = None
    all: Annotated[bool, Meta(description="Everybody who is registered: true.")] | None = None


class BroadcastRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message to an audience. What is left out comes from the type, as for a notification."""

    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="A registered type's slug; none that is critical or has secret variables.",
            examples=["marketing"],
        ),
    ]
    audience: AudienceRequest
    data: Annotated[
        dict[str, Any], Meta(description="The template's variables, the same for all recipients.")
    ] = {}
    channels: (
        Annotated[
            list[str],
            Meta(
                description="email, push, whatsapp, in_app: each person gets it on those of them "
                "that reach them. Left out: the person's or the type's."
            ),
        ]
        | None
    ) = None
    content: Annotated[
        ContentRequest, Meta(examples=[{"subject": "Spring", "body": "It is spring."}])
    ] = ContentRequest()
    priority: (
        Annotated[
            str, Meta(description="high, normal or low. Left out: low, behind everything else.")
        ]
        | None
    ) = None
    scheduled_at: (
        Annotated[Timestamp, Meta(description="When to begin to read the audience. Left out: now.")]
        | None
    ) = None
    ttl: (
        Annotated[
            int,
            Meta(
                description="Seconds that each notification may be sent for after it was accepted, "
                f"1 to {int(MAX_TTL.total_seconds())}."
            ),
        ]
        | None
    ) = None
    expires_at: (
        Annotated[Timestamp, Meta(description="Nothing of it is accepted or sent after that.")]
        | None
    ) = None
