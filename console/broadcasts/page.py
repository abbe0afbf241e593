"""The page of one broadcast: progress, skipped recipients, and results."""

from collections.abc import Mapping
from typing import Any

from bson import ObjectId
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from access.clients import registry
from domain.states import BroadcastStatus
from notifications.broadcasts import repository
from notifications.broadcasts.requests import request_of
from notifications.documents.broadcasts import BroadcastDocument, SkippedRecipients
from notifications.models import Broadcast

from ..texts.labels import STATUS_LABELS, broadcast_state, code_label
from ..widgets import columns, names, panels
from ..widgets.actions import not_found, render_page
from ..widgets.links import FILE_ROWS, MAY_SEND_FILE
from .actions import BROADCAST_ACTIONS, LIST, find_broadcast
from .approval import approval_context
from .labels import audience_label, pace_label, summarize

SKIPPED_MEANING = "opted out, suppressed, unreachable, or notified about the entity"
REJECTED_MEANING = "the notification was invalid"
TIMES = (
    ("Created", "created_at"),
    ("Scheduled", "scheduled_at"),
    ("Started", "started_at"),
    ("Ended", "finished_at"),
    ("Expires", "expires_at"),
    ("Deleted on", "purge_at"),
)


def show(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show one broadcast; redirect to the list if it doesn't exist."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    document = find_broadcast(object_id)
    if document is None:
        return not_found(request, "Broadcast", LIST)
    context = _context(request, document)
    return render_page(admin, request, "console/broadcasts/page.html", **context)


def _context(request: HttpRequest, document: BroadcastDocument) -> dict[str, Any]:
    status, color = broadcast_state(document["status"], is_throttled=document["is_waiting"])
    type_name = names.type_names([document["type"]])[document["type"]]
    request_for_all = request_of(document)
    original = Broadcast(pk=document["_id"], type=type_name)
    original.page_title = names.page_title(
        document.get("name") or f"{type_name} broadcast", user_id=None, at=document["created_at"]
    )
    return {
        **approval_context(request, document),
        "title": original.page_title,
        "original": original,
        "document": document,
        "type_name": type_name,
        "audience": audience_label(document["audience"], document.get("topic")),
        "status": status,
        "color": color,
        "test_chip": columns.test_chip() if document.get("is_test") else "",
        "headline": summarize(document),
        "actions": [
            action
            for action in BROADCAST_ACTIONS
            if document["status"] in action.statuses and request.user.has_perm(action.permission)
        ],
        "progress": progress_of(document),
        "status_counts": status_counts(document["_id"]),
        "rows_url": _rows_url(request, document),
        "may_see_notifications": request.user.has_perm("notifications.view_notification"),
        "skipped": [
            ("Skipped", SKIPPED_MEANING, _skip_reasons(document["skipped"])),
            ("Rejected", REJECTED_MEANING, _skip_reasons(document["rejected"])),
        ],
        "content": request_for_all.content,
        "data": request_for_all.data,
        "facts": _facts(document, type_name),
        "times": panels.times(document, TIMES),
        "audit": panels.audit_log(Broadcast, document["_id"]),
    }


def _rows_url(request: HttpRequest, document: BroadcastDocument) -> str:
    """Return the URL of the rows of a file that staff sent; nothing for another broadcast."""
    if "file_id" not in document or not request.user.has_perm(MAY_SEND_FILE):
        return ""
    is_own = document["client_id"] == registry.find_client(registry.CONSOLE_CLIENT)
    return reverse(FILE_ROWS, args=[document["_id"]]) if is_own else ""


def progress_of(document: BroadcastDocument) -> dict[str, Any]:
    """Return how much of its audience a broadcast has processed, as a text and a share."""
    left_out = (document["skipped"], document["rejected"])
    count = document["accepted"] + sum(
        reason["count"] for reasons in left_out for reason in reasons.values()
    )
    size = document.get("audience_size")
    is_completed = document["status"] == BroadcastStatus.COMPLETED
    return {
        "text": f"{count:,}" + (f" of ~{size:,}" if size is not None else "") + " processed",
        "share": 100 if is_completed else min(99, count * 100 // size) if size else None,
    }


def _skip_reasons(stored: Mapping[str, SkippedRecipients]) -> list[dict[str, Any]]:
    reasons = sorted(stored.items(), key=lambda item: (-item[1]["count"], item[0]))
    return [
        {"label": code_label(code), "count": f"{reason['count']:,}", "examples": reason["examples"]}
        for code, reason in reasons
    ]


def status_counts(broadcast_id: ObjectId) -> list[dict[str, Any]] | None:
    """Return the number of notifications in each status, or None if there are too many."""
    counts = repository.count_by_status(broadcast_id)
    if counts is None:
        return None
    return [
        {"chip": columns.chip(*STATUS_LABELS[status]), "count": f"{count:,}"}
        for status, count in counts.items()
    ]


def _facts(document: BroadcastDocument, type_name: str) -> list[tuple[str, str]]:
    client_id, request = document["client_id"], request_of(document)
    facts = (
        ("ID", str(document["_id"])),
        ("Name", document.get("name")),
        ("Type", type_name),
        ("Client", names.client_names([client_id])[client_id]),
        ("Priority", document["priority"]),
        ("Pace", pace_label(document)),
        ("Channels", ", ".join(request.channels or ()) or "by preference, or the type's"),
        ("Entity", request.entity_id),
        ("Request ID", document.get("request_id")),
    )
    return [(label, value) for label, value in facts if value]
