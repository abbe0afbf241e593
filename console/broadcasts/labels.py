"""What a broadcast is called and where it stands, in words."""

from collections.abc import Mapping

from domain.states import AudienceKind, BroadcastStatus
from notifications.broadcasts.documents import Document

B = BroadcastStatus
COLORS: Mapping[BroadcastStatus, str] = {
    B.SCHEDULED: "calm",
    B.RUNNING: "info",
    B.PAUSED: "warning",
    B.CANCELLING: "warning",
    B.CANCELLED: "calm",
    B.COMPLETED: "success",
    B.FAILED: "danger",
}


def audience_label(kind: str, topic: str | None) -> str:
    """Return whom a broadcast is for, in words."""
    if kind == AudienceKind.TOPIC:
        return f"Topic {topic}"
    return "Named people" if kind == AudienceKind.USER_IDS else "Everybody"


def summarize(document: Document) -> str:
    """Return where a broadcast stands, in one sentence."""
    status = BroadcastStatus(document["status"])
    text = {
        B.SCHEDULED: "It begins at {begins} UTC.",
        B.RUNNING: "{accepted:,} accepted so far, and more of its audience is being read.",
        B.PAUSED: "{accepted:,} accepted, and nobody more until it is resumed.",
        B.CANCELLING: "{withdrawn:,} of {accepted:,} withdrawn so far; the rest follows.",
        B.CANCELLED: "Of {accepted:,} that were accepted, {withdrawn:,} were withdrawn.",
        B.COMPLETED: "Everybody in its audience was looked at: {accepted:,} were accepted.",
        B.FAILED: "It ended early, with {accepted:,} accepted. {why}",
    }[status]
    if status is B.RUNNING and document["is_waiting"]:
        text = "{accepted:,} accepted so far. It waits: too much is to be sent already."
    begins = document.get("scheduled_at")
    return text.format(
        accepted=document["accepted"],
        withdrawn=document["withdrawn"],
        begins=f"{begins:%d %b %H:%M}" if begins else "",
        why=document.get("failure_reason"),
    )
