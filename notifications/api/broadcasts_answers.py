"""What answers about broadcasts look like."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.states import AudienceKind, BroadcastStatus, NotificationStatus, Priority

from ..broadcasts.documents import request_of
from ..intake.requests import ContentRequest


class BroadcastAudienceView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Whom it is for: one of these."""

    topic: str | None = None
    user_ids: Annotated[bool, Meta(description="People named one by one; not repeated here.")] = (
        False
    )
    all: bool = False


class ReasonView(msgspec.Struct, kw_only=True, frozen=True):
    """Why some people are told nothing."""

    code: Annotated[str, Meta(examples=["no_address", "opted_out", "suppressed"])]
    count: int
    examples: Annotated[list[str], Meta(description="The first 20 user ids of them.")]


class BroadcastView(msgspec.Struct, kw_only=True, frozen=True):
    """A broadcast and how far it has come."""

    id: str
    status: BroadcastStatus
    type: str
    priority: Priority
    audience: BroadcastAudienceView
    audience_size: Annotated[
        int | None,
        Meta(description="About how many there were when it was asked for; null: not counted."),
    ]
    channels: list[str] | None = None
    content: ContentRequest
    data: dict[str, Any]
    ttl: int | None = None
    accepted: Annotated[int, Meta(description="Notifications that were made.")]
    skipped: Annotated[
        list[ReasonView],
        Meta(
            description="People who want nothing of it, or whom nothing reaches: no notification "
            "is made for them."
        ),
    ]
    rejected: Annotated[
        list[ReasonView],
        Meta(description="People whose notification could not be made, by the problem's code."),
    ]
    withdrawn: Annotated[int, Meta(description="Notifications that its being cancelled ended.")]
    is_waiting: Annotated[
        bool, Meta(description="It waits by itself: too much is to be sent already.")
    ]
    notifications: Annotated[
        dict[str, int] | None,
        Meta(
            description="Of one broadcast: how many of its notifications are in each status; null "
            "if there are too many to count, and in lists.",
            examples=[{"queued": 120, "sent": 4_800, "failed": 12}],
        ),
    ] = None
    failure_code: Annotated[
        str | None, Meta(description="expired, unknown_type or stuck; see failure_reason.")
    ] = None
    failure_reason: str | None = None
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    updated_at: datetime
    request_id: str | None = None
    is_test: bool = False
    """A key in test mode asked for it: all of it goes to the sandbox, and reaches nobody."""


class BroadcastList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[BroadcastView]
    next: str | None
    previous: str | None


def broadcast_view(
    document: Mapping[str, Any], *, figures: Mapping[NotificationStatus, int] | None = None
) -> BroadcastView:
    """Return a stored broadcast as it is shown to its app."""
    request = request_of(document)
    return BroadcastView(
        id=str(document["_id"]),
        status=BroadcastStatus(document["status"]),
        type=document["type"],
        priority=Priority(document["priority"]),
        audience=_audience(document),
        audience_size=document.get("audience_size"),
        channels=request.channels,
        content=request.content,
        data=request.data,
        ttl=request.ttl,
        accepted=document["accepted"],
        skipped=_reasons(document["skipped"]),
        rejected=_reasons(document["rejected"]),
        withdrawn=document["withdrawn"],
        is_waiting=document["is_waiting"],
        notifications=None if figures is None else {s.value: n for s, n in figures.items()},
        failure_code=document.get("failure_code"),
        failure_reason=document.get("failure_reason"),
        scheduled_at=document.get("scheduled_at"),
        expires_at=document.get("expires_at"),
        created_at=document["created_at"],
        started_at=document.get("started_at"),
        finished_at=document.get("finished_at"),
        updated_at=document["updated_at"],
        request_id=document.get("request_id"),
        is_test=document.get("is_test", False),
    )


def _audience(document: Mapping[str, Any]) -> BroadcastAudienceView:
    kind = document["audience"]
    return BroadcastAudienceView(
        topic=document.get("topic"),
        user_ids=kind == AudienceKind.USER_IDS,
        all=kind == AudienceKind.ALL,
    )


def _reasons(stored: Mapping[str, Mapping[str, Any]]) -> list[ReasonView]:
    """Return the reasons, what holds for most people first."""
    by_count = sorted(stored.items(), key=lambda one: (-one[1]["count"], one[0]))
    return [
        ReasonView(code=code, count=one["count"], examples=one["examples"])
        for code, one in by_count
    ]
