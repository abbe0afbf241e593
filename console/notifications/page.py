"""The page about one notification."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bson import ObjectId
from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from access.models import APIClient, StaffUser
from domain.states import NotificationStatus
from domain.time import utc_now
from notifications import queries
from notifications.models import Notification
from notifications.resend.assessment import assess_risks
from notifications.store import Document, is_content_removed
from notifyproject.platform import audit, tracing
from recipients.masking import can_reveal_addresses, can_see_addresses

from ..widgets import columns, names
from ..widgets.actions import require_post
from ..widgets.labels import STATUS_COLORS, STATUS_LABELS
from . import presentation
from .actions import DETAIL, LIST, RESEND, STAFF_ACTIONS, StaffAction, parse_id
from .summary import summarize

TEMPLATE = "admin/notifications/notification/detail.html"
AUDIT_LINES = 50


def detail_page(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show one notification; to the list with a word, if there is none of this id."""
    return _page(admin, request, object_id, unmasked=can_see_addresses(request.user))


def revealed_page(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show one notification with its addresses unmasked, this once and on record; POST only."""
    if refused := require_post(
        request, allowed=admin.has_view_permission(request) and can_reveal_addresses(request.user)
    ):
        return refused
    return _page(admin, request, object_id, unmasked=True, is_revealed=True)


def _page(
    admin: Any, request: HttpRequest, object_id: str, *, unmasked: bool, is_revealed: bool = False
) -> HttpResponse:
    if not admin.has_view_permission(request):
        raise PermissionDenied
    notification_id = parse_id(object_id)
    document = queries.get(notification_id=notification_id) if notification_id else None
    if document is None:
        messages.warning(request, "There is no such notification. It may have been purged.")
        return HttpResponseRedirect(reverse(LIST))
    if is_revealed:
        audit.record(
            by=request.user.pk,
            model=Notification,
            object_id=str(document["_id"]),
            name=f"{document['type']} {document['_id']}",
            message="Had its addresses shown.",
        )
    request.current_app = admin.admin_site.name
    context = {
        **admin.admin_site.each_context(request),
        **_context(admin, request, document, unmasked=unmasked),
        "is_revealed": is_revealed,
    }
    return TemplateResponse(request, TEMPLATE, context)


def _context(
    admin: Any, request: HttpRequest, document: Document, *, unmasked: bool
) -> dict[str, Any]:
    now = utc_now()
    risks = {channel: one for (_, channel), one in assess_risks([document], now=now).items()}
    status = NotificationStatus(document["status"])
    type_name = names.type_names([document["type"]])[document["type"]]
    # It stands in the page's path by its text: the type's name and the id.
    original = Notification(pk=document["_id"], type=type_name)
    return {
        "title": str(original),
        "opts": admin.opts,
        "original": original,
        "document": document,
        "type_name": type_name,
        "status": STATUS_LABELS[status],
        "color": STATUS_COLORS[status],
        "test_chip": columns.test_chip() if document.get("is_test") else "",
        "headline": summarize(document, now=now),
        "actions": _available_actions(request, document, now),
        "cards": presentation.cards(document, risks, unmasked=unmasked, now=now),
        "timeline": presentation.timeline(queries.attempts_of(document["_id"]), unmasked=unmasked),
        "errors": presentation.errors(document, unmasked=unmasked),
        "shown": presentation.render_content(document),
        "contact": presentation.contact(document, unmasked=unmasked),
        "variables": presentation.variables(document, unmasked=unmasked),
        "facts": _facts(document),
        "times": _times(document),
        "resent_from": _link(document.get("resent_from")),
        "resent_as": [_link(one) for one in document["resent_as"]],
        "recipient_url": _recipient_url(request, document.get("user_id")),
        "may_reveal": not unmasked and can_reveal_addresses(request.user),
        "audit": _audit(document["_id"]),
    }


def _available_actions(
    request: HttpRequest, document: Document, now: datetime
) -> list[StaffAction]:
    """Return the actions this user may carry out and this notification has something for."""
    is_removed = is_content_removed(document)
    return [
        action
        for action in STAFF_ACTIONS
        if request.user.has_perm(action.permission)
        and not (is_removed and action.shows_resend_risk)
        and (action is RESEND or any(action.applies_to(d, now=now) for d in document["delivery"]))
    ]


def _facts(document: Document) -> list[tuple[str, str]]:
    client = APIClient.objects.only("name").filter(pk=document["client_id"]).first()
    facts = (
        ("Id", str(document["_id"])),
        ("Client", client.name if client else str(document["client_id"])),
        ("Category", document["category"]),
        ("Priority", document["priority"]),
        ("Entity", document.get("entity_id")),
        ("External id", document.get("external_id")),
        ("Idempotency key", document.get("idempotency_key")),
        ("Request", document.get("request_id")),
        ("Trace", tracing.trace_id(document.get("traceparent"))),
        ("Template", _template(document["content"])),
    )
    return [(label, value) for label, value in facts if value]


def _template(content: Mapping[str, Any]) -> str | None:
    """Return the template and the version it was accepted with."""
    name, version = content.get("template_id"), content.get("template_version")
    return f"{name}, version {version}" if name and version else name


def _times(document: Document) -> list[tuple[str, Any]]:
    times = (
        ("Accepted", "created_at"),
        ("Scheduled", "scheduled_at"),
        ("Expires", "expires_at"),
        ("Sent", "sent_at"),
        ("Read", "read_at"),
        ("Failed", "failed_at"),
        ("Content removed", "content_removed_at"),
        ("Kept until", "purge_at"),
    )
    return [(label, document[name]) for label, name in times if document.get(name)]


def _link(notification_id: ObjectId | None) -> dict[str, str] | None:
    if notification_id is None:
        return None
    return {"id": str(notification_id), "url": reverse(DETAIL, args=[notification_id])}


def _recipient_url(request: HttpRequest, user_id: str | None) -> str | None:
    """Return where the person is shown, registered or not, if the user may look."""
    if not user_id or not request.user.has_perm("recipients.view_recipient"):
        return None
    return reverse("admin:recipients_recipient_change", args=[quote(user_id)])


def _audit(notification_id: ObjectId) -> list[dict[str, Any]]:
    """Return what staff did to it, the newest first."""
    entries = list(
        LogEntry.objects.filter(
            content_type_id=ContentType.objects.get_for_model(Notification).pk,
            object_id=str(notification_id),
        ).order_by("-id")[:AUDIT_LINES]
    )
    users = StaffUser.objects.only("username").in_bulk({entry.user_id for entry in entries})
    return [
        {
            "at": entry.action_time,
            "who": users[entry.user_id].username if entry.user_id in users else "somebody",
            "what": entry.get_change_message(),
        }
        for entry in entries
    ]
