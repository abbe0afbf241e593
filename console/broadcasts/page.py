"""The page about one broadcast: how far it is, who was left out and why, and what one may do."""

from typing import Any

from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from access.models import APIClient, StaffUser
from domain.states import BroadcastStatus
from notifications.broadcasts import repository
from notifications.broadcasts.documents import Document, request_of
from notifications.models import Broadcast

from ..widgets import columns, names
from ..widgets.labels import STATUS_COLORS, STATUS_LABELS, code_label
from .actions import BROADCAST_ACTIONS, find_broadcast, not_found
from .labels import COLORS, audience_label, summarize

TEMPLATE = "admin/notifications/broadcast/detail.html"
AUDIT_LINES = 50
SKIPPED_MEANING = "They want none of it, or nothing reaches them."
REJECTED_MEANING = "Their notification could not be made."


def show(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show one broadcast; to the list with a word, if there is none of this id."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    document = find_broadcast(object_id)
    if document is None:
        return not_found(request)
    request.current_app = admin.admin_site.name
    context = {**admin.admin_site.each_context(request), **_context(admin, request, document)}
    return TemplateResponse(request, TEMPLATE, context)


def _context(admin: Any, request: HttpRequest, document: Document) -> dict[str, Any]:
    status = BroadcastStatus(document["status"])
    type_name = names.type_names([document["type"]])[document["type"]]
    request_for_all = request_of(document)
    return {
        "title": f"{type_name} {document['_id']}",
        "opts": admin.opts,
        "original": Broadcast(pk=document["_id"], type=type_name),
        "document": document,
        "type_name": type_name,
        "audience": audience_label(document["audience"], document.get("topic")),
        "status": code_label(status),
        "color": COLORS[status],
        "test_chip": columns.test_chip() if document.get("is_test") else "",
        "headline": summarize(document),
        "actions": [
            action
            for action in BROADCAST_ACTIONS
            if status in action.statuses and request.user.has_perm(action.permission)
        ],
        "progress": _progress(document),
        "status_counts": _status_counts(document["_id"]),
        "may_see_notifications": request.user.has_perm("notifications.view_notification"),
        "skipped": [
            ("Skipped", SKIPPED_MEANING, _skip_reasons(document, "skipped")),
            ("Rejected", REJECTED_MEANING, _skip_reasons(document, "rejected")),
        ],
        "content": request_for_all.content,
        "data": request_for_all.data,
        "facts": _facts(document),
        "times": _times(document),
        "audit": _audit(document["_id"]),
    }


def _progress(document: Document) -> dict[str, Any]:
    """Return how much of the audience was looked at, and its share if that is known."""
    count = document["accepted"] + sum(
        reason["count"] for name in ("skipped", "rejected") for reason in document[name].values()
    )
    size = document.get("audience_size")
    is_over = document["status"] == BroadcastStatus.COMPLETED
    return {
        "words": f"{count:,} looked at" + (f" of about {size:,}" if size is not None else ""),
        "share": 100 if is_over else min(99, count * 100 // size) if size else None,
    }


def _skip_reasons(document: Document, why: str) -> list[dict[str, Any]]:
    """Return who was told nothing, by the reason that holds for most of them first."""
    reasons = sorted(document[why].items(), key=lambda one: (-one[1]["count"], one[0]))
    return [
        {"words": code_label(code), "count": f"{one['count']:,}", "examples": one["examples"]}
        for code, one in reasons
    ]


def _status_counts(broadcast_id: ObjectId) -> list[dict[str, Any]] | None:
    """Return how many of its notifications are in each status; None: too many to count."""
    counts = repository.count_by_status(broadcast_id)
    if counts is None:
        return None
    return [
        {"chip": columns.chip(STATUS_LABELS[status], STATUS_COLORS[status]), "count": f"{count:,}"}
        for status, count in counts.items()
    ]


def _facts(document: Document) -> list[tuple[str, str]]:
    client = APIClient.objects.only("name").filter(pk=document["client_id"]).first()
    request = request_of(document)
    facts = (
        ("Id", str(document["_id"])),
        ("Client", client.name if client else str(document["client_id"])),
        ("Priority", document["priority"]),
        ("Channels", ", ".join(request.channels or ()) or "each person's, or the type's"),
        ("Request", document.get("request_id")),
    )
    return [(label, value) for label, value in facts if value]


def _times(document: Document) -> list[tuple[str, Any]]:
    times = (
        ("Asked for", "created_at"),
        ("Scheduled", "scheduled_at"),
        ("Began", "started_at"),
        ("Ended", "finished_at"),
        ("Expires", "expires_at"),
        ("Kept until", "purge_at"),
    )
    return [(label, document[name]) for label, name in times if document.get(name)]


def _audit(broadcast_id: ObjectId) -> list[dict[str, Any]]:
    entries = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(Broadcast), object_id=str(broadcast_id)
    ).order_by("-id")[:AUDIT_LINES]
    found = list(entries)
    users = StaffUser.objects.only("username").in_bulk({entry.user_id for entry in found})
    return [
        {
            "who": users[entry.user_id].username if entry.user_id in users else "-",
            "at": entry.action_time,
            "what": entry.get_change_message(),
        }
        for entry in found
    ]
