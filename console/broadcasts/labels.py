"""Texts about a broadcast's audience and state."""

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.states import AudienceKind, BroadcastStatus
from notifications.documents.broadcasts import BroadcastDocument

from ..widgets.formats import timestamp

B = BroadcastStatus
LABELS = {
    AudienceKind.USER_IDS: "Listed recipients",
    AudienceKind.ALL: "All recipients",
    AudienceKind.FILE: "Rows of a file",
}


def audience_label(kind: str, topic: str | None) -> str:
    """Return the label of an audience."""
    if kind == AudienceKind.TOPIC:
        return f"Topic {topic}"
    return LABELS[AudienceKind(kind)]


def pace_label(document: BroadcastDocument) -> str | None:
    """Return how the messages are spread, or None if all are sent at once."""
    if (seconds := document.get("spread_seconds")) is not None:
        return f"Spread over {seconds / 60:g} min"
    if (hour := document.get("local_hour")) is not None:
        return f"At {hour:02}:00 of each recipient's day"
    return None


def summarize(document: BroadcastDocument) -> SafeString:
    """Return one sentence on the state of a broadcast."""
    status = BroadcastStatus(document["status"])
    approval: Mapping[str, Any] = document.get("approval") or {}
    text = {
        B.DRAFT: "A draft: nothing is sent until it's approved. {reason}",
        B.AWAITING_APPROVAL: "Awaits another person's approval until {until}",
        B.REJECTED: "Rejected: {reason}",
        B.EXPIRED: "Nobody approved it in time",
        B.SCHEDULED: "Starts at {begins}",
        B.RUNNING: "{created} created; reading the audience",
        B.PAUSED: "{created} created; paused",
        B.CANCELLING: "{cancelled} of {created} cancelled so far",
        B.CANCELLED: "{cancelled} of {created} cancelled",
        B.COMPLETED: "Audience processed: {created} created",
        B.FAILED: "Failed: {created} created. {why}",
    }[status]
    if status is B.RUNNING and document["is_waiting"]:
        text = "{created} created; throttled, because the backlog is full"
    return format_html(
        text,
        created=f"{document['accepted']:,}",
        cancelled=f"{document['withdrawn']:,}",
        begins=timestamp(document.get("scheduled_at")),
        why=document.get("failure_reason"),
        reason=approval.get("reason", ""),
        until=timestamp(approval.get("expires_at")),
    )
